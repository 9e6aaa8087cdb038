"""Run a study: the missing jobs, on an executor, with each result written as soon as it arrives."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from crossfill.errors import StudyError
from crossfill.executors.base import Advanced, Executor, Failed, Finished, Lost, Started
from crossfill.files import locked
from crossfill.progress import duration
from crossfill.studies import run_folder
from crossfill.studies.grids import write_vectors
from crossfill.studies.job import do_job
from crossfill.studies.plan import CheckedStudy, Job


@dataclass
class Standing:
    """Progress of a run."""

    total: int
    done: int
    """Jobs with a result, those of earlier attempts included."""
    started: float
    left: dict[str, int]
    """Training steps of the jobs that are still to do."""
    running: set[str] = field(default_factory=set)
    steps: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Training step and a progress note by job, where the executor reports them."""
    failed: dict[str, str] = field(default_factory=dict)
    lost: int = 0
    finished: int = 0
    """Training steps of the jobs that were finished in this run, as planned."""

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds left at the pace so far; None until a job has finished."""
        if not self.finished:
            return None
        return (time.monotonic() - self.started) / self.finished * sum(self.left.values())

    def line(self) -> str:
        """The progress as a line of text."""
        left = self.seconds_left
        shown = "" if left is None else f", about {duration(left)} left"
        lost = f", {self.lost} workers lost" if self.lost else ""
        return f"{self.done}/{self.total} done, {len(self.running)} running, {len(self.failed)} failed{lost}{shown}"


def missing_jobs(checked: CheckedStudy, run: Path) -> list[Job]:
    """The jobs that have no result yet."""
    return [job for name, job in checked.plan.jobs.items() if not run_folder.is_done(run, name)]


def check_run_folder(checked: CheckedStudy, run: Path) -> None:
    """Refuse a folder with something else in it, or with finished jobs that are no part of this study."""
    if not (run / run_folder.PLAN).exists():
        if run.is_dir() and (other := next((path for path in run.iterdir() if path.name != run_folder.LOCK), None)):
            raise StudyError(
                f"{run}: expected a new folder or that of a study, found {other.name} in it; name another with --out, "
                "or add --force"
            )
        return
    before = run_folder.Results(run).plan["jobs"]
    dropped = [job for job in before if job not in checked.plan.jobs and run_folder.is_done(run, job)]
    if dropped:
        raise StudyError(
            f"{run}: expected the run of this study, found {len(dropped)} finished jobs of another one (settings, data "
            "or partitions differ), which its results would no longer show; name another folder with --out, or add "
            "--force"
        )


def run_study(
    checked: CheckedStudy, run: Path, executor: Executor, watch: Callable[[Standing, str], None] = lambda _s, _m: None
) -> Standing:
    """Run the missing jobs. Results are written one by one, so that a killed run can be resumed.

    `watch` is called at every event, with the progress and a line on what happened (empty for mere progress).
    """
    if checked.study is None or checked.problems:
        raise StudyError("\n".join(checked.problems))
    with _alone(run):
        study = checked.study.model_dump(mode="json")
        run_folder.write_run(run, study, checked.plan.as_dict(), checked.plan.similarity)
        write_vectors(checked.study.data, run / run_folder.TYPOLOGY)
        todo = missing_jobs(checked, run)
        jobs = checked.plan.jobs
        left = {job.id: job.config.training.steps for job in todo}
        standing = Standing(len(jobs), len(jobs) - len(todo), time.monotonic(), left)
        watch(standing, "")
        todo.sort(key=lambda job: -job.config.training.steps)  # longest first: none runs alone at the end
        given = {job.id: {"job": job.as_dict(), "run": str(run.absolute())} for job in todo}
        events = executor.run(do_job, given) if todo else iter(())
        for event in events:
            match event:
                case Started(job):
                    standing.running.add(job)
                    watch(standing, "")
                    continue
                case Advanced(job, step, note):
                    standing.steps[job] = step, note
                    watch(standing, "")
                    continue
                case Finished(job, result):
                    run_folder.write_result(run, job, result, jobs[job].keep_model)
                    standing.done += 1
                    standing.finished += standing.left[job]
                    told = f"{jobs[job].title}: done in {duration(result['measured']['train_seconds'])}"
                case Failed(job, message, trace):
                    run_folder.write_failure(run, job, message, trace)
                    standing.failed[job] = message
                    told = f"{jobs[job].title}: failed: {message.splitlines()[0]}"
                case Lost(job):
                    standing.lost += 1
                    standing.running.discard(job)
                    watch(standing, f"{jobs[job].title}: its worker was lost; started again")
                    continue
            standing.running.discard(event.job)
            standing.left.pop(event.job)
            watch(standing, told)
        run_folder.write_rows(run)
        return standing


@contextmanager
def _alone(run: Path) -> Iterator[None]:
    """Keep other processes from running a study in the same folder."""
    with locked(run / run_folder.LOCK, wait=False) as held:
        if not held:
            raise StudyError(f"{run}: another crossfill experiment is running in this folder; wait for it, or end it")
        yield
