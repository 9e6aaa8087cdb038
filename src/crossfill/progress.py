"""Progress of long work: bars with rate and time left on a terminal, a line every 10 seconds elsewhere."""

import sys
import threading
import time
from collections.abc import Callable
from typing import ClassVar

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

SECONDS_BETWEEN_LINES = 10.0
Report = Callable[[int, str], None]
"""Takes the amount done, such as training steps, and a note."""


def duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5970 else f"{seconds / 3600:.1f} h"


def state(task: Task) -> str:
    """Describe a task: amount done, rate and time left, or else the time so far; then its note."""
    now, amount = task.get_time(), task.completed - task.fields["at_first"]
    parts = [] if task.total is None else [f"{task.completed:,.0f}/{task.total:,.0f}"]
    if task.finished:
        parts.append("done")
    elif task.total is not None and amount > 0 and now > task.fields["since"]:
        rate = amount / (now - task.fields["since"])
        parts.append(f"{rate:,.0f}/s" if rate >= 1 else f"{duration(1 / rate)} each")
        parts.append(f"{duration((task.total - task.completed) / rate)} left")
    else:
        parts.append(f"{duration(task.elapsed or 0)} so far")
    return ", ".join([*parts, *filter(None, [task.fields["note"]])])


class _State(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(state(task), no_wrap=True, overflow="ellipsis")


class ProgressBar:
    """Context manager that shows one bar, or one line every 10 seconds, for each piece of work added to it."""

    last_line: ClassVar[float | None] = None
    """When any bar of this process last printed lines: many short bars print no more than a long one."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(file=sys.stderr, quiet=quiet, highlight=False)  # also while work redirects it to a log
        self.plain = not quiet and (not self.console.is_terminal or self.console.is_dumb_terminal)
        self.bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=min(24, self.console.width // 4)),
            _State(),
            console=self.console,
            transient=True,
            disable=quiet or self.plain,
        )
        self._over = threading.Event()
        self._printer = threading.Thread(target=self._print_regularly, daemon=True)

    def add(self, title: str, total: int | None = None) -> Report:
        """Add a piece of work, of no known amount if `total` is None; returns the function that reports on it.

        Call that when the work begins, with 0 or the amount that was done before: the rate is counted from there.
        """
        number = self.bars.add_task(title, total=total, note="", since=None, at_first=0)
        task = next(task for task in self.bars.tasks if task.id == number)

        def report(done: int, note: str) -> None:
            if task.fields["since"] is None:
                task.fields.update(since=task.get_time(), at_first=done)
            self.bars.update(number, completed=done, note=note)

        return report

    def print(self, line: str) -> None:
        """Print a line, above the bars if there are any."""
        self.console.print(line, markup=False, soft_wrap=True)

    def print_lines(self) -> None:
        """Print a line for each piece of work that is not done."""
        ProgressBar.last_line = time.monotonic()
        for task in self.bars.tasks:
            if not task.finished:
                self.print(f"{task.description}: {state(task)}")

    def _print_regularly(self) -> None:
        """Print lines also while one step of the work takes long."""
        while not self._over.wait(max(0.0, (ProgressBar.last_line or 0) + SECONDS_BETWEEN_LINES - time.monotonic())):
            self.print_lines()

    def __enter__(self) -> "ProgressBar":
        if self.plain:
            ProgressBar.last_line = ProgressBar.last_line or time.monotonic()
            self._printer.start()
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self.plain:
            self._printer.join()
        self.bars.stop()
