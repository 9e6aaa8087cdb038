"""Cells that a command was asked for, and cells in words."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from crossfill.errors import DataError

if TYPE_CHECKING:
    from crossfill.grid.cells import Cell
    from crossfill.grid.task import Unit
    from crossfill.tagger.tagger import Tagger

_MOST_NAMES = 10
"""Most names that a message lists."""


def find_cells(tagger: "Tagger", names: Sequence[str] | None) -> "list[Cell]":
    """Return the named cells of a model; DataError if none is named."""
    if not names:
        raise DataError(
            f"expected a cell to tag in, such as --cell {tagger.cells[0]}; the model has {sides(tagger.cells)}"
        )
    return [tagger.cell(name) for name in names]


def shared_unit(tagger: "Tagger", cells: "Sequence[Cell]") -> "Unit":
    """Return the unit that all cells label; words and sentences are not read in the same way."""
    units = {cell: tagger.model.inventory.unit(cell.task) for cell in cells}
    if len(set(units.values())) > 1:
        each = ", ".join(f"{cell} labels {unit}s" for cell, unit in units.items())
        raise DataError(f"expected cells that label the same unit, got: {each}; tag them one after the other")
    return units[cells[0]]


def sides(cells: "Iterable[Cell]") -> str:
    """Describe the tasks and languages of some cells."""
    cells = list(cells)
    tasks, languages = sorted({cell.task for cell in cells}), sorted({cell.language for cell in cells})
    return f"tasks {listed(tasks) or 'none'} in languages {listed(languages) or 'none'}"


def listed(names: Iterable[str]) -> str:
    """Join names, the first ten if there are more."""
    names = list(names)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
