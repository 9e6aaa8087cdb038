"""Run jobs on an executor: the one loop, and the one progress display, of studies, of encoding and of tagging."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from crossfill.errors import OutputError
from crossfill.executors.base import Advanced, Executor, Failed, Finished, Lost, Started, Work
from crossfill.files import locked
from crossfill.progress import ProgressBar, Report

LOCK = ".lock"
"""File of a folder that only one command at a time may run in."""


class Amount(NamedTuple):
    """How much there is to do in a job, and the bar that shows it."""

    bar: str
    """Title of the bar, which jobs may share, as `Encoding`."""
    n: int
    unit: str
    """What is counted, as `words`."""


@dataclass(frozen=True)
class JobList:
    """Jobs by name, in the order in which they are best started."""

    work: Work
    values: Mapping[str, dict[str, Any]]
    """What `work` is given for each job."""
    amounts: Mapping[str, Amount]
    after: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The jobs that have to be finished before a job can start."""


@dataclass
class JobProgress:
    """How far a run of jobs is."""

    finished: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    """Why each job failed."""
    lost: int = 0
    """How many workers were lost."""
    words: int = 0
    """Words of the finished jobs, where their results count any."""
    started: float = field(default_factory=time.monotonic)

    @property
    def words_per_second(self) -> float:
        """Words for each second since the run began."""
        return self.words / max(time.monotonic() - self.started, 1e-9)


def run_jobs(
    jobs: JobList,
    executor: Executor,
    quiet: bool = True,
    ended: Callable[[Finished | Failed], str] | None = None,
) -> JobProgress:
    """Do all jobs, with a bar for each kind of work.

    `ended` is called with each job that is finished or has failed, before any job that depends on it starts; the line
    that it returns is printed, unless it is empty. By default, failures are printed.
    """
    progress = JobProgress()
    with ProgressBar(quiet) as display:
        bars = _Bars(jobs.amounts, display)
        for event in executor.run(jobs.work, jobs.values, jobs.after) if jobs.values else ():
            match event:
                case Started(job):
                    bars.update(job, 0)
                case Advanced(job, amount, note):
                    bars.update(job, amount, note)
                case Finished(job, result):
                    progress.finished.add(job)
                    progress.words += result.get("n_words", 0)
                    bars.end(job)
                case Failed(job, message):
                    progress.failed[job] = message
                    bars.end(job)
                case Lost(job):
                    progress.lost += 1
                    bars.update(job, 0)
                    display.print(f"{job}: its worker was lost; it is started again")
            if isinstance(event, Finished | Failed) and (line := (ended or _failure)(event)):
                display.print(line)
    return progress


@contextmanager
def only_run(folder: Path, command: str) -> Iterator[None]:
    """Keep other processes of this machine from running a command in the same folder."""
    with locked(folder / LOCK, wait=False) as held:
        if not held:
            raise OutputError(
                f"{folder}: another crossfill {command} is running in this folder; wait for it, or end it"
            )
        yield


def _failure(event: Finished | Failed) -> str:
    return f"{event.job}: failed: {event.message.splitlines()[0]}" if isinstance(event, Failed) else ""


class _Bars:
    """The bars of a run; each appears when its first job starts."""

    def __init__(self, amounts: Mapping[str, Amount], display: ProgressBar) -> None:
        self.amounts, self.display = amounts, display
        self.totals = Counter[str]()
        for bar, n, _ in amounts.values():
            self.totals[bar] += n
        self.n_jobs = Counter(amount.bar for amount in amounts.values())
        self.done, self.n_done = Counter[str](), Counter[str]()
        self.running: dict[str, int] = {}
        self.reports: dict[str, Report] = {}

    def update(self, job: str, amount: int, note: str = "") -> None:
        """Show how far a running job is."""
        self.running[job] = amount
        self._show(job, note)

    def end(self, job: str) -> None:
        """Show that a job has ended."""
        self.running.pop(job, None)
        self.done[self.amounts[job].bar] += self.amounts[job].n
        self.n_done[self.amounts[job].bar] += 1
        self._show(job, "")

    def _show(self, job: str, note: str) -> None:
        bar, _, unit = self.amounts[job]
        if bar not in self.reports:
            self.reports[bar] = self.display.add(bar, self.totals[bar])
        running = sum(amount for other, amount in self.running.items() if self.amounts[other].bar == bar)
        n_jobs = self.n_jobs[bar]
        note = f"{unit}, {self.n_done[bar]} of {n_jobs} jobs done" if n_jobs > 1 else note or unit
        self.reports[bar](min(self.done[bar] + running, self.totals[bar]), note)
