"""Reading a data folder for a command: its progress, and what a person should know of its files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from crossfill.cli.options import QUIET
from crossfill.cli.terminal import visible
from crossfill.data.folder import FolderReading, ReadOptions, read_folder
from crossfill.data.layout import SourceFile
from crossfill.data.messages import Level, Message, check_grid, grouped
from crossfill.grid.cells import Grid
from crossfill.progress import ProgressBar

_LEVELS: dict[Level, tuple[str, str]] = {
    "error": ("red", "left out"),
    "warning": ("yellow", "warnings"),
    "recognised": ("cyan", "columns read"),
    "note": ("bright_black", "changed on reading"),
    "unread": ("bright_black", "not read"),
}
BEFORE_TRAINING: tuple[Level, ...] = ("warning", "recognised", "unread")
"""What is shown again when a folder is trained on; errors end it, and notes are for `crossfill grid`."""


def read_showing_progress(data: Path, options: ReadOptions) -> FolderReading:
    """Read a data folder with a progress bar."""

    def watch(sources: Sequence[SourceFile]) -> Iterator[SourceFile]:
        with ProgressBar(QUIET.get()) as bars:
            update = bars.add("Reading corpora", len(sources))
            for done, source in enumerate(sources):
                update(done, "files")
                yield source

    return read_folder(data, options, watch)


def read_to_train(data: Path, options: ReadOptions, silent: bool = False) -> Grid:
    """Read the grid of a data folder; warnings, columns and files not read are shown on standard error.

    Files that cannot be read are an error that lists them all, as in `load_grid`.
    """
    reading = read_showing_progress(data, options)
    grid = reading.checked()
    problems = [p for p in (*reading.problems, *check_grid(grid)) if p.level in BEFORE_TRAINING]
    if problems and not (silent or QUIET.get()):
        Console(stderr=True, highlight=False).print(problems_table(problems))
    return grid


def problems_table(problems: Sequence[Message]) -> RenderableType:
    """Lay out all problems: each message once, with all its places."""
    groups: list[RenderableType] = []
    shown = grouped(problems)
    for level, (colour, title) in _LEVELS.items():
        messages: dict[str, list[str]] = {}
        for problem in shown:
            if problem.level == level:
                messages.setdefault(problem.text, []).append(problem.where)
        if not messages:
            continue
        table = Table.grid(padding=(0, 2))
        if level in ("error", "recognised", "unread"):  # their places are long: file and line
            for message, places in messages.items():
                table.add_row(Text(visible(", ".join(places)), colour).append(f": {visible(message)}", "default"))
        else:
            table.add_column(style=colour, max_width=30)
            for message, places in messages.items():
                table.add_row(Text(visible(", ".join(sorted(places)))), Text(visible(message)))
        n_problems = sum(problem.level == level for problem in problems)
        groups += [Text(f" {title} ({n_problems:,})", style=f"bold {colour}"), Padding(table, (0, 0, 1, 3))]
    return Group(*groups)
