"""The queue of requests: bounded in length and in time, emptied in batches by one thread."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import Request, Response

from crossfill.prediction.tagging import Tagging
from crossfill.web.engine import Engine, Job, ReadRequest
from crossfill.web.problems import ApiError
from crossfill.web.serve_settings import BATCH_WORK, ServeSettings

Value = TypeVar("Value")


class Batcher:
    """Runs jobs in batches of whatever arrived during the last batch, so that a single client is served at once.

    `run` returns a result or an exception for each job. If it raises, the jobs of the batch are run one by one, so that
    one bad job does not fail the others.
    """

    def __init__(
        self, run: Callable[[Sequence[Job]], Sequence[Any]], capacity: int, most_jobs: int, most_work: int
    ) -> None:
        self._run, self.capacity, self._most_jobs, self._most_work = run, capacity, most_jobs, most_work
        self._waiting: deque[tuple[Job, asyncio.Future[Any]]] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tagging")
        self._worker: asyncio.Task[None] | None = None

    @property
    def n_waiting(self) -> int:
        """Number of jobs that are not yet in a batch."""
        return len(self._waiting)

    def start(self) -> None:
        """Start to process jobs; needs a running event loop."""
        self._worker = asyncio.create_task(self._work())

    async def close(self) -> None:
        """Finish the current batch, and have waiting jobs fail."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
        _settle([future for _, future in self._waiting], [_stopping()] * self.n_waiting)
        self._waiting.clear()
        await asyncio.to_thread(self._thread.shutdown)

    async def submit(self, job: Job) -> Any:
        """Wait for the result of a job; a problem if the queue is full, or the server is stopping."""
        if self._worker is None or self._worker.done():
            raise _stopping()
        if self.n_waiting >= self.capacity:
            raise _busy()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((job, future))
        self._arrived.set()
        return await future

    async def _work(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(0)  # let other ready clients submit before the batch is formed
            if batch := self._next_batch():
                jobs, futures = zip(*batch, strict=True)
                running = asyncio.get_running_loop().run_in_executor(self._thread, self._run_batch, jobs)
                try:
                    await asyncio.shield(running)
                finally:  # also if this task is cancelled: a batch that was begun is finished
                    _settle(futures, await running)
            if not self._waiting:
                self._arrived.clear()

    def _next_batch(self) -> list[tuple[Job, asyncio.Future[Any]]]:
        """Take the jobs that have waited longest, as many as fit; drop those that timed out or were cancelled."""
        batch, work = [], 0
        while self._waiting and len(batch) < self._most_jobs:
            job, future = self._waiting[0]
            if not future.done():
                if batch and work + job.work > self._most_work:
                    break
                batch.append((job, future))
                work += job.work
            self._waiting.popleft()
        return batch

    def _run_batch(self, jobs: Sequence[Job]) -> Sequence[Any]:
        try:
            return self._run(jobs)
        except Exception as error:
            return [error] if len(jobs) == 1 else [result for job in jobs for result in self._run_batch([job])]


def _settle(futures: Sequence[asyncio.Future[Any]], results: Sequence[Any]) -> None:
    for future, result in zip(futures, results, strict=True):
        if not future.done():
            (future.set_exception if isinstance(result, Exception) else future.set_result)(result)


def _busy() -> ApiError:
    return ApiError(429, "too many requests are waiting; try again in a second")


def _stopping() -> ApiError:
    return ApiError(503, "the server is stopping")


class RequestQueue:
    """Takes jobs of requests, and waits for their answers."""

    def __init__(self, engine: Engine, settings: ServeSettings) -> None:
        self.engine, self.settings, self._calls = engine, settings, 0
        # votes (BEA) depend on all words that are tagged together
        most_jobs = 1 if engine.tagger.model.heads.vote is not None else settings.batch_requests
        self.batcher = Batcher(engine.run, settings.queue, most_jobs, BATCH_WORK)

    async def do(self, request: Request, work: Coroutine[Any, Any, Value]) -> Value:
        """Wait for an answer within the limit of time, unless the client goes away: then nobody works on it."""
        ready, gone = asyncio.create_task(work), asyncio.create_task(_disconnect(request))
        try:
            async with self._in_time():
                await asyncio.wait((ready, gone), return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise ApiError(499, "the client went away")
            return ready.result()
        finally:
            ready.cancel()
            gone.cancel()

    async def tag(self, request: Request, read: Callable[[], ReadRequest]) -> Response:
        """Read a request, tag its jobs one after the other, so that others have their turn, and answer in JSON."""

        async def work() -> bytes:
            jobs, answer = await self.call(read)
            taggings: list[Tagging] = []
            for job in jobs:
                taggings += await self.batcher.submit(job)
            return await asyncio.to_thread(lambda: json.dumps(answer(taggings), ensure_ascii=False).encode())

        return Response(await self.do(request, work()), media_type="application/json")

    async def call(self, work: Callable[[], Value]) -> Value:
        """Wait for a blocking call in another thread; as many may run as jobs may wait."""
        if self._calls >= self.settings.queue:
            raise _busy()
        self._calls += 1
        try:
            async with self._in_time():
                return await asyncio.to_thread(work)
        finally:
            self._calls -= 1

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        seconds = self.settings.timeout
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise ApiError(503, f"no answer within {seconds:g} seconds; send less, or try again") from None


async def _disconnect(request: Request) -> None:
    """Wait until the client goes away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
