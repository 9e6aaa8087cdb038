"""Executor on local processes: one worker per slot, which keeps what it has loaded from job to job."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from crossfill.executors import worker_jobs
from crossfill.executors.worker_jobs import Advanced, Failed, Finished, JobQueue

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


class LocalExecutor(worker_jobs.Executor):
    """A pool of processes that replaces workers that die; each has the accelerators of its slot, and sees no others."""

    def __init__(self, settings: worker_jobs.ExecutionSettings) -> None:
        self.threads = settings.threads
        self.slots = settings.jobs or max(1, usable_cores() // settings.threads)
        devices = accelerators() if settings.gpus else []
        if devices:
            self.slots = min(self.slots, worker_jobs.shares(len(devices), settings.gpus))
        width = max(1, int(settings.gpus))
        starts = [int(slot * settings.gpus + 1e-9) for slot in range(self.slots)]
        self.devices = [",".join(devices[start : start + width]) for start in starts]
        """The accelerators of each slot; none of them on a machine without, where jobs compute on cores."""

    def run(self, jobs: Mapping[str, worker_jobs.WorkerJob]) -> Iterator[worker_jobs.Event]:
        queue = JobQueue(jobs)
        workers = [_Worker(self.threads, devices) for devices in self.devices[: len(jobs)]]
        running: dict[_Worker, str] = {}
        try:
            while queue.ready or running:
                for slot, worker in enumerate(workers):
                    if worker not in running and queue.ready:
                        if not worker.process.is_alive():
                            workers[slot] = worker = _Worker(self.threads, self.devices[slot])
                        name = running[worker] = queue.take()
                        worker.send(name, jobs[name].work)
                        yield Advanced(name)
                readable = wait([worker.pipe for worker in running])
                for worker, name in [entry for entry in running.items() if entry[0].pipe in readable]:
                    event = worker.receive()
                    if isinstance(event, Advanced):
                        yield event
                        continue
                    del running[worker]
                    yield from queue.end(event or Failed(name, "its worker was lost; is memory short? run it again"))
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

    def send(self, name: str, work: worker_jobs.Work) -> None:
        with suppress(OSError):  # if the worker has just died, `receive` finds out
            self.pipe.send((name, work))

    def receive(self) -> Advanced | Finished | Failed | None:
        """Return what the worker says of its job; None, and the process is gone, if it died."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.stop()
            return None

    def stop(self) -> None:
        """End the process; safe at any time, because files are written atomically."""
        self.process.terminate()
        self.process.join(timeout=5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def _work(pipe: Connection, threads: int, devices: str) -> None:
    """Do jobs in a worker process until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    os.environ["CUDA_VISIBLE_DEVICES"] = devices  # read when torch first asks for a device
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    last = time.monotonic()

    def report(step: int, note: str) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_REPORTS:
            last = time.monotonic()
            pipe.send(Advanced(name, step, note))

    with suppress(EOFError):
        while True:
            name, work = pipe.recv()
            pipe.send(worker_jobs.attempt(name, work, threads, report))


def _leave_with_parent() -> None:
    """End this process when its parent is gone, even if that was killed: nothing would receive the result."""
    parent = multiprocessing.parent_process()
    if parent is not None:  # always so in a worker; the parent's process id would not do: Windows never changes it
        parent.join()
        os._exit(1)
