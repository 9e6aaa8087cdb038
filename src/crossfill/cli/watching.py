"""Progress of jobs on an executor."""

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

INTERRUPTED = 130
"""Exit code of a command that was told to stop."""


class Standing(Protocol):
    """How far jobs are."""

    total: int
    done: int

    @property
    def failed(self) -> Collection[str]: ...

    def line(self) -> str:
        """The progress as a line of text."""
        ...


@contextmanager
def watching(quiet: bool) -> Iterator[Callable[[Standing, str], None]]:
    """Show progress: a bar over jobs on a terminal; elsewhere a line per job and a line every 10 seconds."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from crossfill.progress import SECONDS_BETWEEN_LINES, every

    console = Console(stderr=True, quiet=quiet, highlight=False)
    drawn = console.is_terminal and not console.is_dumb_terminal
    columns = (BarColumn(bar_width=24), TextColumn("{task.fields[line]}"), TimeElapsedColumn())
    latest = "starting"

    def say(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    with Progress(*columns, console=console, transient=True, disable=quiet or not drawn) as bars, ExitStack() as more:
        bar = bars.add_task("jobs", line="")
        if not drawn:
            more.enter_context(every(SECONDS_BETWEEN_LINES, lambda: say(latest)))

        def watch(standing: Standing, told: str) -> None:
            nonlocal latest
            ended, latest = standing.done + len(standing.failed), standing.line()
            bars.update(bar, total=standing.total, completed=ended, line=latest)
            if told:
                say(told if drawn else f"{latest}; {told}")

        yield watch
