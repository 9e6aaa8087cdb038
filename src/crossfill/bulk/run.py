"""Run bulk work: the jobs that are left, on an executor, with progress in words and time left."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crossfill.executors.base import Advanced, Executor, Failed, Finished, Lost, Started, Work
from crossfill.progress import duration


@dataclass
class Standing:
    """Progress of bulk work."""

    total: int
    done: int
    """Jobs that are finished, those of earlier runs included."""
    left: dict[str, int]
    """The size of each job that is still to do, in any unit."""
    unit: str = "shards"
    started: float = field(default_factory=time.monotonic)
    words: int = 0
    """Words of the jobs that were finished in this run."""
    finished: int = 0
    """Size of the jobs that were finished in this run."""
    running: dict[str, int] = field(default_factory=dict)
    """Words so far of each job that runs, where the executor reports them."""
    failed: dict[str, str] = field(default_factory=dict)
    lost: int = 0

    @property
    def words_per_second(self) -> float:
        """Words of this run for each second since it began."""
        seconds = time.monotonic() - self.started
        return (self.words + sum(self.running.values())) / max(seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds left at the pace so far; None until a job has finished."""
        if not self.finished:
            return None
        return (time.monotonic() - self.started) / self.finished * sum(self.left.values())

    def line(self) -> str:
        """The progress as a line of text."""
        left = self.seconds_left
        parts = [f"{self.done}/{self.total} {self.unit}", f"{self.words_per_second:,.0f} words/s"]
        parts += [f"{len(self.failed)} failed"] * bool(self.failed) + [f"{self.lost} workers lost"] * bool(self.lost)
        parts += [] if left is None or not self.left else [f"about {duration(left)} left"]
        return ", ".join(parts)


def run_jobs(
    work: Work,
    jobs: Mapping[str, dict[str, Any]],
    standing: Standing,
    executor: Executor,
    watch: Callable[[Standing, str], None] = lambda _s, _m: None,
) -> Standing:
    """Do all jobs; `watch` is called at every event, with the progress and a line on what happened, if it matters.

    The result of a job names its number of words.
    """
    watch(standing, "")
    for event in executor.run(work, jobs) if jobs else ():
        told = ""
        match event:
            case Started(job):
                standing.running[job] = 0
            case Advanced(job, words, _):
                standing.running[job] = words
            case Finished(job, result):
                standing.running.pop(job, None)
                standing.done += 1
                standing.words += result["words"]
                standing.finished += standing.left.pop(job)
            case Failed(job, message, _):
                standing.running.pop(job, None)
                standing.left.pop(job)
                standing.failed[job] = message
                told = f"{job}: failed: {message.splitlines()[0]}"
            case Lost(job):
                standing.running.pop(job, None)
                standing.lost += 1
                told = f"{job}: its worker was lost; started again"
        watch(standing, told)
    return standing
