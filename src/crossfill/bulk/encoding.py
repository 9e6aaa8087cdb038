"""Encoding of corpora in workers that keep their network, into a cache of features that machines may share.

A part of a corpus travels to its worker as text, and its features go to the cache folder. Names of cache entries are
hashes of what is in them, so commands on several machines can fill one folder without knowing of each other.
"""

import random
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crossfill.config import EncoderConfig
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.errors import EncoderError
from crossfill.executors.base import Report
from crossfill.grid.cells import Grid
from crossfill.grid.sentence import EMPTY, Column, Corpus


class Part(NamedTuple):
    """A corpus, or a part of a long one."""

    corpus: Corpus
    whole: bool


def corpora_of(grid: Grid) -> dict[str, Corpus]:
    """All text that trainings and evaluations on a grid encode, by its hash, whichever cells they see."""
    found: dict[str, Corpus] = {}
    for cell in grid.cells:
        trained = [splits.training for splits in grid[cell] if splits.has_training_data]
        scored = (*grid.evaluation(cell, True).values(), *grid.evaluation(cell, False).values())
        own = (Corpus.joined(trained), grid.training(cell), grid.development(cell), *scored)
        found |= {corpus.text_hash(): corpus for corpus in own if len(corpus)}
    return found | {corpus.text_hash(): corpus for corpus in grid.texts.values() if len(corpus)}


def missing_parts(encoder: FrozenEncoder, corpora: Mapping[str, Corpus]) -> dict[str, Part]:
    """What is not in the cache, by name, in a random order: commands that share a cache rarely do the same part."""
    found: dict[str, Part] = {}
    for name, corpus in corpora.items():
        if not encoder.is_cached(corpus):
            parts = encoder.parts(corpus)
            for number, part in enumerate(parts):
                if not encoder.is_cached(part, whole=len(parts) == 1):
                    found[f"{name[:16]}-{number}"] = Part(part, len(parts) == 1)
    names = list(found)
    random.shuffle(names)
    return {name: found[name] for name in names}


class EncodingJobs(Mapping[str, dict[str, Any]]):
    """The jobs of parts; the text of one is looked up when its turn comes, so that a billion words need no memory."""

    def __init__(self, parts: Mapping[str, Part], encoder: EncoderConfig, cache: Path) -> None:
        self.parts = parts
        self.shared = {"encoder": encoder.model_dump_json(), "cache": str(cache.absolute())}

    def __getitem__(self, name: str) -> dict[str, Any]:
        corpus, whole = self.parts[name]
        return {
            **self.shared,
            "whole": whole,
            "words": list(corpus.words),
            "spaces": corpus.spaces.tolist(),
            "offsets": np.asarray(corpus.offsets).tolist(),
            "text": corpus.text_hash(),
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


def encode_part(given: Mapping[str, Any], threads: int, report: Report | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Encode a part and store its features, unless another process has done so meanwhile."""
    import torch

    torch.set_num_threads(threads)
    spaces, offsets = np.array(given["spaces"], dtype=np.bool_), np.array(given["offsets"], dtype=np.int64)
    corpus = Corpus(Column.of(given["words"]), EMPTY.labels, spaces, offsets)
    if corpus.text_hash() != given["text"]:
        raise EncoderError("expected the text that was sent, got another; is the same crossfill on all machines?")
    encoder = _encoder(given["encoder"], given["cache"])
    if not encoder.is_cached(corpus, given["whole"]):
        encoder.store(corpus, given["whole"])
    return {"words": corpus.n_words}


@lru_cache(maxsize=1)
def _encoder(config: str, cache: str) -> FrozenEncoder:
    return FrozenEncoder(EncoderConfig.model_validate_json(config), (), Path(cache))
