"""Tagging of many sentences, each in its own cell, with one pass through the encoder.

Then from predicted probabilities to the output: labels, spans, label sets and marks of doubtful words (`_decide`).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.encoders.base import ranges
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Task, TaskKind, Unit
from crossfill.model import Classifier, Model
from crossfill.prediction.calibration import TaskCalibration, rule_for, tempered
from crossfill.prediction.predict import CellWords, Prediction, encode_words, predict_runs
from crossfill.prediction.rules import DecodedSpan, decode_spans
from crossfill.prediction.tagging import Span, Tagging, TaggingOptions

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
def tag_queries(model: Model, queries: Sequence[Query], head_of: HeadOf) -> list[Tagging]:
    """Tag these queries, in their order.

    Every sentence is encoded once. Up to rounding, each tagging is the same as if its query were alone, except where
    heads vote: they vote over all queries of a cell.
    """
    taggings: dict[int, Tagging] = {}
    encoded = _encode(model, queries)
    for numbers in _grouped(queries, model.heads.shifts):
        group = [queries[number] for number in numbers]
        first, task = group[0], model.inventory.task(group[0].cell.task)
        each = (len(query.sentence) if task.unit is Unit.WORD else 1 for query in group)
        lengths = np.fromiter(each, dtype=np.int64, count=len(group))
        labels_of = Counter[Cell]()
        for query, length in zip(group, lengths.tolist(), strict=True):
            labels_of[query.cell] += length
        parts = model.pool(*encoded.of(group), task.name).split(list(labels_of.values()))
        runs = [
            CellWords(part, head_of(cell, first.n_samples), _cues(model, cell, group))
            for cell, part in zip(labels_of, parts, strict=True)
        ]
        prediction = predict_runs(runs, model.heads.vote, first.options.interval)
        tagged = _decide(group, lengths, task, prediction, model.heads.shifts.get(first.cell, 0.0))
        taggings |= zip(numbers, tagged, strict=True)
    return [taggings[number] for number in range(len(queries))]


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
    """Encode all sentences, in each language that they are queried in."""
    sentences = list(dict.fromkeys(part for query in queries for part in query.sentence.sentences))
    place = {sentence: i for i, sentence in enumerate(sentences)}
    wanted: dict[str, dict[int, None]] = defaultdict(dict)
    for query in queries:
        for part in query.sentence.sentences:
            wanted[query.cell.language][place[part]] = None
    encoder, starts = model.encoder, np.cumsum([0, *map(len, sentences)]).tolist()
    inputs = encoder.prepare(Corpus.from_text(sentences), next(iter(wanted)))
    if not encoder.is_centred:
        pairs = ((language, i) for language, chosen in wanted.items() for i in chosen)
        return _Encoded(encode_words(model, inputs), {(language, sentences[i]): starts[i] for language, i in pairs})
    parts, first, n_words = [], {}, 0
    for language, chosen in wanted.items():
        part = inputs if len(chosen) == len(sentences) else inputs.take(torch.tensor(list(chosen)))
        parts.append(encode_words(model, encoder.recentred(part, language)))
        for i in sorted(chosen) if part is inputs else chosen:
            first[language, sentences[i]] = n_words
            n_words += len(sentences[i])
    return _Encoded(torch.cat(parts), first)


def _cues(model: Model, cell: Cell, queries: Sequence[Query]) -> Int[Tensor, "words cues"] | None:
    """Find the cues of the words that are queried in a cell, if its head reads them."""
    if cell not in model.heads.cue_cells:
        return None
    return model.cues(cell, Corpus.from_text(query.sentence for query in queries if query.cell == cell))


def _grouped(queries: Sequence[Query], shifts: Mapping[Cell, float]) -> list[list[int]]:
    """Group queries that can be decided together (same task, draws, options), as indices, cell by cell.

    Cells with decisions of their own are groups of their own.
    """
    groups: dict[object, dict[Cell, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, query in enumerate(queries):
        alone = query.cell.language if query.cell in shifts else ""
        groups[query.cell.task, alone, query.n_samples, query.options][query.cell].append(number)
    return [[number for in_cell in cells.values() for number in in_cell] for cells in groups.values()]


def _decide(
    queries: Sequence[Query], lengths: Int[np.ndarray, "sentences"], task: Task, prediction: Prediction, shift: float
) -> list[Tagging]:
    """Make the tagging of each query from one prediction for all words; the queries agree in task and options.

    `lengths` are the labels of each sentence: its words, or one. `shift` is an offset of decisions on the label that
    means none, in addition to that of the calibration.
    """
    probabilities, entropy, mutual_information = (
        values.cpu().numpy() for values in (prediction.probabilities, prediction.entropy, prediction.mutual_information)
    )
    bounds = None if prediction.bounds is None else prediction.bounds.cpu().numpy()
    options, calibration, sets, doubtful = queries[0].options, queries[0].calibration, None, None
    if calibration is not None:
        sets = None if options.alpha is None else calibration.sets(probabilities, options.alpha)
        doubtful = None if options.abstain is None else calibration.doubtful(probabilities, options.abstain)
        if options.temperature:
            probabilities = tempered(probabilities, calibration.temperature)
    rule = rule_for(calibration, options.decision, options.prefer, shift)
    chosen = rule.choose(probabilities, lengths, task)
    spans: list[DecodedSpan] = []
    if task.kind is TaskKind.SPANS:
        spans = decode_spans(probabilities, chosen, lengths, task.labels)
    confidence = probabilities[np.arange(len(chosen)), chosen]
    labels = [task.labels[i] for i in chosen.tolist()]
    if options.min_confidence > 0:
        unsure = np.zeros(len(labels), dtype=np.bool_)
        if task.kind is TaskKind.SPANS:
            for span in spans:
                unsure[span.start : span.end] = span.confidence < options.min_confidence
            spans = [span for span in spans if span.confidence >= options.min_confidence]
        else:
            unsure = confidence < options.min_confidence
        none = task.absent or "_"
        labels = [none if dropped else label for label, dropped in zip(labels, unsure.tolist(), strict=True)]
        doubtful = unsure if doubtful is None else doubtful | unsure
    taggings, waiting, first = [], iter(spans), 0
    span = next(waiting, None)
    for query, length in zip(queries, lengths.tolist(), strict=True):
        end, in_sentence = first + length, []
        while span is not None and span.start < end:
            in_sentence.append(span)
            span = next(waiting, None)
        taggings.append(
            Tagging(
                query.cell,
                query.sentence,
                tuple(labels[first:end]),
                probabilities[first:end],
                task,
                confidence[first:end],
                entropy[first:end],
                mutual_information[first:end],
                _spans(in_sentence, query.sentence, first),
                None if sets is None else sets[first:end],
                None if doubtful is None else doubtful[first:end],
                None if bounds is None else bounds[:, first:end],
            )
        )
        first = end
    return taggings


def _spans(decoded: Sequence[DecodedSpan], sentence: Sentence, first: int) -> tuple[Span, ...]:
    """Cut the spans out of a sentence, whose first word has the number `first` in the prediction."""
    if not decoded:
        return ()
    text, offsets, spans = sentence.original, sentence.offsets, []
    for span in decoded:
        start, end = span.start - first, span.end - first
        begin, stop = offsets[start][0], offsets[end - 1][1]
        spans.append(Span(start, end, span.type, text[begin:stop], span.confidence, begin, stop))
    return tuple(spans)
