"""The interface of executors: they take jobs and yield events, in any order of jobs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossfill.errors import StudyError
from crossfill.studies.plan import Job
from crossfill.studies.study import ExecutionSettings

RETRIES = 3
"""How often a job is started again when its worker is lost."""


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
    """A job has reached a training step."""

    job: str
    step: int
    note: str


Event = Started | Advanced | Finished | Failed | Lost


class Executor(ABC):
    """Runs jobs; the caller writes their results."""

    @abstractmethod
    def run(self, jobs: Sequence[Job], run: Path) -> Iterator[Event]:
        """Run jobs and yield an event as each starts, advances and ends; closing the iterator stops all workers."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many jobs run at a time."""


def build_executor(settings: ExecutionSettings) -> Executor:
    """The executor that the settings name."""
    if settings.executor == "ray":
        from crossfill.studies.executors.ray import RayExecutor

        return RayExecutor(settings)
    from crossfill.studies.executors.local import LocalExecutor

    return LocalExecutor(settings)


def shares(accelerators: float, per_job: float) -> int:
    """How many jobs can have `per_job` accelerators each."""
    if accelerators < per_job:
        raise StudyError(
            f"execution.gpus: expected {per_job:g} accelerators for a job, found {accelerators:g}; "
            "set it to 0 to compute on cores"
        )
    return int(accelerators / per_job + 1e-9)


def attempt(
    job: dict[str, Any], run: str, threads: int, report: Callable[[int, str], None] | None = None
) -> dict[str, Any]:
    """Run a job given as a dict; returns {"result": …}, or {"failed": message, "trace": …} if it raised."""
    import traceback

    from crossfill.studies.job import run_job

    try:
        return {"result": run_job(Job.from_dict(job), Path(run), threads, report)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


def ended(job: str, outcome: dict[str, Any]) -> Finished | Failed:
    """The event for the outcome of an attempt."""
    if "result" in outcome:
        return Finished(job, outcome["result"])
    if "failed" not in outcome:
        raise StudyError(f"job {job}: expected a result or a failure from its worker, got {sorted(outcome)}")
    return Failed(job, outcome["failed"], outcome["trace"])
