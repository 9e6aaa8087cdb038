"""Executor on local processes: one worker per slot, which keeps what it has loaded from job to job."""

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from crossfill.executors.base import (
    RETRIES,
    Advanced,
    Event,
    ExecutionSettings,
    Executor,
    Failed,
    JobQueue,
    Lost,
    Started,
    Work,
    attempt,
    ended,
    shares,
)

_SECONDS_BETWEEN_REPORTS = 0.2
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def usable_cores() -> int:
    """Return the cores that this process may use, where the system tells them, else those of the machine."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return getattr(os, "process_cpu_count", os.cpu_count)() or 1  # the former from Python 3.13 on


def accelerators() -> list[str]:
    """Return the names of this machine's accelerators, as `CUDA_VISIBLE_DEVICES` has them."""
    import torch

    if not torch.accelerator.is_available():
        return []
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    named = [name.strip() for name in allowed.split(",") if name.strip()]
    return named or [str(i) for i in range(torch.accelerator.device_count())]


class LocalExecutor(Executor):
    """A pool of processes that replaces workers that die; each has the accelerators of its slot, and sees no others."""

    def __init__(self, settings: ExecutionSettings) -> None:
        self.threads = settings.threads
        self._slots = settings.jobs or max(1, usable_cores() // settings.threads)
        devices = accelerators() if settings.gpus else []
        if devices:
            self._slots = min(self._slots, shares(len(devices), settings.gpus))
        width = max(1, int(settings.gpus))
        starts = [int(slot * settings.gpus + 1e-9) for slot in range(self._slots)]
        self.devices = [",".join(devices[start : start + width]) for start in starts]
        """The accelerators of each slot; none of them on a machine without, where jobs compute on cores."""

    @property
    def slots(self) -> int:
        return self._slots

    def run(
        self, work: Work, jobs: Mapping[str, dict[str, Any]], after: Mapping[str, Collection[str]]
    ) -> Iterator[Event]:
        queue = JobQueue(jobs, after)
        losses: Counter[str] = Counter()
        workers = [_Worker(self.threads, self.devices[slot]) for slot in range(min(self.slots, len(jobs)))]
        try:
            while queue.ready or any(worker.job for worker in workers):
                for i, worker in enumerate(workers):
                    if worker.job is None and queue.ready:
                        if not worker.process.is_alive():
                            workers[i] = worker = _Worker(self.threads, self.devices[i])
                        job = queue.take()
                        worker.take(job, work, jobs[job])
                        yield Started(job)
                busy = {worker.pipe: worker for worker in workers if worker.job}
                for pipe in wait(list(busy)):
                    worker = busy[pipe]  # pyright: ignore[reportArgumentType]
                    job, outcome = worker.running, worker.outcome()
                    if outcome is not None and "step" in outcome:
                        yield Advanced(job, outcome["step"], outcome["note"])
                        continue
                    if outcome is not None:
                        yield from queue.end(ended(job, outcome))
                        continue
                    slot = workers.index(worker)
                    workers[slot] = _Worker(self.threads, self.devices[slot])
                    losses[job] += 1
                    if losses[job] > RETRIES:
                        lost = f"its worker was lost {losses[job]} times; is memory short?"
                        yield from queue.end(Failed(job, lost, ""))
                    else:
                        queue.put_back(job)
                        yield Lost(job)
        finally:
            for worker in workers:
                worker.stop()


class _Worker:
    """A process and the pipe to it."""

    def __init__(self, threads: int, devices: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_work, args=(theirs, threads, devices), daemon=True)
        self.process.start()
        theirs.close()
        self.job: str | None = None

    @property
    def running(self) -> str:
        if self.job is None:
            raise RuntimeError("this worker has no job")
        return self.job

    def take(self, job: str, work: Work, given: dict[str, Any]) -> None:
        """Send the worker a job; if the worker has just died, `outcome` finds out."""
        self.job = job
        with suppress(OSError):
            self.pipe.send((work, given))

    def outcome(self) -> dict[str, Any] | None:
        """Return the worker's next message: the outcome of its job, or its progress; None if the worker died."""
        try:
            message = self.pipe.recv()
        except (EOFError, OSError):
            self.stop()
            message = None
        if message is None or "step" not in message:
            self.job = None
        return message

    def stop(self) -> None:
        """End the process; safe at any time, because files are written atomically."""
        self.process.terminate()
        self.process.join(timeout=5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def _work(pipe: Connection, threads: int, devices: str) -> None:
    """Run jobs in a worker process until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    os.environ["CUDA_VISIBLE_DEVICES"] = devices  # read when torch first asks for a device
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    while True:
        try:
            work, given = pipe.recv()
        except EOFError:
            return
        pipe.send(attempt(work, given, threads, _Reports(pipe)))


class _Reports:
    """Reports progress to the parent, a few times a second at most."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe, self.last = pipe, time.monotonic()

    def __call__(self, step: int, note: str) -> None:
        if time.monotonic() - self.last >= _SECONDS_BETWEEN_REPORTS:
            self.last = time.monotonic()
            self.pipe.send({"step": step, "note": note})


def _leave_with_parent() -> None:
    """End this process when its parent is gone, even if that was killed: nothing would receive the result."""
    parent = multiprocessing.parent_process()
    if parent is not None:  # always so in a worker; the parent's process id would not do: Windows never changes it
        parent.join()
        os._exit(1)
