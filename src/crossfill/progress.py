"""Progress of long-running work: bars with rate and time left on a terminal, a line every 10 seconds elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

SECONDS_BETWEEN_LINES = 10.0
_WIDEST_BAR = 24


def duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours.

    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5970 else f"{seconds / 3600:.1f} h"


@contextmanager
def every(seconds: float, call: Callable[[], None], first: float | None = None) -> Iterator[None]:
    """Call a function every so many seconds from a thread, also while the block is busy with one long step.

    The first call comes after `first` seconds, if that is given.
    """
    over = threading.Event()

    def repeat() -> None:
        wait = seconds if first is None else first
        while not over.wait(wait):
            call()
            wait = seconds

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass
class Work:
    """A piece of work and how far it is."""

    title: str
    total: int | None
    """None if there is nothing to count, as for the stages of an export."""
    started: float
    done: int = 0
    note: str = ""
    first: tuple[float, int] | None = None
    """Time and amount of the first report: a run that is resumed does not begin at 0."""

    @property
    def is_done(self) -> bool:
        return self.total is not None and self.done >= self.total

    def report(self, done: int, note: str, now: float) -> None:
        """Take note of the amount done."""
        self.done, self.note = done, note
        if self.first is None:
            self.first = now, done

    def state(self, now: float) -> str:
        """Amount done, rate and time left, or else the time so far; then the note.

        >>> work = Work("Reading", 100, started=0.0)
        >>> work.report(0, "files", now=0.0)
        >>> work.report(20, "files", now=60.0)
        >>> work.state(now=60.0)
        '20/100, 3 s each, 4 min left, files'
        """
        since, at_first = self.first or (self.started, self.done)
        amount, seconds = self.done - at_first, now - since
        parts = [] if self.total is None else [f"{self.done:,}/{self.total:,}"]
        if self.is_done:
            parts.append("done")
        elif self.total is not None and amount > 0 and seconds > 0:
            rate = amount / seconds
            each = f"{rate:,.0f}/s" if rate >= 1 else f"{duration(1 / rate)} each"
            parts += [each, f"{duration((self.total - self.done) / rate)} left"]
        else:
            parts.append(f"{duration(now - self.started)} so far")
        return ", ".join([*parts, *([self.note] if self.note else [])])


class _State(ProgressColumn):
    """Column of a bar: the state of its work, computed whenever the bar is drawn."""

    def render(self, task: Task) -> Text:
        return Text(task.fields["work"].state(time.monotonic()), no_wrap=True, overflow="ellipsis")


class ProgressBar:
    """Context manager that shows one bar, or one line every 10 seconds, for each piece of work added to it."""

    last_line: ClassVar[float | None] = None
    """When any bar of this process last printed lines, so that many short bars print no more than a long one."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self.plain = not quiet and (not self.console.is_terminal or self.console.is_dumb_terminal)
        self.works: list[Work] = []
        self.bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=min(_WIDEST_BAR, self.console.width // 4)),
            _State(),
            console=self.console,
            transient=True,
            disable=quiet or self.plain,
        )
        self._open = ExitStack()
        self._told_all = False
        """Whether lines have said already that all work is done."""

    def add(self, title: str, total: int | None = None) -> Callable[[int, str], None]:
        """Add a piece of work; returns a function that is told the amount done and a note.

        Call it with 0 when the work begins, so that the first part counts towards the rate.
        """
        now = time.monotonic()
        work = Work(title, total, now)
        self.works.append(work)
        if self.plain and len(self.works) == 1:
            ProgressBar.last_line = ProgressBar.last_line or now
            due = max(0.0, ProgressBar.last_line + SECONDS_BETWEEN_LINES - now)
            self._open.enter_context(every(SECONDS_BETWEEN_LINES, self.print_lines, due))
        task = self.bars.add_task(title, total=total, work=work)

        def update(done: int, note: str) -> None:
            work.report(done, note, time.monotonic())
            self.bars.update(task, completed=done)

        return update

    def print_lines(self) -> None:
        """Print a line for each piece of work that is not done, or once for all if all are."""
        now = ProgressBar.last_line = time.monotonic()
        going = [work for work in self.works if not work.is_done]
        shown = going or ([] if self._told_all else self.works)
        self._told_all = not going
        for work in shown:
            self.console.print(f"{work.title}: {work.state(now)}", markup=False, soft_wrap=True)

    def __enter__(self) -> "ProgressBar":
        self._open.enter_context(self.bars)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
