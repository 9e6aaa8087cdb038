"""Tagging of many sentences, each in its own cell, with one pass through the encoder."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.encoders.base import CentredEncoder, ranges
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Unit
from crossfill.model import Classifier, Model
from crossfill.prediction.calibration import TaskCalibration
from crossfill.prediction.decisions import decide
from crossfill.prediction.predict import Run, believe, encode_words
from crossfill.prediction.tagging import Tagging, TaggingOptions

HeadOf = Callable[[Cell, int], Classifier]
"""Returns the head of a cell, given the number of draws."""


@dataclass(frozen=True, slots=True)
class Query:
    """A sentence to tag in a cell."""

    sentence: Sentence
    cell: Cell
    n_samples: int
    options: TaggingOptions
    calibration: TaskCalibration | None = None


@torch.inference_mode()
def answer(model: Model, queries: Sequence[Query], head_of: HeadOf) -> list[Tagging]:
    """The taggings of these queries, in their order.

    Every sentence is encoded once. Up to rounding, each tagging is the same as if its query were alone, except where
    heads vote: they vote over all queries of a cell.
    """
    found: dict[int, Tagging] = {}
    encoded = _encode(model, queries)
    for numbers in _grouped(queries, model.heads.shifts):
        own = [queries[number] for number in numbers]
        first, sentences = own[0], [query.sentence for query in own]
        task = model.inventory.task(first.cell.task)
        each = map(len, sentences) if task.unit is Unit.WORD else (1 for _ in own)
        lengths = np.fromiter(each, dtype=np.int64, count=len(own))
        labels_of = Counter[Cell]()
        for query, length in zip(own, lengths.tolist(), strict=True):
            labels_of[query.cell] += length
        parts = model.pool(*encoded.of(own), first.cell.task).split(list(labels_of.values()))
        runs = [
            Run(part, head_of(cell, first.n_samples), _cues(model, cell, own))
            for cell, part in zip(labels_of, parts, strict=True)
        ]
        made = believe(runs, model.heads.vote, first.options.interval)
        cells = [query.cell for query in own]
        shift = model.heads.shifts.get(first.cell, 0.0)
        tagged = decide(cells, sentences, lengths, task, made, first.options, first.calibration, shift)
        found |= zip(numbers, tagged, strict=True)
    return [found[number] for number in range(len(queries))]


class _Encoded(NamedTuple):
    """Features of the words of sentences in their languages, and the row at which each sentence begins."""

    features: Float[Tensor, "words features"]
    first: dict[tuple[str, Sentence], int]

    def of(self, queries: Sequence[Query]) -> tuple[Float[Tensor, "chosen features"], Int[Tensor, "sentences"]]:
        """The features of all words of the queries, and the words of each of their sentences."""
        parts = [(query.cell.language, part) for query in queries for part in query.sentence.sentences]
        starts = torch.tensor([self.first[part] for part in parts], dtype=torch.long)
        lengths = torch.tensor([len(sentence) for _, sentence in parts], dtype=torch.long)
        return self.features[ranges(starts, lengths).to(self.features.device)], lengths


def _encode(model: Model, queries: Sequence[Query]) -> _Encoded:
    """The features of all sentences, in each language that they are queried in."""
    sentences = list(dict.fromkeys(part for query in queries for part in query.sentence.sentences))
    place = {sentence: i for i, sentence in enumerate(sentences)}
    wanted: dict[str, dict[int, None]] = defaultdict(dict)
    for query in queries:
        for part in query.sentence.sentences:
            wanted[query.cell.language][place[part]] = None
    encoder, starts = model.encoder, np.cumsum([0, *map(len, sentences)]).tolist()
    inputs = encoder.prepare(Corpus.from_text(sentences), next(iter(wanted)))
    if not isinstance(encoder, CentredEncoder):
        pairs = ((language, i) for language, own in wanted.items() for i in own)
        return _Encoded(encode_words(model, inputs), {(language, sentences[i]): starts[i] for language, i in pairs})
    parts, first, n_words = [], {}, 0
    for language, own in wanted.items():
        part = inputs if len(own) == len(sentences) else inputs.take(torch.tensor(list(own)))
        parts.append(encode_words(model, encoder.recentred(part, language)))
        for i in sorted(own) if part is inputs else own:
            first[language, sentences[i]] = n_words
            n_words += len(sentences[i])
    return _Encoded(torch.cat(parts), first)


def _cues(model: Model, cell: Cell, queries: Sequence[Query]) -> Int[Tensor, "words cues"] | None:
    """The cues of the words that are queried in a cell, if its head reads them."""
    if cell not in model.heads.cue_cells:
        return None
    return model.cues(cell, Corpus.from_text(query.sentence for query in queries if query.cell == cell))


def _grouped(queries: Sequence[Query], shifts: Mapping[Cell, float]) -> list[list[int]]:
    """Groups of queries that can be decided together (same task, draws, options), as indices, cell by cell.

    Cells with decisions of their own are groups of their own.
    """
    groups: dict[object, dict[Cell, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, query in enumerate(queries):
        alone = query.cell.language if query.cell in shifts else ""
        groups[query.cell.task, alone, query.n_samples, query.options][query.cell].append(number)
    return [[number for own in cells.values() for number in own] for cells in groups.values()]
