"""Reading a data folder for a command: its progress, and what a person should know of its files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from crossfill.cli.terminal import visible
from crossfill.data import folder
from crossfill.data.checks import Level, Problem, check_grid
from crossfill.data.layout import SourceFile
from crossfill.data.unread import summed
from crossfill.errors import DataError
from crossfill.grid.cells import Grid
from crossfill.progress import ProgressBar

_LEVELS: dict[Level, tuple[str, str]] = {
    "error": ("red", "left out"),
    "warning": ("yellow", "warnings"),
    "recognised": ("cyan", "columns recognised"),
    "note": ("bright_black", "changed on reading"),
    "unread": ("bright_black", "not read"),
}
BEFORE_TRAINING: tuple[Level, ...] = ("warning", "recognised", "unread")
"""What is told again when a folder is trained on; errors end it, and notes are for `crossfill grid`."""


def read_showing_progress(
    data: Path,
    tasks: Sequence[str] = (),
    seed: int = 0,
    max_train: int | None = None,
    cache: Path | bool = True,
    strict: bool = False,
    quiet: bool = False,
) -> folder.FolderReading:
    """Read a data folder with a progress bar."""

    def watch(sources: Sequence[SourceFile]) -> Iterator[SourceFile]:
        with ProgressBar(quiet) as bars:
            update = bars.add("Reading corpora", len(sources))
            for done, source in enumerate(sources):
                update(done, "files")
                yield source

    return folder.read_folder(
        data, tasks=tasks, seed=seed, max_train=max_train, cache=cache, strict=strict, watch=watch
    )


def read_to_train(
    data: Path,
    tasks: Sequence[str] = (),
    seed: int = 0,
    max_train: int | None = None,
    cache: Path | bool = True,
    strict: bool = False,
    quiet: bool = False,
) -> Grid:
    """The grid of a data folder; warnings, recognised columns and files not read are told on standard error.

    Files that cannot be read are an error that lists them all, as in `load_grid`.
    """
    reading = read_showing_progress(data, tasks, seed, max_train, cache, strict, quiet)
    if reading.errors:
        raise DataError("\n".join(map(str, reading.errors)))
    if not quiet:
        problems = [*reading.problems, *check_grid(reading.grid)]
        told = [problem for problem in problems if problem.level in BEFORE_TRAINING]
        if told:
            Console(stderr=True, highlight=False).print(problems_table(told))
    return reading.grid


def problems_table(problems: Sequence[Problem]) -> RenderableType:
    """All problems: errors, warnings, columns, notes, files not read; each message once, with all its places."""
    groups: list[RenderableType] = []
    shown = summed(problems)
    for level, (colour, title) in _LEVELS.items():
        told: dict[str, list[str]] = {}
        for problem in shown:
            if problem.level == level:
                told.setdefault(problem.message, []).append(problem.where)
        if not told:
            continue
        table = Table.grid(padding=(0, 2))
        if level in ("error", "recognised", "unread"):  # their places are long: file and line
            for message, places in told.items():
                table.add_row(Text(visible(", ".join(places)), colour).append(f": {visible(message)}", "default"))
        else:
            table.add_column(style=colour, max_width=30)
            for message, places in told.items():
                table.add_row(Text(visible(", ".join(sorted(places)))), Text(visible(message)))
        n_problems = sum(problem.level == level for problem in problems)
        groups += [Text(f" {title} ({n_problems:,})", style=f"bold {colour}"), Padding(table, (0, 0, 1, 3))]
    return Group(*groups)
