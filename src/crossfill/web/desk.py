"""Where requests of every kind are handed in: one queue, one limit of time, the same problems."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from fastapi import Request

from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.prediction.tagging import Tagging, TaggingOptions
from crossfill.web.batching import Batcher, OverloadedError, StoppingError
from crossfill.web.engine import Engine, Job
from crossfill.web.problems import ApiError, busy, unavailable
from crossfill.web.settings import BATCH_WORK, ServeSettings

Read = TypeVar("Read")


class Document(NamedTuple):
    """Text that another program sent, and how it wants the answer."""

    sentences: Sequence[Sentence]
    answer: Callable[[Sequence[Tagging]], bytes]


class Desk:
    """Takes jobs, and waits for their answers."""

    def __init__(self, engine: Engine, settings: ServeSettings) -> None:
        self.engine, self.settings = engine, settings
        self.batcher: Batcher[Job, Any] = Batcher(engine.run, settings.queue, settings.batch_requests, BATCH_WORK)

    async def do(self, request: Request, job: Job) -> Any:
        """The answer to a job; nobody works on it any more once the client has gone away."""
        return await self._within(request, self._submit(job))

    async def tag(
        self,
        request: Request,
        read: Callable[[], Document],
        cell: Cell,
        options: TaggingOptions | None = None,
    ) -> bytes:
        """Read a document, tag it in a cell, and write the answer.

        Its sentences may be more than a request to the API can have: they are tagged in parts, between which others
        have their turn.
        """

        async def work() -> Any:
            document: Document = await self._submit(_call(read))
            taggings: list[Tagging] = []
            for part in self.engine.parts(document.sentences):
                taggings += await self._submit(self.engine.tagging(part, cell, options or TaggingOptions()))
            return await self._submit(_call(lambda: document.answer(taggings)))

        return await self._within(request, work())

    async def call(self, request: Request, work: Callable[[], Read]) -> Read:
        """Do something else on the tagging thread."""
        return await self.do(request, _call(work))

    async def _submit(self, job: Job) -> Any:
        return await self.batcher.submit(job, job.work, self.settings.timeout)

    async def _within(self, request: Request, answer: Coroutine[Any, Any, Any]) -> Any:
        seconds = self.settings.timeout
        try:
            async with asyncio.timeout(seconds):
                return await _unless_gone(request, answer)
        except OverloadedError:
            raise busy() from None
        except TimeoutError:
            raise unavailable(f"no answer within {seconds:g} seconds; send less, or try again") from None
        except StoppingError:
            raise unavailable("the server is stopping") from None


def _call(work: Callable[[], Any]) -> Job:
    return Job(tuple, lambda _: work())


async def _unless_gone(request: Request, answer: Coroutine[Any, Any, Any]) -> Any:
    """The answer, unless the client goes away before it is ready: then nobody works on it any more."""
    ready, gone = asyncio.create_task(answer), asyncio.create_task(_disconnect(request))
    try:
        await asyncio.wait((ready, gone), return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            raise ApiError(499, "gone", "the client went away")
        return ready.result()
    finally:
        ready.cancel()
        gone.cancel()


async def _disconnect(request: Request) -> None:
    """Wait until the client goes away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
