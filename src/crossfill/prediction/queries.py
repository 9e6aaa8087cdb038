"""Tagging of many sentences, each in its own cell, with one pass through the encoder."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.encoders.base import ranges
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Task, TaskKind, Unit
from crossfill.measures.metrics import Lengths
from crossfill.model import AS_ITS_TASK, CellDecision, Classifier, Model
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
    features, first_row = _encode(model, queries)
    for numbers in _grouped(queries, model.heads.decisions):
        group = [queries[number] for number in numbers]
        first, task = group[0], model.inventory.task(group[0].cell.task)
        each = (len(query.sentence) if task.unit is Unit.WORD else 1 for query in group)
        lengths = np.fromiter(each, dtype=np.int64, count=len(group))
        labels_of = Counter[Cell]()
        for query, length in zip(group, lengths.tolist(), strict=True):
            labels_of[query.cell] += length
        sentences = [(query.cell.language, part) for query in group for part in query.sentence.sentences]
        starts = torch.tensor([first_row[sentence] for sentence in sentences], dtype=torch.long)
        n_words = torch.tensor([len(sentence) for _, sentence in sentences], dtype=torch.long)
        words = features[ranges(starts, n_words).to(features.device)]
        parts = model.pool(words, n_words, task.name).split(list(labels_of.values()))
        runs = []
        for cell, part in zip(labels_of, parts, strict=True):
            in_cell = (query.sentence for query in group if query.cell == cell)
            cues = model.cues(cell, Corpus.from_text(in_cell)) if cell in model.heads.cue_cells else None
            runs.append(CellWords(part, head_of(cell, first.n_samples), cues))
        prediction = predict_runs(runs, model.heads.vote, first.options.interval)
        tagged = decide(group, lengths, task, prediction, model.heads.decisions.get(first.cell, AS_ITS_TASK))
        taggings |= zip(numbers, tagged, strict=True)
    return [taggings[number] for number in range(len(queries))]


def _encode(
    model: Model, queries: Sequence[Query]
) -> tuple[Float[Tensor, "words features"], dict[tuple[str, Sentence], int]]:
    """Encode all sentences, in each language that they are queried in; with the row at which each of them begins."""
    encoder, wanted = model.encoder, defaultdict[str, dict[Sentence, None]](dict)
    for query in queries:
        wanted[query.cell.language] |= dict.fromkeys(query.sentence.sentences)
    place = {sentence: i for i, sentence in enumerate(dict.fromkeys(s for q in queries for s in q.sentence.sentences))}
    inputs = encoder.prepare(Corpus.from_text(place), queries[0].cell.language)
    if not encoder.is_centred:
        starts = np.cumsum([0, *map(len, place)]).tolist()
        rows = {(language, s): starts[place[s]] for language, chosen in wanted.items() for s in chosen}
        return encode_words(model, inputs), rows
    parts, rows, n_words = [], {}, 0
    for language, chosen in wanted.items():
        every = len(chosen) == len(place)
        part = inputs if every else inputs.take(torch.tensor([place[sentence] for sentence in chosen]))
        parts.append(encode_words(model, encoder.recentred(part, language)))
        for sentence in place if every else chosen:
            rows[language, sentence] = n_words
            n_words += len(sentence)
    return torch.cat(parts), rows


def _grouped(queries: Sequence[Query], alone: Collection[Cell]) -> list[list[int]]:
    """Group queries that are decided together (task, draws, options, rule of the cell), as indices, cell by cell."""
    groups: dict[object, dict[Cell, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, query in enumerate(queries):
        language = query.cell.language if query.cell in alone else ""
        groups[query.cell.task, language, query.n_samples, query.options][query.cell].append(number)
    return [[number for in_cell in cells.values() for number in in_cell] for cells in groups.values()]


def decide(
    queries: Sequence[Query], lengths: Lengths, task: Task, prediction: Prediction, decision: CellDecision
) -> list[Tagging]:
    """Make the tagging of each query from one prediction for all words."""
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
    rule = rule_for(calibration, options.decision, options.prefer, decision)
    chosen = rule.choose(probabilities, lengths, task)
    spans: list[DecodedSpan] = []
    if task.kind is TaskKind.SPANS:
        spans = decode_spans(rule.weighed(probabilities, task), chosen, lengths, task.labels, rule.transitions)
    confidence = rule.confidence(probabilities, chosen, lengths, task)
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
    ends = np.cumsum(lengths)
    spans_of: dict[int, list[DecodedSpan]] = defaultdict(list)
    for span in spans:
        spans_of[int(np.searchsorted(ends, span.start, side="right"))].append(span)
    taggings = []
    for i, (query, end, length) in enumerate(zip(queries, ends.tolist(), lengths.tolist(), strict=True)):
        words = slice(end - length, end)
        tagging = Tagging(
            query.cell,
            query.sentence,
            tuple(labels[words]),
            probabilities[words],
            task,
            confidence[words],
            entropy[words],
            mutual_information[words],
            _cut(spans_of[i], query.sentence, end - length),
            None if sets is None else sets[words],
            None if doubtful is None else doubtful[words],
            None if bounds is None else bounds[:, words],
        )
        taggings.append(tagging)
    return taggings


def _cut(decoded: Sequence[DecodedSpan], sentence: Sentence, first: int) -> tuple[Span, ...]:
    """Cut the spans out of a sentence, whose first word has the number `first` in the prediction."""
    text, offsets, spans = sentence.original, sentence.offsets if decoded else (), []
    for span in decoded:
        start, end = span.start - first, span.end - first
        begin, stop = offsets[start][0], offsets[end - 1][1]
        spans.append(Span(start, end, span.type, text[begin:stop], span.confidence, begin, stop))
    return tuple(spans)
