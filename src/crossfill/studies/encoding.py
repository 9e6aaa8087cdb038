"""Encoding of text in workers that keep their network, into a cache of features that machines may share.

A part of a corpus travels to its worker as text, and its features go to the cache folder. Names of cache entries are
hashes of what is in them, so commands on several machines can fill one folder without knowing of each other.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from crossfill.config import EncoderConfig
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.errors import EncoderError
from crossfill.executors.jobs import Amount
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import EMPTY, Column, Corpus
from crossfill.methods.registry import find_method
from crossfill.progress import Report
from crossfill.studies.grids import StudyGrid
from crossfill.studies.job import training_grid
from crossfill.studies.plan import StudyJob

ENCODE = "encode"


class EncodingJobs(Mapping[str, dict[str, Any]]):
    """A job for each text whose features a cache lacks, or for each part of a long one.

    The order is random: commands that share a cache rarely encode the same part at the same time. The text of a job is
    looked up when its turn comes, so that a billion words need no memory.
    """

    def __init__(self, encoder: FrozenEncoder, config: EncoderConfig, corpora: Iterable[Corpus]) -> None:
        self.encoder = encoder
        self.corpora = {corpus.text_hash: corpus for corpus in corpora if len(corpus)}
        self.missing = {text for text, corpus in self.corpora.items() if not encoder.is_cached(corpus)}
        """Hashes of the corpora that were not in the cache at first."""
        self.left: dict[str, set[str]] = {}
        """The jobs that are not finished, of each missing corpus."""
        parts: dict[str, tuple[str, Corpus, bool]] = {}
        for text in self.missing:
            cut = encoder.parts(self.corpora[text])
            whole = len(cut) == 1
            left = {i: part for i, part in enumerate(cut) if whole or not encoder.is_cached(part, whole=False)}
            named = {f"{encoder.settings_hash}-{text[:16]}-{i}": (text, part, whole) for i, part in left.items()}
            self.left[text] = set(named)
            parts |= named
        names = list(parts)
        random.shuffle(names)
        self.parts = {name: parts[name] for name in names}
        folder = encoder.cache.folder
        self.shared = {
            "kind": ENCODE,
            "encoder": config.model_dump_json(),
            "cache": None if folder is None else str(folder.parent.absolute()),
        }

    def __getitem__(self, name: str) -> dict[str, Any]:
        _, corpus, whole = self.parts[name]
        return {
            **self.shared,
            "whole": whole,
            "words": list(corpus.words),
            "spaces": corpus.spaces.tolist(),
            "offsets": np.asarray(corpus.offsets).tolist(),
            "text": corpus.text_hash,
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def amounts(self) -> dict[str, Amount]:
        """The words of each job."""
        return {name: Amount("Encoding", part.n_words, "words") for name, (_, part, _) in self.parts.items()}

    @property
    def n_words(self) -> int:
        """Number of words of all corpora."""
        return sum(corpus.n_words for corpus in self.corpora.values())

    def finish(self, name: str) -> None:
        """Note that a job is finished; the last one of a long corpus puts its parts together."""
        text = self.parts[name][0]
        self.left[text].discard(name)
        if not self.left[text]:
            self.encoder.vectors(self.corpora[text])


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


def encode_part(given: Mapping[str, Any], threads: int, report: Report | None = None) -> dict[str, Any]:
    """Encode a text and store its features, unless another process has done so meanwhile."""
    import torch

    torch.set_num_threads(threads)
    spaces, offsets = np.array(given["spaces"], dtype=np.bool_), np.array(given["offsets"], dtype=np.int64)
    corpus = Corpus(Column.of(given["words"]), EMPTY.labels, spaces, offsets)
    if corpus.text_hash != given["text"]:
        raise EncoderError("expected the text that was sent, got another; is the same crossfill on all machines?")
    encoder = _encoder(given["encoder"], given["cache"])
    if not encoder.is_cached(corpus, given["whole"]):
        encoder.store(corpus, given["whole"], report)
    return {"n_words": corpus.n_words}


@lru_cache(maxsize=1)
def _encoder(config: str, cache: str) -> FrozenEncoder:
    return FrozenEncoder(EncoderConfig.model_validate_json(config), (), Path(cache))
