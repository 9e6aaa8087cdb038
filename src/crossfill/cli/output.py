"""What several commands print in the same way: tables, JSON, failed jobs, expected scores."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from crossfill.errors import listed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from crossfill.evaluation.expected import Expectations
    from crossfill.evaluation.results import CellResult
    from crossfill.grid.cells import Cell
    from crossfill.studies.run_folder import StudyResults

_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
_VISIBLE = _PICTURES | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_MOST_LINES = 40
"""Cells or failed jobs that are listed one by one."""


def visible(text: str) -> str:
    r"""Replace control characters but tab and newline by Unicode's pictures of them, so that none moves the cursor.

    >>> visible("a\x1b[2Jb")
    'a␛[2Jb'
    """
    return text.translate(_VISIBLE)


def print_table(console: "Console", table: "Table") -> None:
    """Print a table in the plain style of all commands; if it is too wide for the terminal, its entries are folded."""
    from rich.box import SIMPLE_HEAD

    title, caption, table.title, table.caption = table.title, table.caption, None, None
    table.box, table.show_edge, table.pad_edge = SIMPLE_HEAD, False, False
    for column in table.columns:
        column.overflow = "fold"
    if title:
        console.print(title, style="bold", markup=False)
    console.print(table)
    console.print()
    if caption:
        console.print(caption, style="dim", markup=False)
        console.print()


def print_json(value: Any) -> None:
    """Print a value for machines."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def failed_jobs(total: int, jobs: str, lines: Sequence[str]) -> str:
    """Say how many jobs failed, each in a line of its own, and what to do."""
    head = f"{len(lines)} of {total} {jobs} failed; the others are done:"
    return "\n".join([head, *lines[:_MOST_LINES], "fix this and run the same command again"])


def say_if_nothing_was_found(results: "Iterable[CellResult]", method: str = "") -> None:
    """Name the cells that score 0.0, and what to try."""
    if nothing := dict.fromkeys(str(result.cell) for result in results if round(100 * result.score, 1) == 0):
        typer.echo(
            f"{method and f'{method}: '}score 0.0, no name was found (or no label right): {listed(nothing)}; try more "
            "steps (--set training.steps=2000), a pretrained encoder, more data, or some sentences (crossfill adapt)",
            err=True,
        )


def say_what_found_nothing(results: "StudyResults") -> None:
    """Name the cells that score 0.0 by each method of a study."""
    for method in results.methods:
        say_if_nothing_was_found((cell for one in results.proper(method) for cell in results.cells(one)), method)


def show_expected(expectations: "Expectations | None", scored: "Collection[Cell]") -> None:
    """Print what filled cells without test data are expected to score, if cells were held out to find out."""
    if expectations is None or not (unscored := expectations.unscored(scored)):
        return
    n_held_out = len(expectations.held_out)
    typer.echo(f"filled cells: expected score, {expectations.level:.0%} interval ({n_held_out} seen cells held out)")
    for one in unscored[:_MOST_LINES]:
        typer.echo(f"  {one.cell!s:<12} {100 * one.score:5.1f}   {100 * one.low:.0f} to {100 * one.high:.0f}")
    if unscored[_MOST_LINES:]:
        typer.echo(f"  and {len(unscored) - _MOST_LINES} more, in expected.json")
