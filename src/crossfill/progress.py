"""Progress of long-running work: bars with rate and time left on a terminal, occasional plain lines elsewhere."""

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 10.0


def duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5970 else f"{seconds / 3600:.1f} h"


class ProgressBar:
    """Context manager that shows one bar for each piece of work added to it."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(stderr=True, quiet=quiet)
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=quiet or not self.console.is_terminal,
        )

    def add(self, title: str, total: int) -> Callable[[int, str], None]:
        """Add a piece of work; returns a function that updates its bar with the amount done and a note."""
        task = self.bars.add_task(title, total=total, note="")
        first: tuple[float, int] | None = None
        last_line = time.monotonic()

        def update(done: int, note: str) -> None:
            nonlocal first, last_line
            now = time.monotonic()
            if first is None:
                first = (now, done)
            rate = (done - first[1]) / max(1e-9, now - first[0])
            self.bars.update(task, completed=done, note=f"{rate:.0f}/s {note}")
            if self.bars.disable and now - last_line > SECONDS_BETWEEN_LINES and done > first[1]:
                last_line = now
                left = (total - done) / rate
                self.console.print(f"{title}: {done}/{total}, {rate:.0f}/s, {left:.0f} s left, {note}")

        return update

    def __enter__(self) -> "ProgressBar":
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()
