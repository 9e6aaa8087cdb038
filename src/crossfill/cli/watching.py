"""Progress of jobs on an executor."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Protocol


class Standing(Protocol):
    """How far jobs are."""

    total: int
    done: int

    @property
    def failed(self) -> Collection[str]: ...

    def line(self) -> str:
        """Describe the progress."""
        ...


@contextmanager
def watching(quiet: bool) -> Iterator[Callable[[Standing, str], None]]:
    """Show progress: a bar on a terminal; elsewhere a line per event and a line every 10 seconds."""
    from crossfill.progress import ProgressBar

    with ProgressBar(quiet) as bars:
        report = bars.add("jobs")

        def watch(standing: Standing, event: str) -> None:
            report(standing.done + len(standing.failed), standing.line())
            if event:
                bars.print(f"{standing.line()}; {event}" if bars.plain else event)

        yield watch
