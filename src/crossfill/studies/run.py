"""Run a study: the jobs that are missing, on an executor, with each result written as soon as it arrives.

Text is encoded first, each corpus once; then seen cells are held out, then trainings start. Each is a job of its own,
which waits for what it needs and for nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossfill.config import EncoderConfig
from crossfill.errors import StudyError
from crossfill.executors.base import Executor, Failed, Finished, Report
from crossfill.executors.jobs import LOCK, Amount, JobList, only_run, run_jobs
from crossfill.grid.sentence import Corpus
from crossfill.progress import duration
from crossfill.studies import folds, run_folder
from crossfill.studies.encoding import ENCODE, EncodingJobs, encode_part, texts_of_job
from crossfill.studies.grids import write_vectors
from crossfill.studies.job import train_job
from crossfill.studies.plan import CheckedStudy, StudyJob

_TRAIN, _HOLD_OUT, _CALIBRATE = "train", "hold-out", "calibrate"
_MOST_BARS = 4
"""Up to so many trainings, each has a bar of its own."""


@dataclass(frozen=True)
class StudyOutcome:
    """What a run of a study came to."""

    total: int
    done: int
    """Jobs with a result, those of earlier runs included."""
    failed: Mapping[str, str]
    """Why each job failed."""


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
    before = run_folder.Results(run).plan["jobs"]
    dropped = [job for job in before if job not in checked.plan.jobs and run_folder.is_done(run, job)]
    if dropped:
        raise StudyError(
            f"{run}: expected the run of this study, found {len(dropped)} finished jobs of another one (settings, data "
            "or partitions differ), which its results would no longer show; name another folder with --out, or add "
            "--force"
        )


def run_study(checked: CheckedStudy, run: Path, executor: Executor, quiet: bool = True) -> StudyOutcome:
    """Run the missing jobs. Results are written one by one, so that a killed run can be resumed."""
    jobs = checked.plan.jobs
    with only_run(run, "experiment"):
        study = checked.study.model_dump(mode="json")
        run_folder.write_run(run, study, checked.plan.as_dict(), checked.plan.similarity)
        write_vectors(checked.study.data, run / run_folder.TYPOLOGY)
        todo = missing_jobs(checked, run)
        encodings = encoding_jobs(checked, todo)
        encoding = {name: part for part in encodings for name in part}
        failed: dict[str, str] = {}

        def ended(event: Finished | Failed) -> str:
            """Write the result of a training, or why it failed."""
            match event:
                case Finished(name) if name in encoding:
                    encoding[name].finish(name)
                case Finished(name, result) if name in jobs:
                    run_folder.write_result(run, name, result, jobs[name].keep_model)
                    return f"{jobs[name].title}: done in {duration(result['measured']['train_seconds'])}"
                case Failed(name, message, trace) if name in jobs:
                    run_folder.write_failure(run, name, message, trace)
                    failed[name] = message
                    return f"{jobs[name].title}: failed: {message.splitlines()[0]}"
            return ""

        run_jobs(_jobs(todo, encodings, run), executor, quiet, ended)
        run_folder.write_rows(run)
        return StudyOutcome(len(jobs), sum(run_folder.is_done(run, name) for name in jobs), failed)


def encoding_jobs(checked: CheckedStudy, todo: Sequence[StudyJob]) -> list[EncodingJobs]:
    """Return the jobs that encode the text of others over frozen encoders, once for each setting of the encoder."""
    from crossfill.encoders.frozen import FrozenEncoder

    alike: dict[tuple[Any, ...], StudyJob] = {}
    for job in todo:
        settings = job.config.encoder
        if settings.name != "compact" and settings.pretrained.mode == "frozen":
            seen = job.seen, job.unseen, job.folds, job.config.training.selection, job.few_shot is not None
            alike.setdefault((settings.model_dump_json(), job.data.cache, job.config.method, *seen), job)
    encoders: dict[tuple[str, str | None], FrozenEncoder] = {}
    texts: dict[str, dict[str, Corpus]] = {}
    named: dict[str, tuple[FrozenEncoder, EncoderConfig]] = {}
    for (settings, cache, *_), job in alike.items():
        if (settings, cache) not in encoders:
            encoders[settings, cache] = FrozenEncoder(job.config.encoder, (), Path(cache) if cache else True)
        encoder = encoders[settings, cache]
        corpora = texts_of_job(job, checked.grid.only(job.languages))
        texts.setdefault(encoder.settings_hash, {}).update({corpus.text_hash: corpus for corpus in corpora})
        named.setdefault(encoder.settings_hash, (encoder, job.config.encoder))
    return [EncodingJobs(encoder, settings, texts[name].values()) for name, (encoder, settings) in named.items()]


def do_job(given: Mapping[str, Any], threads: int, report: Report | None = None) -> dict[str, Any]:
    """Do a job of a study, given by an executor."""
    import torch

    if given["kind"] == ENCODE:
        return encode_part(given, threads, report)
    torch.set_num_threads(threads)
    job, run = StudyJob.from_dict(given["job"]), Path(given["run"])
    match given["kind"]:
        case kind if kind == _HOLD_OUT:
            folds.predict_fold(job, run, given["fold"], report)
        case kind if kind == _CALIBRATE:
            folds.calibrate_methods(job, run)
        case _:
            return train_job(job, run, threads, report)
    return {}


class _Values(Mapping[str, dict[str, Any]]):
    """What workers are given for each job; texts to encode are looked up when their turn comes."""

    def __init__(self, parts: Sequence[Mapping[str, dict[str, Any]]]) -> None:
        self.parts = {name: part for part in parts for name in part}

    def __getitem__(self, name: str) -> dict[str, Any]:
        return self.parts[name][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


def _jobs(todo: Sequence[StudyJob], encodings: Sequence[EncodingJobs], run: Path) -> JobList:
    """Return all jobs of a run with what each waits for; the longest trainings come first."""
    texts = [name for part in encodings for name in part]
    amounts = {name: amount for part in encodings for name, amount in part.amounts.items()}
    values: dict[str, dict[str, Any]] = {}
    after: dict[str, list[str]] = {}

    def add(name: str, job: StudyJob, kind: str, amount: Amount, needs: list[str], **more: Any) -> str:
        values[name] = {"kind": kind, "job": job.as_dict(), "run": str(run.absolute()), **more}
        amounts[name], after[name] = amount, needs
        return name

    todo = sorted(todo, key=lambda job: -job.config.training.steps)
    uncalibrated = {job.held_out: job for job in reversed(todo) if job.folds and not folds.is_calibrated(job, run)}
    fold_jobs = {
        job.held_out: [
            add(
                f"{job.held_out}-{number}",
                job,
                _HOLD_OUT,
                Amount("Holding out", job.config.training.steps, "steps"),
                texts,
                fold=number,
            )
            for number, folder in enumerate(folds.fold_folders(job, run))
            if not folds.is_predicted(folder)
        ]
        for job in uncalibrated.values()
    }
    for job in uncalibrated.values():
        amount = Amount("Calibrating", len(job.methods), "methods")
        add(job.held_out, job, _CALIBRATE, amount, fold_jobs[job.held_out])
    for job in todo:
        bar = "+".join(job.methods) if len(todo) <= _MOST_BARS else "Training"
        needs = [job.held_out] if job.held_out in uncalibrated else texts
        add(job.id, job, _TRAIN, Amount(bar, job.config.training.steps, "steps"), needs)
    return JobList(do_job, _Values([*encodings, values]), amounts, after)
