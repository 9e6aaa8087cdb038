"""Batches: whatever waits goes together, in order and within bounds; failures and late answers stay alone."""

import asyncio
import threading
import time
from typing import NamedTuple

import pytest

from crossfill.web.problems import ApiError
from crossfill.web.request_queue import Batcher


class Number(NamedTuple):
    """A job."""

    value: int
    work: int = 1


class Work:
    """Doubles numbers, slowly, and remembers its batches; a negative number fails, zero brings the batch down."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = threading.Event()

    def __call__(self, numbers):
        jobs = [number.value for number in numbers]
        self.batches.append(jobs)
        self.gate.wait(5)
        if 0 in jobs:
            raise ZeroDivisionError
        return [ValueError(str(job)) if job < 0 else 2 * job for job in jobs]


def run(scenario, **options):
    async def whole():
        work = Work()
        batcher = Batcher(work, **({"capacity": 100, "most_jobs": 8, "most_work": 1000} | options))
        batcher.start()
        try:
            return await asyncio.wait_for(scenario(batcher, work), 10)
        finally:
            work.gate.set()
            await batcher.close()

    return asyncio.run(whole())


async def begun(work: Work) -> None:
    while not work.batches:
        await asyncio.sleep(0.001)


def test_a_lone_job_starts_at_once_and_the_rest_waits_for_it_together():
    async def scenario(batcher, work):
        first = asyncio.create_task(batcher.submit(Number(1)))
        await begun(work)
        rest = [asyncio.create_task(batcher.submit(Number(n))) for n in range(2, 12)]
        await asyncio.sleep(0.01)
        assert batcher.n_waiting == 10
        work.gate.set()
        assert await asyncio.gather(first, *rest) == [2 * n for n in range(1, 12)]
        assert work.batches == [[1], list(range(2, 10)), [10, 11]]

    run(scenario)


def test_batches_keep_to_their_cost_but_no_job_starves():
    async def scenario(batcher, work):
        tasks = [asyncio.create_task(batcher.submit(Number(n, cost))) for n, cost in enumerate([40, 70, 500, 20], 1)]
        work.gate.set()
        await asyncio.gather(*tasks)
        assert work.batches == [[1], [2], [3], [4]]

    run(scenario, most_work=100)


def test_more_than_may_wait_are_turned_away_at_once():
    async def scenario(batcher, work):
        running = asyncio.create_task(batcher.submit(Number(1)))
        await begun(work)
        waiting = [asyncio.create_task(batcher.submit(Number(n))) for n in (2, 3)]
        await asyncio.sleep(0.01)
        started = time.perf_counter()
        with pytest.raises(ApiError, match="too many requests"):
            await batcher.submit(Number(4))
        assert time.perf_counter() - started < 0.1
        work.gate.set()
        assert await asyncio.gather(running, *waiting) == [2, 4, 6]

    run(scenario, capacity=2)


def test_bad_jobs_fail_alone():
    async def scenario(batcher, work):
        first = asyncio.create_task(batcher.submit(Number(9)))
        await begun(work)
        jobs = [asyncio.create_task(batcher.submit(Number(n))) for n in (1, -2, 0, 3)]
        await asyncio.sleep(0.01)
        work.gate.set()
        await first
        found = await asyncio.gather(*jobs, return_exceptions=True)
        assert found[0] == 2
        assert isinstance(found[1], ValueError)
        assert isinstance(found[2], ZeroDivisionError)
        assert found[3] == 6

    run(scenario)


def test_who_gives_up_is_dropped_from_the_line():
    async def scenario(batcher, work):
        running = asyncio.create_task(batcher.submit(Number(1)))
        await begun(work)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(batcher.submit(Number(2)), 0.02)
        last = asyncio.create_task(batcher.submit(Number(3)))
        await asyncio.sleep(0.01)
        work.gate.set()
        assert await asyncio.gather(running, last) == [2, 6]
        assert work.batches == [[1], [3]]

    run(scenario)


def test_closing_finishes_the_batch_at_hand_and_lets_go_of_the_rest():
    async def scenario(batcher, work):
        running = asyncio.create_task(batcher.submit(Number(1)))
        await begun(work)
        waiting = asyncio.create_task(batcher.submit(Number(2)))
        await asyncio.sleep(0.01)
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0.01)
        work.gate.set()
        await closing
        assert await running == 2
        with pytest.raises(ApiError, match="stopping"):
            await waiting
        with pytest.raises(ApiError, match="stopping"):
            await batcher.submit(Number(3))

    run(scenario)
