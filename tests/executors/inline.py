"""An executor without processes."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from crossfill.executors.base import Event, Executor, JobQueue, Started, Work, attempt, ended


class InlineExecutor(Executor):
    """One job after the other, in this process."""

    slots = 1

    def run(
        self, work: Work, jobs: Mapping[str, dict[str, Any]], after: Mapping[str, Collection[str]]
    ) -> Iterator[Event]:
        queue = JobQueue(jobs, after)
        while queue.ready:
            job = queue.take()
            yield Started(job)
            yield from queue.end(ended(job, attempt(work, jobs[job], 1)))
