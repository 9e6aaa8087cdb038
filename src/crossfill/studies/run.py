"""Run a study: the jobs that are missing, on an executor, with each result written as soon as it arrives.

Text is encoded first, each corpus once, into a cache that machines may share; then seen cells are held out, then
trainings start. Each is a job of its own, which waits for what it needs and for nothing else.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch

from crossfill.config import EncoderConfig
from crossfill.encoders.frozen import StoredVectors
from crossfill.errors import StudyError
from crossfill.executors.worker_jobs import Executor, Failed, Finished, WorkerJob, only_run, run_jobs
from crossfill.files import write_json
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus
from crossfill.methods.registry import find_method
from crossfill.progress import Report, duration
from crossfill.studies import job as work
from crossfill.studies import run_folder
from crossfill.studies.plan import CheckedStudy, StudyJob
from crossfill.studies.study import StudyGrid, write_vectors
from crossfill.tagger.train import texts_to_encode

_MOST_BARS = 4
"""Up to so many trainings, each has a bar of its own."""


def missing_jobs(checked: CheckedStudy, run: Path) -> list[StudyJob]:
    """Return the jobs that have no result yet."""
    return [job for name, job in checked.plan.jobs.items() if not run_folder.is_done(run, name)]


def check_run_folder(checked: CheckedStudy, run: Path) -> None:
    """Refuse a folder with finished jobs that are no part of this study."""
    before = run_folder.StudyResults(run).plan["jobs"] if (run / run_folder.PLAN).exists() else ()
    dropped = [job for job in before if job not in checked.plan.jobs and run_folder.is_done(run, job)]
    if dropped:
        raise StudyError(
            f"{run}: expected the run of this study, found {len(dropped)} finished jobs of another one (settings, data "
            "or partitions differ), which its results would no longer show; name another folder with --out"
        )


def run_study(checked: CheckedStudy, run: Path, executor: Executor, quiet: bool = True) -> dict[str, str]:
    """Run the missing jobs; returns why each of those that failed did.

    Results are written one by one, so that a killed run can be resumed.
    """
    jobs = checked.plan.jobs
    with only_run(run, "experiment"):
        write_json(run / run_folder.STUDY, checked.study.model_dump(mode="json"), indent=1)
        write_json(run / run_folder.PLAN, checked.plan.as_dict(), indent=1)
        write_vectors(checked.study.data, run / run_folder.TYPOLOGY)
        todo = missing_jobs(checked, run)
        encodings = encoding_jobs(checked, todo)

        def ended(event: Finished | Failed) -> str:
            """Write the result of a training, or why it failed."""
            match event:
                case Finished(name, result) if name in jobs:
                    run_folder.write_result(run, name, result, checked.study.keep_models)
                    return f"{jobs[name].title}: done in {duration(result['measured']['train_seconds'])}"
                case Failed(name, message, trace) if name in jobs:
                    run_folder.write_failure(run, name, message, trace)
                    return f"{jobs[name].title}: failed: {message.splitlines()[0]}"
            return ""

        totals = run_jobs(_worker_jobs(todo, encodings, run.absolute()), executor, quiet, ended)
        run_folder.write_rows(run)
        return {name: why for name, why in totals.failed.items() if name in jobs}


def encoding_jobs(checked: CheckedStudy, todo: Sequence[StudyJob]) -> "list[Encodings]":
    """Return the jobs that encode the text of others over frozen encoders, once for each setting of the encoder."""
    alike: dict[tuple[Any, ...], StudyJob] = {}
    for job in todo:
        settings = job.config.encoder
        if settings.name != "compact" and settings.pretrained.mode == "frozen":
            key = settings, job.config.method, job.seen, job.unseen, job.config.training.selection
            alike.setdefault(key, job)
    cache = Path(checked.study.data.cache) if checked.study.data.cache else True
    stores = {settings: StoredVectors(settings, cache) for settings in dict.fromkeys(key[0] for key in alike)}
    texts: dict[str, list[Corpus]] = {}
    for (settings, *_), job in alike.items():
        corpora = texts_of_job(job, checked.grid.only(job.languages))
        texts.setdefault(stores[settings].settings_hash, []).extend(corpora)
    by_hash = {stored.settings_hash: (stored, settings) for settings, stored in stores.items()}
    return [Encodings.of(*by_hash[name], corpora) for name, corpora in texts.items()]


def _worker_jobs(todo: Sequence[StudyJob], encodings: "Sequence[Encodings]", run: Path) -> dict[str, WorkerJob]:
    """Return all jobs of a run with what each waits for; the longest trainings come first."""
    jobs = {name: job for part in encodings for name, job in part.jobs.items()}
    texts = list(jobs)
    todo = sorted(todo, key=lambda job: -job.config.training.steps)
    uncalibrated = {job.held_out: job for job in reversed(todo) if job.study.folds and not work.is_calibrated(job, run)}
    calibrations: dict[str, WorkerJob] = {}
    for name, job in uncalibrated.items():
        folds = {
            f"{name}-{number}": partial(work.predict_fold, job, run, number)
            for number, folder in enumerate(work.fold_folders(job, run))
            if not (folder / work.PREDICTIONS).exists()
        }
        steps = job.config.training.steps
        jobs |= {fold: WorkerJob(predict, "Holding out", steps, "steps", texts) for fold, predict in folds.items()}
        calibrate = partial(work.calibrate_methods, job, run)
        calibrations[name] = WorkerJob(calibrate, "Calibrating", len(job.methods), "methods", list(folds))
    jobs |= calibrations
    for job in todo:
        bar = "+".join(job.methods) if len(todo) <= _MOST_BARS else "Training"
        needs = [job.held_out] if job.held_out in uncalibrated else texts
        jobs[job.id] = WorkerJob(partial(work.train_job, job, run), bar, job.config.training.steps, "steps", needs)
    return jobs


@dataclass(frozen=True)
class Encodings:
    """Jobs for the texts whose features a cache lacks: one for each part of a text, and one that joins its parts."""

    stored: StoredVectors
    corpora: dict[str, Corpus]
    """All texts that are needed, by their hashes."""
    jobs: dict[str, WorkerJob]

    @classmethod
    def of(cls, stored: StoredVectors, config: EncoderConfig, corpora: Iterable[Corpus]) -> "Encodings":
        """Make the jobs, in a random order: commands that share a cache rarely encode the same part at once."""
        distinct = {corpus.text_hash: corpus for corpus in corpora if len(corpus)}
        cache = stored.cache.folder is not None and stored.cache.folder.parent.absolute()
        encodings: dict[str, WorkerJob] = {}
        joins: dict[str, WorkerJob] = {}
        for text, corpus in distinct.items():
            if stored.is_stored(corpus):
                continue
            parts, name = stored.parts(corpus), f"{stored.settings_hash}-{text[:16]}"
            whole = len(parts) == 1
            missing = {
                f"{name}-{i}": WorkerJob(
                    partial(encode_part, config, cache, part.text(), whole), "Encoding", part.n_words, "words"
                )
                for i, part in enumerate(parts)
                if whole or not stored.is_stored(part, whole=False)
            }
            encodings |= missing
            if not whole:
                join = partial(join_parts, config, cache, corpus.text())
                joins[f"{name}-whole"] = WorkerJob(join, "Encoding", 0, "words", list(missing))
        order = random.sample(list(encodings), len(encodings))
        return cls(stored, distinct, {name: encodings[name] for name in order} | joins)

    @property
    def n_words(self) -> int:
        """The number of words of all corpora."""
        return sum(corpus.n_words for corpus in self.corpora.values())


def texts_of_job(job: StudyJob, part: StudyGrid) -> Iterator[Corpus]:
    """Yield the text that a job over a frozen encoder encodes, and the trainings that hold out its seen cells."""
    grid, config = work.training_grid(part, job.config.method), job.config
    seen = frozenset(map(Cell.parse, job.seen))
    plan = find_method(config.method).plan(grid, seen, config)
    centred = config.encoder.pretrained.centring != "none"
    trained = plan.cells | seen if job.study.folds else plan.cells
    yield from (text for _, text in texts_to_encode(grid, seen, trained, part.grid, centred))
    if config.training.selection == "oracle":
        yield from map(grid.development, grid.cells)
    for cell in part.grid.cells if job.few_shot else ():
        if cell not in seen:
            labelled = [splits for splits in part.grid[cell] if splits.has_training_data]
            yield Corpus.joined(splits.training for splits in labelled)
            yield Corpus.joined(splits.test for splits in labelled)


def encode_part(
    config: EncoderConfig, cache: Path | bool, corpus: Corpus, whole: bool, threads: int, report: Report | None = None
) -> dict[str, Any]:
    """Encode a text and store its features, unless another process has done so meanwhile."""
    torch.set_num_threads(threads)
    stored = _stored(config, cache)  # pyright: ignore[reportArgumentType]  # settings are frozen
    if not stored.is_stored(corpus, whole):
        stored.store(corpus, whole, report)
    return {"n_words": corpus.n_words}


def join_parts(
    config: EncoderConfig, cache: Path | bool, corpus: Corpus, threads: int, _report: Report | None = None
) -> dict[str, Any]:
    """Put the features of the parts of a long text together, in the place of these."""
    torch.set_num_threads(threads)
    _stored(config, cache).of(corpus)  # pyright: ignore[reportArgumentType]  # settings are frozen
    return {}


_stored = lru_cache(maxsize=1)(StoredVectors)  # kept by a worker from job to job
