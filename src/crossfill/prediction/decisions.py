"""From predicted probabilities to the output: labels, spans, label sets and marks of doubtful words."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task, TaskKind
from crossfill.prediction.calibration import TaskCalibration, rule_for, tempered
from crossfill.prediction.decoding import DecodedSpan, decode_spans
from crossfill.prediction.predict import Prediction
from crossfill.prediction.tagging import Span, Tagging, TaggingOptions


def decide(
    cells: Sequence[Cell],
    sentences: Sequence[Sentence],
    lengths: Int[np.ndarray, "sentences"],
    task: Task,
    prediction: Prediction,
    options: TaggingOptions,
    calibration: TaskCalibration | None,
    shift: float = 0.0,
) -> list[Tagging]:
    """The tagging of each sentence in its cell, from one prediction for all words; all cells must be of one task.

    `lengths` are the labels of each sentence: its words, or one. `shift` is an offset of decisions on the label that
    means none, in addition to that of the calibration.
    """
    probabilities, entropy, mutual_information = (
        values.cpu().numpy() for values in (prediction.probabilities, prediction.entropy, prediction.mutual_information)
    )
    bounds = None if prediction.bounds is None else prediction.bounds.cpu().numpy()
    sets = doubtful = None
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
    found, waiting, first = [], iter(spans), 0
    span = next(waiting, None)
    for cell, sentence, length in zip(cells, sentences, lengths.tolist(), strict=True):
        end, own = first + length, []
        while span is not None and span.start < end:
            own.append(span)
            span = next(waiting, None)
        found.append(
            Tagging(
                cell,
                sentence,
                tuple(labels[first:end]),
                probabilities[first:end],
                task,
                confidence[first:end],
                entropy[first:end],
                mutual_information[first:end],
                _spans(own, sentence, first) if own else (),
                None if sets is None else sets[first:end],
                None if doubtful is None else doubtful[first:end],
                None if bounds is None else bounds[:, first:end],
            )
        )
        first = end
    return found


def _spans(found: Sequence[DecodedSpan], sentence: Sentence, first: int) -> tuple[Span, ...]:
    """The spans of a sentence, whose first word has the number `first` in the prediction."""
    text, offsets, spans = sentence.original, sentence.offsets, []
    for span in found:
        start, end = span.start - first, span.end - first
        begin, stop = offsets[start][0], offsets[end - 1][1]
        spans.append(Span(start, end, span.type, text[begin:stop], span.confidence, begin, stop))
    return tuple(spans)
