"""`crossfill grid DATA`: the grid as a table, its labels, what is empty, what is wrong."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crossfill.cli.options import AsJson, DataFolder, Tasks

if TYPE_CHECKING:
    from crossfill.data.messages import Message
    from crossfill.grid.cells import Cell, Grid


def grid(
    data: DataFolder,
    task: Tasks = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Reject files with bad lines; exit with code 2 if any file was rejected."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a data folder as a grid: sizes per cell, labels, what is empty, what is wrong."""
    from crossfill.cli.reading import read_showing_progress
    from crossfill.data.folder import ReadOptions
    from crossfill.data.messages import check_grid

    reading = read_showing_progress(data, ReadOptions(task or (), strict=strict))
    problems = [*reading.problems, *check_grid(reading.grid)]
    if as_json:
        typer.echo(json.dumps(_as_json(data, reading.grid, problems), ensure_ascii=False, indent=2))
    else:
        _show(data, reading.grid, problems)
    if strict and reading.errors:
        raise typer.Exit(2)


def _sizes(grid: "Grid", cell: "Cell") -> dict[str, int]:
    sizes: Counter[str] = Counter()
    for splits in grid[cell]:
        sizes.update({name: len(corpus) for name, corpus in splits.parts.items()})
    return sizes


def _label_counts(grid: "Grid", task: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for cell in grid.cells:
        if cell.task == task:
            for splits in grid[cell]:
                for corpus in splits.parts.values():
                    counts += corpus.labels.counts()
    return counts


def _as_json(data: Path, grid: "Grid", problems: "Sequence[Message]") -> dict[str, Any]:
    from crossfill.data.codes import language_name
    from crossfill.grid.bridges import bridge_note, bridges
    from crossfill.grid.cells import Cell

    note = bridge_note(grid.cells)
    return {
        "path": str(data),
        "tasks": {
            task: {"unit": grid.inventory.unit(task), "labels": dict(sorted(_label_counts(grid, task).items()))}
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
        "empty": [
            f"{task}/{language}"
            for task in grid.tasks
            for language in grid.languages
            if Cell(task, language) not in grid.corpora
        ],
        "bridges": {f"{first} {second}": shared for (first, second), shared in bridges(grid.cells).items()},
        "notes": [note] if note else [],
        "problems": [{"level": p.level, "where": p.where, "message": p.text} for p in problems],
    }


def _show(data: Path, grid: "Grid", problems: "Sequence[Message]") -> None:
    from rich.console import Console
    from rich.text import Text

    from crossfill.cli.matrix import labels_table, legend, matrices
    from crossfill.cli.reading import problems_table
    from crossfill.grid.bridges import bridge_note
    from crossfill.grid.task import Unit

    console = Console(highlight=False)
    n_cells = len(grid.tasks) * len(grid.languages)
    tasks = "task" if len(grid.tasks) == 1 else "tasks"
    languages = "language" if len(grid.languages) == 1 else "languages"
    console.print(Text(str(data), "bold"), soft_wrap=True)
    console.print(
        f"{len(grid.languages)} {languages} × {len(grid.tasks)} {tasks}, "
        f"{len(grid.cells)} of {n_cells} cells have data\n"
    )
    sizes = {cell: _sizes(grid, cell) for cell in grid.cells}
    n_corpora = {cell: len(grid[cell]) for cell in grid.cells}
    for table in matrices(grid.tasks, grid.languages, sizes, n_corpora, console):
        console.print(table)
        console.print()
    console.print(legend())
    units = {task: grid.inventory.unit(task) for task in grid.tasks}
    named = {task: task if unit is Unit.WORD else f"{task} ({unit}s)" for task, unit in units.items()}
    console.print(labels_table({named[task]: _label_counts(grid, task) for task in grid.tasks}))
    if note := bridge_note(grid.cells):
        console.print()
        console.print(Text(note[0].upper() + note[1:] + "."))
    if problems:
        console.print()
        console.print(problems_table(problems))
