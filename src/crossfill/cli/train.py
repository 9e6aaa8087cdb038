"""`crossfill train DATA`: one model from the seen cells of a data folder."""

import shlex
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Option

from crossfill.cli import options
from crossfill.cli.grid import read_to_train
from crossfill.cli.output import say_if_nothing_was_found, show_expected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crossfill.evaluation.results import CellResult


def train(
    data: options.DataFolder,
    method: Annotated[
        str | None,
        Option(
            help="pf-lr, pf-d, jm, ns, ls, bea, …, or auto: the better of pf-lr and jm on seen cells held "
            "out in turn. [default: the config's, else pf-lr]"
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        Option(
            help="compact, a hub name or a folder. [default: the config's, else bert-base-multilingual-cased if it is "
            "on this machine, else compact]"
        ),
    ] = None,
    preset: Annotated[
        Literal["laptop", "gpu", "paper", "demo"] | None,
        Option(
            help="Settings, fitted to the data: laptop (frozen encoder), gpu (fine-tuned), paper (as published, days), "
            "demo (compact encoder). [default: by encoder and device]"
        ),
    ] = None,
    out: Annotated[Path, Option(help="Folder for the model.")] = Path("model"),
    config: options.Config = None,
    change: options.Changes = None,
    resume: Annotated[bool, Option("--resume", help="Continue the run that is in the folder.")] = False,
    force: options.Force = False,
    expect: Annotated[
        bool | None,
        Option(
            help="Estimate what filled cells will score, from seen cells held out in turn. [default: with frozen "
            "encoders]"
        ),
    ] = None,
    hold_out: Annotated[
        list[str] | None, Option(help="A cell to leave unseen, as ner/wol, or half: a random half of all; repeatable.")
    ] = None,
    task: options.Tasks = None,
    max_train: options.MaxTrain = None,
    seed: options.Seed = 0,
) -> None:
    """Train a model on the cells that have data, and score it on every cell that has test data.

    Without --config, the settings are the best-measured preset for the encoder and the device, fitted to the data;
    what was chosen is said before the first step.
    """
    from crossfill.data.codes import find_cell
    from crossfill.data.folder import ReadOptions
    from crossfill.grid import partition
    from crossfill.grid.typology import vectors_beside
    from crossfill.methods.registry import find_method
    from crossfill.settings import parse_assignments
    from crossfill.tagger.presets import RunRequest
    from crossfill.tagger.training_run import AUTO, check_request, run
    from crossfill.training.loop import InterruptedTraining
    from crossfill.training.processes import is_first_process

    started = time.monotonic()
    request = RunRequest(
        method,
        encoder,
        preset,
        config,
        vectors_beside(data),
        parse_assignments(change or ()),
        out=out,
        resume=resume,
        force=force,
        expect=expect,
    )
    if method not in (None, AUTO):
        find_method(method)
    check_request(request)
    options.check_writable(out)
    grid = read_to_train(data, ReadOptions(task or (), seed, max_train), silent=not is_first_process())
    unseen = {find_cell(cell, grid.cells) for cell in hold_out or () if cell != "half"}
    if "half" in (hold_out or ()):
        unseen |= set(partition.random_halves(grid.cells, seed)[0].unseen)
    seen = frozenset(partition.hold_out(grid.cells, sorted(unseen)).seen)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # interrupts as Ctrl-C does
    try:
        tagger, progression = run(
            grid, seen, request, grid, log=None if options.QUIET.get() else partial(typer.echo, err=True)
        )
    except (KeyboardInterrupt, InterruptedTraining) as stop:
        step = f" at step {stop.step:,}" if isinstance(stop, InterruptedTraining) else ""
        typer.echo(f"interrupted{step}; continue with: {_command_to_go_on(out)}", err=True)
        raise typer.Exit(options.INTERRUPTED) from None
    if is_first_process():
        _show_means(tagger.results)
        n_cells = len(grid.tasks) * len(grid.languages)
        typer.echo(
            f"{out}: {len(seen)} of {n_cells} cells seen, {progression.step} steps, "
            f"{time.monotonic() - started:.0f} s; scores of every cell in {out / 'results.json'}; "
            f"all measures: {shlex.join(['crossfill', 'evaluate', str(out), str(data)])}"
        )
        if not options.QUIET.get():
            show_expected(tagger.expectations, {result.cell for result in tagger.results})


def _command_to_go_on(out: Path) -> str:
    """Return the command that continues the run: the same again while it only encodes, as what is encoded is cached."""
    from crossfill.tagger.training_run import run_state

    given = [argument for argument in sys.argv[1:] if argument not in ("--force", "--resume")]
    return shlex.join(["crossfill", *given, *(["--resume"] if run_state(out) == "unfinished" else [])])


def _show_means(results: "Sequence[CellResult]") -> None:
    from crossfill.evaluation.results import task_means

    for seen in (True, False):
        chosen = [result for result in results if result.seen is seen]
        if chosen:
            means = ", ".join(f"{task} {100 * mean:.1f}" for task, mean in task_means(chosen, seen=seen).items())
            typer.echo(f"{'seen' if seen else 'unseen'} cells ({len({r.cell for r in chosen})}): {means}")
    say_if_nothing_was_found(results)
