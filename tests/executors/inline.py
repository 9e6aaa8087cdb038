"""An executor without processes."""

from collections.abc import Iterator, Mapping
from typing import Any

from crossfill.executors.base import Event, Executor, Started, Work, attempt, ended


class InlineExecutor(Executor):
    """One job after the other, in this process."""

    slots = 1

    def run(self, work: Work, jobs: Mapping[str, dict[str, Any]]) -> Iterator[Event]:
        for job, given in jobs.items():
            yield Started(job)
            yield ended(job, attempt(work, given, 1))
