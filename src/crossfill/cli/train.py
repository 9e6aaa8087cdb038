"""`crossfill train DATA`: one model from the seen cells of a data folder."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crossfill.cli.options import MOST_SEED
from crossfill.errors import DataError, unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crossfill.evaluation.expected import Expectations
    from crossfill.evaluation.results import CellResult
    from crossfill.grid.cells import Cell, Grid
    from crossfill.grid.partition import Partition

INTERRUPTED = 130
"""Exit code of a run that was told to stop."""
_MOST_CELLS = 40
"""Filled cells that are listed."""


def train(
    data: Annotated[Path, typer.Argument(help="Folder of corpora, as `crossfill grid` shows it.")],
    method: Annotated[
        str | None,
        typer.Option(
            help="pf-lr, pf-d, jm, ns, ls, bea, …, or auto: the best of pf-lr, jm and jm-deep on seen "
            "cells held out in turn. [default: the config's, else pf-lr]"
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="compact, a hub name or a folder. [default: the config's, else bert-base-multilingual-cased if it is "
            "on this machine, else compact]"
        ),
    ] = None,
    preset: Annotated[
        Literal["laptop", "gpu", "paper", "demo"] | None,
        typer.Option(
            help="Settings, fitted to the data: laptop (frozen encoder), gpu (fine-tuned), paper (as published, days), "
            "demo (compact encoder). [default: by encoder and device]"
        ),
    ] = None,
    layer: Annotated[str | None, typer.Option(help="Layer of a pretrained encoder, or mix.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the model.")] = Path("model"),
    config: Annotated[
        Path | None, typer.Option(help="YAML file of settings or of a study: configs/frozen.yaml.")
    ] = None,
    change: Annotated[list[str] | None, typer.Option("--set", help="A setting, as training.steps=500.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Take up the run that is in the folder.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the model or run that is in the folder.")] = False,
    expect: Annotated[
        bool | None,
        typer.Option(
            help="Say what filled cells will score, from seen cells held out in turn. [default: with frozen encoders]"
        ),
    ] = None,
    hold_out: Annotated[list[str] | None, typer.Option(help="A cell to leave unseen, as ner/wol; repeatable.")] = None,
    halves: Annotated[
        Literal["random", "alternating"] | None, typer.Option(help="Hold out half of the cells, in this way.")
    ] = None,
    outside: Annotated[
        list[str] | None, typer.Option(help="A language outside the comparison, which may serve ls only; repeatable.")
    ] = None,
    half: Annotated[int, typer.Option(min=1, help="Which of the halves is unseen.")] = 1,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeatable. deprel, feats:Case, …")] = None,
    max_train: Annotated[int | None, typer.Option(min=1, help="Most training sentences per corpus.")] = None,
    max_dev: Annotated[int | None, typer.Option(min=1, help="Most dev sentences per corpus.")] = None,
    max_test: Annotated[int | None, typer.Option(min=1, help="Most test sentences per corpus.")] = None,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=MOST_SEED, help="Seed of random splits, caps and halves; training.seed is the model's."
        ),
    ] = 0,
    cache: Annotated[Path | None, typer.Option(help="Folder for corpora and features. [default: the user's]")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="A bad line in a corpus is an error, rather than losing its sentence.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, and no word on what was chosen.")] = False,
) -> None:
    """Train a model on the cells that have data, and score it on every cell that has test data.

    Without --config, the settings are the best-measured preset for the encoder and the device, fitted to the data;
    what was chosen is said before the first step.
    """
    from crossfill.cli.reading import read_to_train
    from crossfill.data.codes import find_language_in
    from crossfill.data.folder import ReadOptions
    from crossfill.data.splits import capped_grid
    from crossfill.grid.typology import vectors_beside
    from crossfill.methods.registry import find_method
    from crossfill.settings import parse_assignments
    from crossfill.tagger.presets import RunRequest
    from crossfill.tagger.run import AUTO, run
    from crossfill.training.interruption import InterruptedTraining, terminable
    from crossfill.training.processes import is_first_process

    started = time.monotonic()
    changes = {} if layer is None else {"encoder.pretrained.layer": layer}
    request = RunRequest(
        method,
        encoder,
        preset,
        config,
        vectors_beside(data),
        changes | parse_assignments(change or ()),
        out=out,
        resume=resume,
        force=force,
        cache=cache or True,
        expect=expect,
    )
    if method not in (None, AUTO):
        find_method(method)
    silent = quiet or not is_first_process()
    grid = read_to_train(data, ReadOptions(task or (), seed, max_train, cache or True, strict), silent)
    grid = capped_grid(grid, max_dev, max_test, seed)
    excluded = {find_language_in(language, grid.languages) for language in outside or ()}
    for language in sorted(excluded - set(grid.languages)):
        raise DataError("--outside: " + unknown("language", language, grid.languages))
    compared = grid.where(lambda cell: cell.language not in excluded)
    partition = _partition(compared, hold_out or [], halves, half, seed)
    try:
        with terminable():
            made = run(grid, partition.seen, request, compared, log=None if quiet else _tell)
    except (KeyboardInterrupt, InterruptedTraining) as stop:
        step = f" at step {stop.step:,}" if isinstance(stop, InterruptedTraining) else ""
        typer.echo(f"interrupted{step}; go on with: {_command_to_go_on(out)}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if is_first_process():
        seconds = time.monotonic() - started
        n_cells = len(compared.tasks) * len(compared.languages)
        _show(made.results, f"{len(partition.seen)} of {n_cells}", made.progression.step, out, seconds)
        if made.expectations is not None and not quiet:
            _show_expected(made.expectations, {result.cell for result in made.results})


def _command_to_go_on(out: Path) -> str:
    """The command that takes the run up: the same again while it only encodes, as what is encoded is cached."""
    from crossfill.tagger.run_lock import run_state

    given = [argument for argument in sys.argv[1:] if argument not in ("--force", "--resume")]
    return shlex.join(["crossfill", *given, *(["--resume"] if run_state(out) == "unfinished" else [])])


def _tell(line: str) -> None:
    typer.echo(line, err=True)


def _partition(grid: "Grid", held_out: list[str], halves: str | None, half: int, seed: int) -> "Partition":
    from crossfill.data.codes import find_cell
    from crossfill.grid import partition

    if halves is None:
        return partition.hold_out(grid.cells, [find_cell(cell, grid.cells) for cell in held_out])
    if held_out:
        raise DataError(f"expected --halves or --hold-out, got both: {halves} and {', '.join(held_out)}")
    made = partition.random_halves(grid.cells, seed) if halves == "random" else partition.alternating_halves(grid.cells)
    if half > len(made):
        raise DataError(f"expected --half of 1 to {len(made)}, got {half}")
    return made[half - 1]


def _show(results: "Sequence[CellResult]", seen: str, steps: int, out: Path, seconds: float) -> None:
    from crossfill.evaluation.results import task_means

    for which in (True, False):
        chosen = [r for r in results if r.seen is which]
        if chosen:
            means = ", ".join(f"{task} {100 * mean:.1f}" for task, mean in task_means(chosen, seen=which).items())
            typer.echo(f"{'seen' if which else 'unseen'} cells ({len({r.cell for r in chosen})}): {means}")
    typer.echo(
        f"{out}: {seen} cells seen, {steps} steps, {seconds:.0f} s; scores of every cell in {out / 'results.json'}"
    )


def _show_expected(found: "Expectations", scored: "set[Cell]") -> None:
    """The filled cells whose score nobody knows, with what they are expected to score."""
    unknown = [one for one in found.expected if one.cell not in scored]
    if not unknown:
        return
    typer.echo(f"filled cells: expected score, {found.level:.0%} interval ({len(found.held_out)} seen cells held out)")
    for one in unknown[:_MOST_CELLS]:
        typer.echo(f"  {one.cell!s:<12} {100 * one.score:5.1f}   {100 * one.low:.0f} to {100 * one.high:.0f}")
    if unknown[_MOST_CELLS:]:
        typer.echo(f"  and {len(unknown) - _MOST_CELLS} more, in expected.json")
