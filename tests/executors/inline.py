"""An executor without processes."""

from collections.abc import Iterator, Mapping

from crossfill.executors.worker_jobs import Advanced, Event, Executor, JobQueue, WorkerJob, attempt


class InlineExecutor(Executor):
    """One job after the other, in this process."""

    def run(self, jobs: Mapping[str, WorkerJob]) -> Iterator[Event]:
        queue = JobQueue(jobs)
        while queue.ready:
            name = queue.take()
            yield Advanced(name)
            yield from queue.end(attempt(name, jobs[name].work, 1))
