"""What several commands print in the same way: tables, JSON, failed jobs, expected scores."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from crossfill.evaluation.expected import Expectations
    from crossfill.grid.cells import Cell

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
    """Print a table in the plain style of all commands, in parts if the terminal is too narrow for its numbers.

    Each part begins with the columns to the left of the first column of numbers.
    """
    if table.title:
        console.print(table.title, style="bold", markup=False)
    columns = list(table.columns)
    n_keys = next((i for i, column in enumerate(columns) if column.justify == "right"), len(columns))

    def part(numbers: Sequence[int]) -> "Table":
        shown = plain_table()
        shown.columns = [replace(columns[i], _index=place) for place, i in enumerate([*range(n_keys), *numbers])]
        shown.rows = table.rows
        for column in shown.columns:
            column.overflow = "fold"
            if column.justify == "right":  # numbers are never broken, headings between words
                column.header, column.no_wrap = str(column.header).replace(" ", "\n"), True
        return shown

    print_in_parts(console, range(n_keys, len(columns)), part)
    if table.caption:
        console.print(table.caption, style="dim", markup=False)
        console.print()


def plain_table(*columns: str, gap: int = 2) -> "Table":
    """Make a table that has a line under its head, and no other lines."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(*columns, box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0))


def print_in_parts(console: "Console", names: Sequence[Any], table_of: "Callable[[Sequence[Any]], Table]") -> None:
    """Print the table of all names, or, as long as it is too wide for the terminal, the tables of their halves."""
    table, half = table_of(names), (len(names) + 1) // 2
    if width_of(console, table) <= console.width or len(names) < 2:
        console.print(table)
        console.print()
        return
    for part in (names[:half], names[half:]):
        print_in_parts(console, part, table_of)


def width_of(console: "Console", table: "Table") -> int:
    """Return how wide a table has to be, so that nothing is broken that may not be."""
    measured = console.measure(table, options=console.options.update(max_width=10_000))
    return measured.maximum if all(column.no_wrap for column in table.columns) else measured.minimum


def print_json(value: Any) -> None:
    """Print a value for machines."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def failed_jobs(total: int, jobs: str, lines: Sequence[str]) -> str:
    """Say how many jobs failed, each in a line of its own, and what to do."""
    head = f"{len(lines)} of {total} {jobs} failed; the others are done:"
    return "\n".join([head, *lines[:_MOST_LINES], "fix this and run the same command again"])


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
