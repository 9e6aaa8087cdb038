"""The interface of executors: they take jobs and yield events, in any order of jobs.

A job is a name and JSON values; what is done with them is a function that workers find by its module and name.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Annotated, Any, Literal

from pydantic import Field

from crossfill.errors import ConfigError
from crossfill.progress import Report
from crossfill.settings import Settings

RETRIES = 3
"""How often a job is started again when its worker is lost."""
_NEEDED = "a job that it needs has failed: "
Work = Callable[[Mapping[str, Any], int, Report | None], dict[str, Any]]
"""Does a job: takes its values, the number of threads and where to report progress; returns JSON values."""


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
class Started:
    """A worker has started a job."""

    job: str


@dataclass(frozen=True)
class Finished:
    """A job is done."""

    job: str
    result: dict[str, Any]


@dataclass(frozen=True)
class Failed:
    """A job has failed, or its worker was lost too often."""

    job: str
    message: str
    trace: str


@dataclass(frozen=True)
class Lost:
    """A job's worker has died; the job is given to another."""

    job: str


@dataclass(frozen=True)
class Advanced:
    """A job has got this far: the training step, or whatever else it counts."""

    job: str
    step: int
    note: str


Event = Started | Advanced | Finished | Failed | Lost


class Executor(ABC):
    """Runs jobs; the caller writes their results."""

    @abstractmethod
    def run(
        self, work: Work, jobs: Mapping[str, dict[str, Any]], after: Mapping[str, Collection[str]]
    ) -> Iterator[Event]:
        """Do jobs, in this order, and yield an event as each starts, advances and ends.

        A job starts when all those that `after` names for it are finished, and fails if one of them has failed.
        Closing the iterator stops all workers.
        """

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many jobs run at a time."""


class JobQueue:
    """The jobs that no worker has taken yet, first those that come first."""

    def __init__(self, jobs: Iterable[str], after: Mapping[str, Collection[str]]) -> None:
        self.places = {job: place for place, job in enumerate(jobs)}
        self.blocked = {job: left for job in self.places if (left := set(after.get(job, ())) & self.places.keys())}
        """The unfinished jobs that a job has to wait for."""
        self.ready = [(place, job) for job, place in self.places.items() if job not in self.blocked]

    def take(self) -> str:
        """Remove the first job that can start, and return its name."""
        return heappop(self.ready)[1]

    def put_back(self, job: str) -> None:
        """Put a job where it was, to be started again."""
        heappush(self.ready, (self.places[job], job))

    def end(self, event: "Finished | Failed") -> list["Finished | Failed"]:
        """Unblock the jobs that waited for one that has ended; returns its event, and those of jobs that fail now."""
        events = [event]
        for job, left in list(self.blocked.items()):
            if job in self.blocked and event.job in left:
                left.discard(event.job)
                if isinstance(event, Failed):
                    del self.blocked[job]
                    message = event.message if event.message.startswith(_NEEDED) else _NEEDED + event.message
                    events += self.end(Failed(job, message, event.trace))
                elif not left:
                    del self.blocked[job]
                    self.put_back(job)
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
        raise ConfigError(
            f"execution.gpus: expected {per_job:g} accelerators for a job, found {accelerators:g}; "
            "set it to 0 to compute on cores"
        )
    return int(accelerators / per_job + 1e-9)


def attempt(work: Work, given: Mapping[str, Any], threads: int, report: Report | None = None) -> dict[str, Any]:
    """Do a job; returns {"result": …}, or {"failed": message, "trace": …} if it raised."""
    import traceback

    try:
        return {"result": work(given, threads, report)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


def ended(job: str, outcome: dict[str, Any]) -> Finished | Failed:
    """Return the event for the outcome of an attempt."""
    if "result" in outcome:
        return Finished(job, outcome["result"])
    return Failed(job, outcome["failed"], outcome["trace"])
