"""Local processes: results by job, failures told, and nothing lost with a worker."""

import os
import signal
import time
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crossfill.executors.local import LocalExecutor
from crossfill.executors.worker_jobs import (
    Advanced,
    Event,
    ExecutionSettings,
    Failed,
    Finished,
    Report,
    WorkerJob,
)
from tests.executors.processes import children


def square(given: Mapping[str, Any], threads: int, report: Report | None) -> dict[str, Any]:
    """The work of these tests."""
    if "fatal" in given:
        os.kill(os.getpid(), signal.SIGKILL)
    if given["number"] < 0:
        raise ValueError("expected a number of 0 or more")
    time.sleep(given.get("seconds", 0))
    return {"square": given["number"] ** 2, "worker": os.getpid()}


def queued(
    jobs: Mapping[str, dict[str, Any]], after: Mapping[str, Collection[str]] | None = None
) -> dict[str, WorkerJob]:
    return {
        name: WorkerJob(partial(square, given), "Squares", 1, "numbers", (after or {}).get(name, ()))
        for name, given in jobs.items()
    }


def do(jobs: Mapping[str, dict[str, Any]], n_workers: int = 1) -> list[Event]:
    return list(LocalExecutor(ExecutionSettings(jobs=n_workers)).run(queued(jobs)))


def test_every_job_is_done_once_and_workers_are_kept():
    events = do({f"job{i}": {"number": i} for i in range(6)}, n_workers=2)
    done = {event.job: event.result for event in events if isinstance(event, Finished)}
    assert {job: result["square"] for job, result in done.items()} == {f"job{i}": i * i for i in range(6)}
    assert len({result["worker"] for result in done.values()}) <= 2
    assert sorted(event.job for event in events if isinstance(event, Advanced)) == sorted(done)


def test_a_failure_is_told_and_stops_nobody():
    events = do({"bad": {"number": -1}, "good": {"number": 3}})
    [failed] = [event for event in events if isinstance(event, Failed)]
    assert (failed.job, failed.message) == ("bad", "ValueError: expected a number of 0 or more")
    assert "in square" in failed.trace
    assert [event.job for event in events if isinstance(event, Finished)] == ["good"]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="children are found in /proc")
def test_a_lost_worker_loses_only_its_job():
    jobs = {"one": {"number": 1, "seconds": 1}, "two": {"number": 2}}
    events, killed = [], False
    for event in LocalExecutor(ExecutionSettings(jobs=1)).run(queued(jobs)):
        events.append(event)
        if isinstance(event, Advanced) and not killed:
            killed = True
            while not (workers := children(os.getpid())):  # a busy machine may not have begun with it
                time.sleep(0.01)
            os.kill(workers[0], signal.SIGKILL)
    assert [event.job for event in events if isinstance(event, Failed)] == ["one"]
    assert [event.job for event in events if isinstance(event, Finished)] == ["two"]


def test_a_job_that_kills_its_worker_is_given_up():
    events = do({"fatal": {"fatal": True}, "good": {"number": 3}})
    [failed] = [event for event in events if isinstance(event, Failed)]
    assert failed.job == "fatal"
    assert "its worker was lost" in failed.message
    assert [event.job for event in events if isinstance(event, Finished)] == ["good"]


def test_a_job_waits_for_those_that_it_needs_and_fails_with_them():
    jobs = {f"job{i}": {"number": number} for i, number in enumerate((1, 2, -1, 4, 5))}
    after = {"job0": ["job3"], "job1": ["job0", "job3", "done before"], "job4": ["job2"]}
    events = list(LocalExecutor(ExecutionSettings(jobs=2)).run(queued(jobs, after)))
    order = [(type(event), event.job) for event in events]
    assert order.index((Finished, "job3")) < order.index((Advanced, "job0"))
    assert order.index((Finished, "job0")) < order.index((Advanced, "job1"))
    assert (Advanced, "job4") not in order
    failed = {event.job: event.message for event in events if isinstance(event, Failed)}
    assert failed.keys() == {"job2", "job4"}
    assert failed["job4"] == f"a job that it needs has failed: {failed['job2']}"
