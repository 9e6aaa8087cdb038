"""Jobs and the executors that do them: the one loop, and the one progress display, of studies, encoding and tagging."""

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from crossfill.errors import ConfigError, OutputError
from crossfill.files import locked
from crossfill.progress import ProgressBar, Report
from crossfill.settings import Settings

LOCK = ".lock"
"""File of a folder that only one command at a time may run in."""
Work = Callable[[int, Report | None], dict[str, Any]]
"""Does a job: takes the number of threads and where to report progress; returns JSON values."""


class ExecutionSettings(Settings):
    """How jobs are executed; nothing here changes results."""

    executor: Literal["local", "ray"] = "local"
    jobs: Annotated[int, Field(ge=0, le=10**5)] = 0
    """Jobs at a time; 0 for as many as cores allow."""
    threads: Annotated[int, Field(ge=1, le=10**4)] = 1
    """Cores per job."""
    gpus: Annotated[float, Field(ge=0, le=1000)] = 0.0
    """Accelerators per job: 0 computes on cores alone, a half lets two jobs share one."""
    address: str | None = None
    """Address of a Ray cluster, or `auto`; none starts one on this machine (`ray` only)."""


@dataclass(frozen=True)
class WorkerJob:
    """A job, how much there is to do in it, and what it waits for."""

    work: Work
    """Sent to a worker as a pickle: a `partial` of a function of a module."""
    bar: str
    """Title of the bar that shows it, which jobs may share, as `Encoding`."""
    amount: int
    unit: str
    """What is counted, as `words`."""
    after: Collection[str] = ()
    """The jobs that have to be finished before it can start."""


class Advanced(NamedTuple):
    """A job has started, at step 0, or got this far: the training step, or whatever else it counts."""

    job: str
    step: int = 0
    note: str = ""


class Finished(NamedTuple):
    """A job is done."""

    job: str
    result: dict[str, Any]


class Failed(NamedTuple):
    """A job has failed, or its worker was lost."""

    job: str
    message: str
    trace: str = ""


Event = Advanced | Finished | Failed


class Executor(ABC):
    """Does jobs; the caller writes their results."""

    @abstractmethod
    def run(self, jobs: Mapping[str, WorkerJob]) -> Iterator[Event]:
        """Do jobs, in this order, and yield an event as each starts, advances and ends.

        A job starts when those that it waits for are finished, and fails if one has failed. Closing stops all workers.
        """


class JobQueue:
    """The jobs that no worker has taken yet, first those that come first."""

    def __init__(self, jobs: Mapping[str, WorkerJob]) -> None:
        self.places = {name: place for place, name in enumerate(jobs)}
        self.blocked = {name: left for name, job in jobs.items() if (left := jobs.keys() & job.after)}
        """The unfinished jobs that a job has to wait for."""
        self.ready = [(place, name) for name, place in self.places.items() if name not in self.blocked]

    def take(self) -> str:
        """Remove the first job that can start, and return its name."""
        return heappop(self.ready)[1]

    def end(self, event: Finished | Failed) -> list[Finished | Failed]:
        """Unblock the jobs that waited for one that has ended; returns its event, and those of jobs that fail now."""
        events = [event]
        for ended in events:  # it grows: what waits for a job that fails now fails, too
            for name in [name for name, left in self.blocked.items() if ended.job in left]:
                self.blocked[name].remove(ended.job)
                if isinstance(event, Failed):
                    del self.blocked[name]
                    events.append(Failed(name, f"a job that it needs has failed: {event.message}", event.trace))
                elif not self.blocked[name]:
                    del self.blocked[name]
                    heappush(self.ready, (self.places[name], name))
        return events


def build_executor(settings: ExecutionSettings) -> Executor:
    """Return the executor that the settings name."""
    if settings.executor == "ray":
        from crossfill.executors.ray import RayExecutor

        return RayExecutor(settings)
    from crossfill.executors.local import LocalExecutor

    return LocalExecutor(settings)


def shares(accelerators: float, per_job: float) -> int:
    """Count how many jobs can have `per_job` accelerators each."""
    if accelerators < per_job:
        found = f"expected {per_job:g} accelerators for a job, found {accelerators:g}"
        raise ConfigError(f"execution.gpus: {found}; set it to 0 to compute on cores")
    return int(accelerators / per_job + 1e-9)


def attempt(name: str, work: Work, threads: int, report: Report | None = None) -> Finished | Failed:
    """Do a job; it has failed if it raises an error."""
    try:
        return Finished(name, work(threads, report))
    except Exception as error:
        return Failed(name, f"{type(error).__name__}: {error}", traceback.format_exc())


@dataclass
class RunTotals:
    """What a run of jobs came to."""

    failed: dict[str, str] = field(default_factory=dict)
    """Why each job failed."""
    words: int = 0
    """Words of the finished jobs, where their results count any."""
    seconds: float = 0.0

    @property
    def words_per_second(self) -> float:
        return self.words / max(self.seconds, 1e-9)


def failure_line(event: Finished | Failed) -> str:
    """Return the line that says that a job has failed; nothing if it has not."""
    return f"{event.job}: failed: {event.message.splitlines()[0]}" if isinstance(event, Failed) else ""


def run_jobs(
    jobs: Mapping[str, WorkerJob],
    executor: Executor,
    quiet: bool = True,
    ended: Callable[[Finished | Failed], str] = failure_line,
) -> RunTotals:
    """Do all jobs, with a bar for each kind of work.

    `ended` is called with each job that is finished or has failed, before any job that depends on it starts; the line
    that it returns is printed, unless it is empty. By default, failures are printed.
    """
    totals, started = RunTotals(), time.monotonic()
    bars: dict[str, _Bar] = {}
    with ProgressBar(quiet) as display:
        for event in executor.run(jobs) if jobs else ():
            job = jobs[event.job]
            if job.bar not in bars:
                bars[job.bar] = _Bar([other for other in jobs.values() if other.bar == job.bar], display)
            match event:
                case Advanced(name, step, note):
                    bars[job.bar].show(name, step, note)
                case Finished(name) | Failed(name):
                    bars[job.bar].end(name, job.amount)
                    if isinstance(event, Finished):
                        totals.words += event.result.get("n_words", 0)
                    else:
                        totals.failed[name] = event.message
                    if line := ended(event):
                        display.print(line)
    totals.seconds = time.monotonic() - started
    return totals


@contextmanager
def only_run(folder: Path, command: str) -> Iterator[None]:
    """Keep other processes of this machine from running a command in the same folder."""
    with locked(folder / LOCK, wait=False) as held:
        if not held:
            raise OutputError(f"{folder}: another crossfill {command} is running here; wait for it, or end it")
        yield


class _Bar:
    """Shows how far the jobs of one kind are, from when the first of them starts."""

    def __init__(self, jobs: Sequence[WorkerJob], display: ProgressBar) -> None:
        self.unit, self.n_jobs, self.total = jobs[0].unit, len(jobs), sum(job.amount for job in jobs)
        self.report = display.add(jobs[0].bar, self.total)
        self.running: dict[str, int] = {}
        self.done = self.n_done = 0

    def end(self, name: str, amount: int) -> None:
        self.running.pop(name, None)
        self.done += amount
        self.n_done += 1
        self.show()

    def show(self, name: str = "", amount: int = 0, note: str = "") -> None:
        if name:
            self.running[name] = amount
        if self.n_jobs > 1:
            note = f"{self.unit}, {self.n_done} of {self.n_jobs} jobs done"
        self.report(min(self.done + sum(self.running.values()), self.total), note or self.unit)
