"""`crossfill.train`: a tagger from a grid or a data folder.

It stands apart from `tagger.tagger`, so that a model that is loaded to tag starts without what only training needs.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from crossfill.config import Config
from crossfill.data.codes import find_cell
from crossfill.data.folder import load_grid
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.partition import hold_out as without
from crossfill.grid.typology import vectors_beside
from crossfill.tagger.card import CardInfo, describe_data
from crossfill.tagger.presets import RunRequest
from crossfill.tagger.run import run
from crossfill.tagger.tagger import Tagger


def train(
    grid: Grid | str | Path,
    method: str | None = None,
    encoder: str | None = None,
    out: str | Path | None = None,
    config: Config | str | Path | None = None,
    hold_out: Iterable[str | Cell] = (),
    cache: Path | bool = True,
    quiet: bool | None = None,
    preset: str | None = None,
    resume: bool = False,
    force: bool = False,
    expect: bool | None = None,
) -> Tagger:
    """Train on the cells of a grid, or of a data folder, except those held out; the model is written to `out` if given.

    Without a `config` (settings, or a YAML file of them) the settings are a `preset`: `laptop`, `gpu`, `paper` or
    `demo`, chosen by encoder and device if none is named, and fitted to the data. `method` and `encoder` override
    those of the config. A model that is in `out` is replaced only with `force`; a run that was interrupted there goes
    on with `resume`. The method `auto` tries several on seen cells held out in turn, and keeps the best;
    these also say what filled cells will score (`Tagger.expectations`), by default where the encoder is frozen, else
    with `expect`. What is chosen is shown on standard error, unless `quiet`; by default in terminals and notebooks.
    """
    vectors = None
    if isinstance(grid, str | Path):
        vectors = vectors_beside(grid)
        grid = load_grid(grid, cache=cache)
    if not isinstance(grid, Grid):
        raise DataError(f"expected a Grid, or the path of a data folder; got {type(grid).__name__}")
    held_out = [hold_out] if isinstance(hold_out, str | Cell) else hold_out
    seen = without(grid.cells, [find_cell(cell, grid.cells) for cell in held_out]).seen
    shown = _is_watched() if quiet is None else not quiet
    made = run(
        grid,
        seen,
        RunRequest(method, encoder, preset, config, vectors),
        None if out is None else Path(out),
        resume=resume,
        force=force,
        cache=cache,
        expect=expect,
        tell=_print if shown else None,
    )
    card = CardInfo(data=describe_data(grid, sorted(made.model.seen)))
    return Tagger(made.model, made.config, made.calibration, expectations=made.expectations, card=card)


def _is_watched() -> bool:
    """Whether a person reads standard error: in a terminal or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def _print(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201
