"""Encoding of text in workers that keep their network, into a cache of features that machines may share.

A part of a corpus travels to its worker as text, and its features go to the cache folder. Names of cache entries are
hashes of what is in them, so commands on several machines can fill one folder without knowing of each other.
"""

import random
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from crossfill.config import EncoderConfig
from crossfill.encoders.frozen import StoredVectors
from crossfill.executors.base import WorkerJob
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus
from crossfill.methods.registry import find_method
from crossfill.progress import Report
from crossfill.studies.job import training_grid
from crossfill.studies.plan import StudyJob
from crossfill.studies.study import StudyGrid


class Encodings:
    """Jobs for the texts whose features a cache lacks, one for each part of a long text.

    The order is random: commands that share a cache rarely encode the same part at the same time.
    """

    def __init__(self, stored: StoredVectors, config: EncoderConfig, corpora: Iterable[Corpus]) -> None:
        self.stored = stored
        self.corpora = {corpus.text_hash: corpus for corpus in corpora if len(corpus)}
        self.missing = {text for text, corpus in self.corpora.items() if not stored.is_stored(corpus)}
        """Hashes of the corpora that were not in the cache at first."""
        self.left: dict[str, set[str]] = {}
        """The jobs that are not finished, of each missing corpus."""
        cache = stored.cache.folder is not None and stored.cache.folder.parent.absolute()
        jobs: dict[str, WorkerJob] = {}
        for text in self.missing:
            parts = stored.parts(self.corpora[text])
            whole = len(parts) == 1
            named = {
                f"{stored.settings_hash}-{text[:16]}-{i}": WorkerJob(
                    partial(encode_part, config, cache, part.text(), whole), "Encoding", part.n_words, "words"
                )
                for i, part in enumerate(parts)
                if whole or not stored.is_stored(part, whole=False)
            }
            self.left[text] = set(named)
            jobs |= named
        self.jobs = {name: jobs[name] for name in random.sample(list(jobs), len(jobs))}

    @property
    def n_words(self) -> int:
        """Number of words of all corpora."""
        return sum(corpus.n_words for corpus in self.corpora.values())

    def finish(self, name: str) -> None:
        """Note that a job is finished; the last one of a long corpus puts its parts together."""
        for text, left in self.left.items():
            if name in left:
                left.remove(name)
                if not left:
                    self.stored.of(self.corpora[text])


def all_texts(grid: Grid) -> Iterator[Corpus]:
    """Yield all text that trainings and evaluations on a grid encode, whichever cells they see."""
    yield from grid.texts.values()
    for cell in grid.cells:
        yield Corpus.joined(splits.training for splits in grid[cell] if splits.has_training_data)
        yield grid.training(cell)
        yield grid.development(cell)
        for seen in (True, False):
            yield from grid.evaluation(cell, seen).values()


def texts_of_job(job: StudyJob, part: StudyGrid) -> Iterator[Corpus]:
    """Yield the text that a job over a frozen encoder encodes, and the trainings that hold out its seen cells."""
    grid, config = training_grid(part, job.config.method), job.config
    seen = frozenset(map(Cell.parse, job.seen))
    plan = find_method(config.method).plan(grid, seen, config)
    yield from grid.texts.values() if config.encoder.pretrained.centring != "none" else ()
    for cell in grid.cells:
        corpora = grid[cell]
        if config.encoder.pretrained.centring != "none":
            yield Corpus.joined(splits.training for splits in corpora if cell in seen or splits.has_training_data)
        if cell in plan.cells or (job.folds and cell in seen):
            yield grid.training(cell)
        if cell in plan.cells or (job.folds and cell in seen) or config.training.selection == "oracle":
            yield grid.development(cell)
    for cell in part.grid.cells:
        yield from part.grid.evaluation(cell, cell in seen).values()
        if job.few_shot and cell not in seen:
            labelled = [splits for splits in part.grid[cell] if splits.has_training_data]
            yield Corpus.joined(splits.training for splits in labelled)
            yield Corpus.joined(splits.test for splits in labelled)


def encode_part(
    config: EncoderConfig, cache: Path | bool, corpus: Corpus, whole: bool, threads: int, report: Report | None = None
) -> dict[str, Any]:
    """Encode a text and store its features, unless another process has done so meanwhile."""
    import torch

    torch.set_num_threads(threads)
    stored = _stored(config, cache)  # pyright: ignore[reportArgumentType]  # settings are frozen
    if not stored.is_stored(corpus, whole):
        stored.store(corpus, whole, report)
    return {"n_words": corpus.n_words}


_stored = lru_cache(maxsize=1)(StoredVectors)  # kept by a worker from job to job
