"""`crossfill train DATA`: one model from the seen cells of a data folder."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crossfill.config import Config
    from crossfill.experiments.cell_results import CellResult
    from crossfill.grid import Cell, Grid
    from crossfill.partition import Partition

PAPER_ENCODER = "bert-base-multilingual-cased"


def train(
    data: Annotated[Path, typer.Argument(help="Folder of corpora, as `crossfill grid` shows it.")],
    method: Annotated[str | None, typer.Option(help="pf-lr, pf-d, jm, ns, ls, bea, … [default: the config's]")] = None,
    encoder: Annotated[
        str | None, typer.Option(help=f"compact, a hub name or a folder. [default: the config's, else {PAPER_ENCODER}]")
    ] = None,
    layer: Annotated[str | None, typer.Option(help="Layer of a pretrained encoder, or mix.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the model.")] = Path("model"),
    config: Annotated[
        Path | None, typer.Option(help="YAML file of settings or of a study: configs/frozen.yaml.")
    ] = None,
    change: Annotated[list[str] | None, typer.Option("--set", help="A setting, as training.steps=500.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Take up the run that is in the folder.")] = False,
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
        int, typer.Option(help="Seed of random splits, caps and halves; training.seed is the model's.")
    ] = 0,
    cache: Annotated[Path | None, typer.Option(help="Folder for corpora and features. [default: the user's]")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bars.")] = False,
) -> None:
    """Train a model on the cells that have data, and score it on every cell that has test data."""
    from crossfill.baselines.methods import build_encoder, find_method, plan_training
    from crossfill.config import override
    from crossfill.data.folder import load_grid
    from crossfill.data.splits import capped_grid
    from crossfill.distribution import is_first_process, leave
    from crossfill.experiments.run import evaluate
    from crossfill.experiments.run import train as run
    from crossfill.typology import vectors_beside

    started = time.monotonic()
    settings = _settings(config, method, encoder, layer, change or [])
    find_method(settings.method)
    if settings.sources.vectors is None and (vectors := vectors_beside(data)):
        settings = override(settings, [f"sources.vectors={vectors}"])
    grid = load_grid(data, tasks=task or (), seed=seed, max_train=max_train, cache=cache or True)
    grid = capped_grid(grid, max_dev, max_test, seed)
    compared = _without(grid, outside or [])
    partition = _partition(compared, hold_out or [], halves, half, seed)
    silent = quiet or not is_first_process()
    for note in plan_training(grid, partition.seen, settings).notes if is_first_process() else ():
        typer.echo(f"{settings.method}: {note}", err=True)
    base = build_encoder(settings, grid.inventory, cache or True, silent)
    model = run(grid, partition.seen, settings, out, resume=resume, quiet=silent, encoder=base)
    leave()
    trained = time.monotonic() - started
    if is_first_process():
        _show(evaluate(model, compared, settings), compared, partition.seen, out, trained)


def _settings(
    path: Path | None, method: str | None, encoder: str | None, layer: str | None, changes: list[str]
) -> "Config":
    from crossfill.config import Config, override
    from crossfill.experiments.study import load_run_config

    config = load_run_config(path, method) if path else override(Config(), [f"encoder.name={PAPER_ENCODER}"])
    named = {"method": method, "encoder.name": encoder, "encoder.pretrained.layer": layer}
    return override(config, [*(f"{key}={value}" for key, value in named.items() if value is not None), *changes])


def _without(grid: "Grid", languages: list[str]) -> "Grid":
    from crossfill.errors import DataError, unknown
    from crossfill.grid import Grid

    for language in languages:
        if language not in grid.languages:
            raise DataError("--outside: " + unknown("language", language, grid.languages))
    return Grid({cell: grid[cell] for cell in grid.cells if cell.language not in languages})


def _partition(grid: "Grid", held_out: list[str], halves: str | None, half: int, seed: int) -> "Partition":
    from crossfill import partition
    from crossfill.errors import DataError
    from crossfill.grid import Cell

    if halves is None:
        return partition.hold_out(grid.cells, map(Cell.parse, held_out))
    if held_out:
        raise DataError(f"expected --halves or --hold-out, got both: {halves} and {', '.join(held_out)}")
    made = partition.random_halves(grid.cells, seed) if halves == "random" else partition.alternating_halves(grid.cells)
    if half > len(made):
        raise DataError(f"expected --half of 1 to {len(made)}, got {half}")
    return made[half - 1]


def _show(results: "Sequence[CellResult]", grid: "Grid", seen: "frozenset[Cell]", out: Path, seconds: float) -> None:
    from crossfill.checkpoint import write_json
    from crossfill.experiments.card import RESULTS, write_card
    from crossfill.experiments.cell_results import task_means

    write_json(out / RESULTS, [result.as_dict() for result in results], indent=None)
    write_card(out)
    for which in (True, False):
        chosen = [r for r in results if r.seen is which]
        if chosen:
            means = ", ".join(f"{task} {100 * mean:.1f}" for task, mean in task_means(chosen, seen=which).items())
            typer.echo(f"{'seen' if which else 'unseen'} cells ({len({r.cell for r in chosen})}): {means}")
    history = json.loads((out / "history.json").read_text(encoding="utf-8"))
    typer.echo(
        f"{out}: {len(seen)} of {len(grid.cells)} cells seen, {history[-1]['step']} steps, {seconds:.0f} s; "
        f"scores of every cell in {out / 'results.json'}"
    )
