"""Run a study: the jobs that are missing, on an executor, with each result written as soon as it arrives.

Text is encoded first, each corpus once; then seen cells are held out, then trainings start. Each is a job of its own,
which waits for what it needs and for nothing else.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from crossfill.config import EncoderConfig
from crossfill.errors import StudyError
from crossfill.executors.base import LOCK, Executor, Failed, Finished, WorkerJob, only_run, run_jobs
from crossfill.grid.sentence import Corpus
from crossfill.progress import duration
from crossfill.studies import job as work
from crossfill.studies import run_folder
from crossfill.studies.encoding import Encodings, texts_of_job
from crossfill.studies.plan import CheckedStudy, StudyJob
from crossfill.studies.study import write_vectors

_MOST_BARS = 4
"""Up to so many trainings, each has a bar of its own."""


def missing_jobs(checked: CheckedStudy, run: Path) -> list[StudyJob]:
    """Return the jobs that have no result yet."""
    return [job for name, job in checked.plan.jobs.items() if not run_folder.is_done(run, name)]


def check_run_folder(checked: CheckedStudy, run: Path) -> None:
    """Refuse a folder with something else in it, or with finished jobs that are no part of this study."""
    if not (run / run_folder.PLAN).exists():
        if run.is_dir() and (other := next((path for path in run.iterdir() if path.name != LOCK), None)):
            raise StudyError(
                f"{run}: expected a new folder or that of a study, found {other.name} in it; name another with --out, "
                "or add --force"
            )
        return
    before = run_folder.StudyResults(run).plan["jobs"]
    dropped = [job for job in before if job not in checked.plan.jobs and run_folder.is_done(run, job)]
    if dropped:
        raise StudyError(
            f"{run}: expected the run of this study, found {len(dropped)} finished jobs of another one (settings, data "
            "or partitions differ), which its results would no longer show; name another folder with --out, or add "
            "--force"
        )


def run_study(checked: CheckedStudy, run: Path, executor: Executor, quiet: bool = True) -> dict[str, str]:
    """Run the missing jobs; returns why each of those that failed did.

    Results are written one by one, so that a killed run can be resumed.
    """
    jobs = checked.plan.jobs
    with only_run(run, "experiment"):
        study = checked.study.model_dump(mode="json")
        run_folder.write_run(run, study, checked.plan.as_dict(), checked.plan.similarity)
        write_vectors(checked.study.data, run / run_folder.TYPOLOGY)
        todo = missing_jobs(checked, run)
        encodings = encoding_jobs(checked, todo)
        encoding_of = {name: part for part in encodings for name in part.jobs}

        def ended(event: Finished | Failed) -> str:
            """Write the result of a training, or why it failed."""
            match event:
                case Finished(name) if name in encoding_of:
                    encoding_of[name].finish(name)
                case Finished(name, result) if name in jobs:
                    run_folder.write_result(run, name, result, jobs[name].keep_model)
                    return f"{jobs[name].title}: done in {duration(result['measured']['train_seconds'])}"
                case Failed(name, message, trace) if name in jobs:
                    run_folder.write_failure(run, name, message, trace)
                    return f"{jobs[name].title}: failed: {message.splitlines()[0]}"
            return ""

        totals = run_jobs(_worker_jobs(todo, encodings, run.absolute()), executor, quiet, ended)
        run_folder.write_rows(run)
        return {name: why for name, why in totals.failed.items() if name in jobs}


def encoding_jobs(checked: CheckedStudy, todo: Sequence[StudyJob]) -> list[Encodings]:
    """Return the jobs that encode the text of others over frozen encoders, once for each setting of the encoder."""
    from crossfill.encoders.frozen import StoredVectors

    alike: dict[tuple[Any, ...], StudyJob] = {}
    for job in todo:
        settings = job.config.encoder
        if settings.name != "compact" and settings.pretrained.mode == "frozen":
            seen = job.seen, job.unseen, job.folds, job.config.training.selection, job.few_shot is not None
            alike.setdefault((settings.model_dump_json(), job.data.cache, job.config.method, *seen), job)
    opened: dict[tuple[str, str | None], StoredVectors] = {}
    texts: dict[str, dict[str, Corpus]] = {}
    named: dict[str, tuple[StoredVectors, EncoderConfig]] = {}
    for (settings, cache, *_), job in alike.items():
        if (settings, cache) not in opened:
            opened[settings, cache] = StoredVectors(job.config.encoder, Path(cache) if cache else True)
        stored = opened[settings, cache]
        corpora = texts_of_job(job, checked.grid.only(job.languages))
        texts.setdefault(stored.settings_hash, {}).update({corpus.text_hash: corpus for corpus in corpora})
        named.setdefault(stored.settings_hash, (stored, job.config.encoder))
    return [Encodings(stored, settings, texts[name].values()) for name, (stored, settings) in named.items()]


def _worker_jobs(todo: Sequence[StudyJob], encodings: Sequence[Encodings], run: Path) -> dict[str, WorkerJob]:
    """Return all jobs of a run with what each waits for; the longest trainings come first."""
    jobs = {name: job for part in encodings for name, job in part.jobs.items()}
    texts = list(jobs)
    todo = sorted(todo, key=lambda job: -job.config.training.steps)
    uncalibrated = {job.held_out: job for job in reversed(todo) if job.folds and not work.is_calibrated(job, run)}
    folds_of: dict[str, list[str]] = {}
    for name, job in uncalibrated.items():
        steps = job.config.training.steps
        folds = {
            f"{name}-{number}": WorkerJob(
                partial(work.predict_fold, job, run, number), "Holding out", steps, "steps", texts
            )
            for number, folder in enumerate(work.fold_folders(job, run))
            if not work.is_predicted(folder)
        }
        jobs |= folds
        folds_of[name] = list(folds)
    for name, job in uncalibrated.items():
        calibrate = partial(work.calibrate_methods, job, run)
        jobs[name] = WorkerJob(calibrate, "Calibrating", len(job.methods), "methods", folds_of[name])
    for job in todo:
        bar = "+".join(job.methods) if len(todo) <= _MOST_BARS else "Training"
        needs = [job.held_out] if job.held_out in uncalibrated else texts
        jobs[job.id] = WorkerJob(partial(work.train_job, job, run), bar, job.config.training.steps, "steps", needs)
    return jobs
