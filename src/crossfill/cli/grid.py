"""`crossfill grid DATA`: the grid as a table, its labels, what is empty, what is wrong."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfill.cli.options import QUIET, AsJson, DataFolder, Tasks
from crossfill.cli.output import print_json, print_table, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from crossfill.data.folder import FolderReading, ReadOptions
    from crossfill.data.messages import Message
    from crossfill.grid.cells import Grid

LEVELS = {
    "error": ("red", "left out"),
    "warning": ("yellow", "warnings"),
    "recognised": ("cyan", "columns read"),
    "note": ("bright_black", "changed on reading"),
    "unread": ("bright_black", "not read"),
}
"""Colour and title of each level of messages."""
BEFORE_TRAINING = ("warning", "recognised", "unread")
"""What is shown again when a folder is trained on; errors end it, and notes are for `crossfill grid`."""
_SHADES = (("■", "green", 1000, "≥ 1,000"), ("◧", "yellow", 100, "≥ 100"), ("▪", "red", 1, "fewer"))
"""Mark, colour, least number of training sentences, and what the legend says."""
_TEST_ONLY, _EMPTY = "[cyan]◇[/]", "[bright_black]□[/]"
_MOST_LABELS = 60


def grid(data: DataFolder, task: Tasks = None, as_json: AsJson = False) -> None:
    """Show a data folder as a grid: sizes per cell, labels, what is empty, what is wrong."""
    from crossfill.data.folder import ReadOptions
    from crossfill.data.messages import check_grid

    reading = read_showing_progress(data, ReadOptions(task or ()))
    problems = [*reading.problems, *check_grid(reading.grid)]
    if as_json:
        print_json(_as_json(data, reading.grid, problems))
    else:
        _show(data, reading.grid, problems)


def read_showing_progress(data: Path, options: "ReadOptions") -> "FolderReading":
    """Read a data folder with a progress bar."""
    from crossfill.data.folder import read_folder

    return read_folder(data, options, showing_progress("Reading corpora", "files"))


def showing_progress(what: str, unit: str) -> "Callable[[Sequence[Any]], Iterator[Any]]":
    """Make a function that iterates over things with a progress bar."""
    from crossfill.progress import ProgressBar

    def watch(things: Sequence[Any]) -> Iterator[Any]:
        with ProgressBar(QUIET.get()) as bars:
            update = bars.add(what, len(things))
            for done, thing in enumerate(things):
                update(done, unit)
                yield thing

    return watch


def read_to_train(data: Path, options: "ReadOptions", silent: bool = False) -> "Grid":
    """Read the grid of a data folder; warnings, columns and files not read are shown on standard error.

    Files that cannot be read are an error that lists them all, as in `load_grid`.
    """
    from rich.console import Console

    from crossfill.data.messages import check_grid

    reading = read_showing_progress(data, options)
    grid = reading.checked()
    every = (*reading.problems, *check_grid(grid, cut=options.max_train is not None))
    problems = [problem for problem in every if problem.level in BEFORE_TRAINING]
    if not (silent or QUIET.get()):
        show_problems(Console(stderr=True, highlight=False), problems)
    return grid


def _label_counts(grid: "Grid", task: str) -> Counter[str]:
    corpora = (c for cell in grid.cells if cell.task == task for splits in grid[cell] for c in splits.parts.values())
    return sum((corpus.label_counts() for corpus in corpora), Counter())


def _as_json(data: Path, grid: "Grid", problems: "Sequence[Message]") -> dict[str, Any]:
    from crossfill.data.codes import language_name
    from crossfill.grid.cells import Cell
    from crossfill.grid.partition import bridge_note, bridges

    note = bridge_note(grid.cells)
    cells = [Cell(task, language) for task in grid.tasks for language in grid.languages]
    return {
        "path": str(data),
        "tasks": {
            task: {"unit": grid.inventory.task(task).unit, "labels": dict(sorted(_label_counts(grid, task).items()))}
            for task in grid.tasks
        },
        "languages": {language: language_name(language) for language in grid.languages},
        "cells": {
            str(cell): [
                {
                    "corpus": splits.name,
                    "sentences": {name: len(corpus) for name, corpus in splits.parts.items()},
                    "words": {name: corpus.n_words for name, corpus in splits.parts.items()},
                    "left_out": splits.left_out,
                }
                for splits in grid[cell]
            ]
            for cell in grid.cells
        },
        "empty": [str(cell) for cell in cells if cell not in grid.corpora],
        "bridges": {f"{first} {second}": shared for (first, second), shared in bridges(grid.cells).items()},
        "notes": [note] if note else [],
        "problems": [{"level": p.level, "where": p.where, "message": p.text} for p in problems],
    }


def _show(data: Path, grid: "Grid", problems: "Sequence[Message]") -> None:
    from rich.console import Console
    from rich.markup import escape

    from crossfill.grid.partition import bridge_note

    console = Console(highlight=False)
    sizes = {"language": len(grid.languages), "task": len(grid.tasks)}
    languages, tasks = (f"{n} {noun}{'' if n == 1 else 's'}" for noun, n in sizes.items())
    console.print(f"[bold]{escape(str(data))}[/]", soft_wrap=True)
    console.print(f"{languages} × {tasks}, {len(grid.cells)} of {sizes['language'] * sizes['task']} cells have data\n")
    fits = console.measure(_matrix(grid, grid.tasks)).maximum < console.width
    for shown in [grid.tasks] if fits else [[task] for task in grid.tasks]:
        print_table(console, _matrix(grid, shown))
    amounts = [(f"[{colour}]{mark}[/]", meaning) for mark, colour, _, meaning in _SHADES]
    legend = (f"{mark} [bright_black]{m}[/]" for mark, m in (*amounts, (_TEST_ONLY, "test only"), (_EMPTY, "empty")))
    console.print(f" training sentences: {'  '.join(legend)}\n")
    print_table(console, _labels_table(grid))
    if note := bridge_note(grid.cells):
        console.print(f"{note[0].upper()}{note[1:]}.\n", markup=False)
    show_problems(console, problems)


def _matrix(grid: "Grid", tasks: Sequence[str]) -> "Table":
    """Lay out the cells of some tasks: a coloured mark, and the number of sentences of each split."""
    from rich.markup import escape
    from rich.table import Table

    from crossfill.data.codes import language_name
    from crossfill.grid.cells import Cell

    sizes = {
        cell: sum((Counter({name: len(c) for name, c in splits.parts.items()}) for splits in grid[cell]), Counter())
        for cell in grid.cells
    }
    names = ["train", "dev", "test", *(["surplus"] if any(size["surplus"] for size in sizes.values()) else [])]

    def row(size: Mapping[str, int]) -> str:
        return "".join(f"{(size[name] and f'{size[name]:,}') or '·':>8}" for name in names)

    def cell_text(cell: Cell) -> str:
        if cell not in sizes:
            return _EMPTY
        n = sizes[cell]["train"] or sizes[cell]["surplus"]
        mark = next((f"[{colour}]{mark}[/]" for mark, colour, least, _ in _SHADES if n >= least), _TEST_ONLY)
        several = f" [bright_black]{len(grid[cell])}×[/]" if len(grid[cell]) > 1 else ""
        return mark + row(sizes[cell]) + several

    header = "".join(f"{name:>8}" for name in names)
    table = Table("", "language", *(f"[bold]{escape(task)}[/]\n {header}" for task in tasks))
    for code in grid.languages:
        table.add_row(f"[bold]{code}[/]", language_name(code), *(cell_text(Cell(task, code)) for task in tasks))
    table.add_section()
    totals = [sum((size for cell, size in sizes.items() if cell.task == task), Counter()) for task in tasks]
    table.add_row("[bold]all[/]", "", *(f" {row(total)}" for total in totals))
    return table


def _labels_table(grid: "Grid") -> "Table":
    """Lay out each task with its labels, most frequent first."""
    from rich.markup import escape
    from rich.table import Table

    from crossfill.grid.task import Unit

    table = Table("task", "labels", "by frequency")
    table.columns[1].justify = "right"
    for task in grid.tasks:
        counts, unit = _label_counts(grid, task), grid.inventory.task(task).unit
        labels = []
        for label, n in counts.most_common(_MOST_LABELS):
            share = f"{n:,}×" if n < 0.001 * counts.total() else f"{n / counts.total():.1%}"
            labels.append(f"{escape(visible(label))}[bright_black]={share}[/]")
        if len(counts) > _MOST_LABELS:
            labels.append(f"[bright_black]and {len(counts) - _MOST_LABELS:,} more[/]")
        name = task if unit is Unit.WORD else f"{task} ({unit}s)"
        table.add_row(f"[bold]{escape(name)}[/]", f"{len(counts):,}", "  ".join(labels))
    return table


def show_problems(console: "Console", problems: "Sequence[Message]") -> None:
    """Print all problems by level: each message once, with all its places."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from crossfill.data.messages import grouped_messages

    for level, (colour, title) in LEVELS.items():
        chosen = [problem for problem in problems if problem.level == level]
        places: dict[str, list[str]] = {}
        for problem in grouped_messages(chosen):
            places.setdefault(visible(problem.text), []).append(visible(problem.where))
        table = Table.grid(padding=(0, 2))
        for message, where in places.items():
            if level in ("error", "recognised", "unread"):  # their places are long: file and line
                table.add_row(Text(", ".join(where), colour).append(f": {message}", "default"))
            else:
                table.add_row(Text(", ".join(sorted(where)), colour), Text(message))
        if level in ("warning", "note") and table.columns:
            table.columns[0].max_width = 30
        if places:
            console.print(Text(f" {title} ({len(chosen):,})", style=f"bold {colour}"))
            console.print(Padding(table, (0, 0, 1, 3)))
