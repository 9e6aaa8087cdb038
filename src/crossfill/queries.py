"""Many sentences, each in a cell of its own, over one pass through the encoder: the work under every tagging."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.calibration import TaskCalibration
from crossfill.doubt import Doubt, taggings
from crossfill.encoders.base import CentredEncoder, ranges
from crossfill.generator import Classifier
from crossfill.grid import Cell
from crossfill.model import Model
from crossfill.predict import Run, believe, encode
from crossfill.sentence import Corpus, Sentence
from crossfill.tagging import Tagging

HeadOf = Callable[[Cell, int], Classifier]
"""Where the head of a cell comes from, given the number of draws."""


@dataclass(frozen=True, slots=True)
class Query:
    """A sentence to tag in a cell."""

    sentence: Sentence
    cell: Cell
    n_samples: int
    doubt: Doubt
    calibration: TaskCalibration | None = None


def composed(sentences: Sequence[Sentence]) -> Corpus:
    """The sentences as encoders read them: characters composed (NFC)."""
    return Corpus.from_sentences(Sentence(tuple(normalize("NFC", w) for w in s.words), (), s.spaces) for s in sentences)


def answer(model: Model, queries: Sequence[Query], head_of: HeadOf) -> list[Tagging]:
    """The taggings of these queries, in their order.

    Every sentence is encoded once. Each tagging is what it would be alone, but for rounding; where heads vote, those
    of a cell vote over all its queries.
    """
    found: dict[int, Tagging] = {}
    encoded = _encode(model, queries)
    for numbers in _grouped(queries):
        first, of_cell = queries[numbers[0]], defaultdict(list)
        for number in numbers:
            of_cell[queries[number].cell].append(number)
        runs = [
            Run(encoded[cell.language].of([queries[n].sentence for n in own]), head_of(cell, first.n_samples))
            for cell, own in of_cell.items()
        ]
        made = believe(runs, model.heads.vote, first.doubt.interval)
        parts = (made.probabilities, made.entropy, made.mutual_information, made.bounds)
        columns = [part.cpu().numpy() for part in parts if part is not None]
        order = [number for own in of_cell.values() for number in own]
        sentences = [queries[number].sentence for number in order]
        lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(order))
        cells, labels = [queries[number].cell for number in order], model.inventory.labels[first.cell.task]
        tagged = taggings(cells, sentences, lengths, labels, columns, first.doubt, first.calibration)
        found |= zip(order, tagged, strict=True)
    return [found[number] for number in range(len(queries))]


class _Encoded(NamedTuple):
    """Word vectors of sentences, and where each sentence begins among them."""

    features: Float[Tensor, "words features"]
    first: dict[Sentence, int]

    def of(self, sentences: Sequence[Sentence]) -> Float[Tensor, "chosen features"]:
        starts = torch.tensor([self.first[sentence] for sentence in sentences], dtype=torch.long)
        rows = ranges(starts, torch.tensor([len(sentence) for sentence in sentences], dtype=torch.long))
        return self.features[rows.to(self.features.device)]


def _encode(model: Model, queries: Sequence[Query]) -> dict[str, _Encoded]:
    """The vectors of all sentences, as those of each language that they are asked for in."""
    sentences = list(dict.fromkeys(query.sentence for query in queries))
    place = {sentence: i for i, sentence in enumerate(sentences)}
    wanted: dict[str, set[int]] = defaultdict(set)
    for query in queries:
        wanted[query.cell.language].add(place[query.sentence])
    encoder = model.encoder
    inputs = encoder.prepare(composed(sentences), next(iter(wanted), ""))
    if not isinstance(encoder, CentredEncoder):
        encoded = _Encoded(encode(model, inputs), _first_rows(sentences))
        return dict.fromkeys(wanted, encoded)
    found = {}
    for language, places in wanted.items():
        own = sorted(places)
        part = inputs if len(own) == len(sentences) else inputs.take(torch.tensor(own))
        found[language] = _Encoded(
            encode(model, encoder.recentred(part, language)), _first_rows([sentences[i] for i in own])
        )
    return found


def _first_rows(sentences: Sequence[Sentence]) -> dict[Sentence, int]:
    lengths = [len(sentence) for sentence in sentences]
    return dict(zip(sentences, (np.cumsum(lengths) - lengths).tolist(), strict=True))


def _grouped(queries: Sequence[Query]) -> list[list[int]]:
    """The numbers of queries that can be classified together: of one task, with as many draws and the same doubts."""
    groups: dict[object, list[int]] = defaultdict(list)
    for number, query in enumerate(queries):
        groups[query.cell.task, query.n_samples, query.doubt].append(number)
    return list(groups.values())
