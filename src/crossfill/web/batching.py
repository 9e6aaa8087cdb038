"""Batching of concurrent requests: a bounded queue, and one thread that empties it."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


class OverloadedError(Exception):
    """The queue is full."""


class StoppingError(Exception):
    """The server is stopping."""


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[Job, Result]):
    job: Job
    cost: int
    future: "asyncio.Future[Result]"


class Batcher(Generic[Job, Result]):
    """Runs jobs in batches of whatever arrived during the last batch, so that a single client is served at once.

    `run` returns a result or an exception for each job. If it raises, the jobs of the batch are run one by one, so that
    one bad job does not fail the others.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Job]], Sequence[Result | Exception]],
        capacity: int,
        most_jobs: int,
        most_cost: int,
    ) -> None:
        self._run, self.capacity, self._most_jobs, self._most_cost = run, capacity, most_jobs, most_cost
        self._waiting: deque[_Waiting[Job, Result]] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tagging")
        self._worker: asyncio.Task[None] | None = None
        self.n_batches = self.n_jobs = 0

    @property
    def n_waiting(self) -> int:
        """Number of jobs that are not yet in a batch."""
        return len(self._waiting)

    def start(self) -> None:
        """Start to process jobs; needs a running event loop."""
        self._worker = asyncio.create_task(self._work())

    async def close(self) -> None:
        """Finish the current batch; waiting jobs fail with StoppingError."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
        while self._waiting:
            _settle(self._waiting.popleft().future, StoppingError())
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)

    async def submit(self, job: Job, cost: int, timeout: float) -> Result:
        """The result of a job; OverloadedError if the queue is full, TimeoutError after `timeout` seconds."""
        if self._worker is None or self._worker.done():
            raise StoppingError
        if len(self._waiting) >= self.capacity:
            raise OverloadedError
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(job, cost, future))
        self._arrived.set()
        return await asyncio.wait_for(future, timeout)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            await asyncio.sleep(0)  # let other ready clients submit before the batch is formed
            if batch := self._next_batch():
                self.n_batches, self.n_jobs = self.n_batches + 1, self.n_jobs + len(batch)
                running = loop.run_in_executor(self._thread, self._run_batch, [waiting.job for waiting in batch])
                try:
                    results = await asyncio.shield(running)
                except asyncio.CancelledError:
                    results = await running
                    _settle_all(batch, results)
                    raise
                _settle_all(batch, results)
            if not self._waiting:
                self._arrived.clear()

    def _next_batch(self) -> list[_Waiting[Job, Result]]:
        """The jobs that have waited longest, as many as fit; those that timed out or were cancelled are dropped."""
        batch, cost = [], 0
        while self._waiting and len(batch) < self._most_jobs:
            if self._waiting[0].future.done():
                self._waiting.popleft()
                continue
            if batch and cost + self._waiting[0].cost > self._most_cost:
                break
            batch.append(self._waiting.popleft())
            cost += batch[-1].cost
        return batch

    def _run_batch(self, jobs: Sequence[Job]) -> Sequence[Result | Exception]:
        try:
            return self._run(jobs)
        except Exception as error:
            if len(jobs) == 1:
                return [error]
            return [result for job in jobs for result in self._run_batch([job])]


def _settle_all(batch: Sequence[_Waiting[Job, Result]], results: Sequence[Result | Exception]) -> None:
    for waiting, result in zip(batch, results, strict=True):
        _settle(waiting.future, result)


def _settle(future: "asyncio.Future[Result]", result: Result | Exception) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
