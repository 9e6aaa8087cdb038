"""Progress of long work: a bar with rate and time left on a terminal, a plain line now and then elsewhere."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 10.0


class ProgressBar:
    """A context in which `update` shows how far the work is."""

    def __init__(self, title: str, total: int, done: int = 0, quiet: bool = False) -> None:
        self.title, self.total, self.first, self.done = title, total, done, done
        self.console = Console(stderr=True, quiet=quiet)
        self.started = self.last_line = time.monotonic()
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]} {task.fields[note]}"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=quiet or not self.console.is_terminal,
        )
        self.task = self.bar.add_task(title, total=total, completed=done, rate="", note="")

    def update(self, done: int, note: str = "") -> None:
        """Show that this much is done, with a few words on how it goes."""
        self.done = done
        rate = (done - self.first) / max(1e-9, time.monotonic() - self.started)
        self.bar.update(self.task, completed=done, rate=f"{rate:.0f}/s", note=note)
        if self.bar.disable and time.monotonic() - self.last_line > SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            left = (self.total - done) / max(1e-9, rate)
            self.console.print(f"{self.title}: {done}/{self.total}, {rate:.0f}/s, {left:.0f} s left, {note}")

    def __enter__(self) -> "ProgressBar":
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()
