"""From predicted distributions to labels, spans, label sets and marks: what a person is shown."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from crossfill.calibration import TaskCalibration, tempered
from crossfill.decoding import DecodedSpan, decode_spans, viterbi
from crossfill.grid import Cell
from crossfill.metrics import headline
from crossfill.sentence import Sentence
from crossfill.tagging import Span, Tagging


@dataclass(frozen=True)
class Doubt:
    """What to make of the model's doubts, besides telling them."""

    alpha: float | None = None
    """Give label sets that hold the right label in all but this share of words (see docs/uncertainty.md)."""
    abstain: float | None = None
    """Mark words as sure as the least sure of this share of calibration words."""
    min_confidence: float = 0.0
    """Give no label (`_`), and no span (`O`), of which the model is less sure."""
    temperature: bool = False
    """Scale probabilities by the temperature found on calibration words; sets and marks do not depend on it."""
    interval: float | None = None
    """Give the bounds between which this share of the posterior samples' probabilities lies, before any temperature."""


def taggings(
    cells: Sequence[Cell],
    sentences: Sequence[Sentence],
    lengths: Int[np.ndarray, "sentences"],
    names: tuple[str, ...],
    columns: Sequence[np.ndarray],
    doubt: Doubt,
    calibration: TaskCalibration | None,
) -> list[Tagging]:
    """Sentence by sentence what was predicted for all of them at once, each in its own cell, all of one task.

    The columns are probabilities, entropy, mutual information and, where they were asked for, bounds.
    """
    probabilities, entropy, mutual_information, *rest = columns
    bounds = rest[0] if rest else None
    sets = doubtful = None
    if calibration is not None:
        sets = None if doubt.alpha is None else calibration.sets(probabilities, doubt.alpha)
        doubtful = None if doubt.abstain is None else calibration.doubtful(probabilities, doubt.abstain)
        if doubt.temperature:
            probabilities = tempered(probabilities, calibration.temperature)
    spans: list[DecodedSpan] = []
    if headline(names) == "span_f1":
        chosen = viterbi(probabilities, lengths, names)
        spans = decode_spans(probabilities, chosen, lengths, names)
    else:
        chosen = probabilities.argmax(-1)
    confidence = probabilities[np.arange(len(chosen)), chosen]
    labels = [names[i] for i in chosen.tolist()]
    if doubt.min_confidence > 0:
        unsure = np.zeros(len(labels), dtype=np.bool_)
        if headline(names) == "span_f1":
            for span in spans:
                unsure[span.start : span.end] = span.confidence < doubt.min_confidence
            spans = [span for span in spans if span.confidence >= doubt.min_confidence]
        else:
            unsure = confidence < doubt.min_confidence
        absent = "O" if headline(names) == "span_f1" else "_"
        labels = [absent if dropped else label for label, dropped in zip(labels, unsure.tolist(), strict=True)]
        doubtful = unsure if doubtful is None else doubtful | unsure
    found, waiting, first = [], iter(spans), 0
    span = next(waiting, None)
    for cell, sentence, length in zip(cells, sentences, lengths.tolist(), strict=True):
        end, own = first + length, []
        while span is not None and span.start < end:
            own.append(_span(span, sentence, first))
            span = next(waiting, None)
        found.append(
            Tagging(
                cell,
                sentence,
                tuple(labels[first:end]),
                probabilities[first:end],
                names,
                confidence[first:end],
                entropy[first:end],
                mutual_information[first:end],
                tuple(own),
                None if sets is None else sets[first:end],
                None if doubtful is None else doubtful[first:end],
                None if bounds is None else bounds[:, first:end],
            )
        )
        first = end
    return found


def _span(span: DecodedSpan, sentence: Sentence, first: int) -> Span:
    start, end = span.start - first, span.end - first
    text = Sentence(sentence.words[start:end], (), sentence.spaces[start:end]).text
    return Span(start, end, span.type, text, span.confidence)
