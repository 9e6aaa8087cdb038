"""Scores of predicted against gold labels. Headline metrics are F1 scores over hits, gold and predicted items.

The items are all words for accuracy, spans for span F1, and words with a label other than the null label for token F1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int

from crossfill.grid.task import Unit

Metric = Literal["accuracy", "span_f1", "token_f1"]


class TaskKind(StrEnum):
    """The kind of labels that a task has, which decides how they are decoded and scored."""

    TAGS = "tags"
    """One label for every word; scored by accuracy."""
    VALUES = "values"
    """Labels that include `_` for no value; scored by micro-F1 over the other labels."""
    SPANS = "spans"
    """Spans of words in IOB2; decoded as valid sequences, scored by strict span F1."""
    CLASSES = "classes"
    """One label for a whole sentence or pair; scored by accuracy."""

    @classmethod
    def of(cls, labels: Sequence[str], unit: Unit = Unit.WORD) -> "TaskKind":
        """The kind of a task with this unit and these labels."""
        if unit is not Unit.WORD:
            return cls.CLASSES
        if "O" in labels and all(label == "O" or label[:2] in ("B-", "I-") for label in labels):
            return cls.SPANS
        return cls.VALUES if "_" in labels else cls.TAGS

    @property
    def metric(self) -> Metric:
        """The headline metric."""
        metrics: dict[TaskKind, Metric] = {
            TaskKind.TAGS: "accuracy",
            TaskKind.VALUES: "token_f1",
            TaskKind.SPANS: "span_f1",
            TaskKind.CLASSES: "accuracy",
        }
        return metrics[self]

    @property
    def has_absent(self) -> bool:
        """Whether one of its labels means none, so that F1 is over the others."""
        return self in (TaskKind.VALUES, TaskKind.SPANS)

    @property
    def absent(self) -> str:
        """The label that means none: `O` in tasks with spans, else `_`."""
        return "O" if self is TaskKind.SPANS else "_"


@dataclass(frozen=True)
class Labelling:
    """Gold and predicted labels of a corpus, as indices into the task's labels."""

    gold: Int[np.ndarray, "words"]
    predicted: Int[np.ndarray, "words"]
    labels: Sequence[str]
    lengths: Int[np.ndarray, "sentences"]
    """Labels per sentence or pair: its words, or one."""
    unit: Unit = Unit.WORD

    @property
    def kind(self) -> TaskKind:
        return TaskKind.of(self.labels, self.unit)

    def scores(self) -> dict[str, float]:
        """All metrics of the task by name, and its headline metric as `score`; each from 0 to 1."""
        if self.kind is TaskKind.SPANS:
            scores = {
                "span_f1": span_f1(self.gold, self.predicted, self.labels, self.lengths),
                "lenient_f1": span_f1(self.gold, self.predicted, self.labels, self.lengths, lenient=True),
                "token_f1": token_f1(self.gold, self.predicted, null=list(self.labels).index("O")),
                "published_f1": published_f1(self.gold, self.predicted, self.labels),
            }
        else:
            scores = {
                "accuracy": accuracy(self.gold, self.predicted),
                "macro_f1": macro_f1(self.gold, self.predicted),
            }
            if self.kind is TaskKind.VALUES:
                scores["token_f1"] = token_f1(self.gold, self.predicted, null=list(self.labels).index("_"))
        return {"score": scores[self.kind.metric], **scores}

    def counts(self) -> Int[np.ndarray, "sentences 3"]:
        """Hits, gold and predicted items of the headline metric in each sentence, the input of paired tests."""
        sentence = np.repeat(np.arange(len(self.lengths)), self.lengths)
        if self.kind is TaskKind.SPANS:
            gold, predicted = (spans(ids, self.labels, self.lengths) for ids in (self.gold, self.predicted))
            hits = np.intersect1d(gold, predicted)
            size = (len(self.gold) + 1) * len(span_types(self.labels))
            places = [sentence[items // size] for items in (hits, gold, predicted)]
        else:
            null = list(self.labels).index("_") if self.kind is TaskKind.VALUES else -1
            right = (self.gold == self.predicted) & (self.gold != null)
            places = [sentence[chosen] for chosen in (right, self.gold != null, self.predicted != null)]
        return np.stack([np.bincount(place, minlength=len(self.lengths)) for place in places], axis=1)

    def by_label(self) -> dict[str, float]:
        """F1 of each span type, or of each tag, that occurs in gold or prediction."""
        if self.kind is not TaskKind.SPANS:
            hits, n_gold, n_predicted = _tag_counts(self.gold, self.predicted, len(self.labels))
            names = tuple(self.labels)
        else:
            names = span_types(self.labels)
            gold, predicted = (spans(ids, self.labels, self.lengths) for ids in (self.gold, self.predicted))
            groups = (np.intersect1d(gold, predicted), gold, predicted)
            hits, n_gold, n_predicted = (np.bincount(items % len(names), minlength=len(names)) for items in groups)
        rows = zip(names, hits.tolist(), n_gold.tolist(), n_predicted.tolist(), strict=True)
        return {name: f1(right, real, guessed) for name, right, real, guessed in rows if real + guessed}


def score(
    gold: Int[np.ndarray, "words"],
    predicted: Int[np.ndarray, "words"],
    labels: Sequence[str],
    lengths: Int[np.ndarray, "sentences"],
    unit: Unit = Unit.WORD,
) -> float:
    """The task's headline score, from 0 to 1."""
    match TaskKind.of(labels, unit):
        case TaskKind.TAGS | TaskKind.CLASSES:
            return accuracy(gold, predicted)
        case TaskKind.VALUES:
            return token_f1(gold, predicted, null=list(labels).index("_"))
        case TaskKind.SPANS:
            return span_f1(gold, predicted, labels, lengths)


def accuracy(gold: Int[np.ndarray, "words"], predicted: Int[np.ndarray, "words"]) -> float:
    """The share of words with the right label."""
    return float((gold == predicted).mean()) if len(gold) else 0.0


def macro_f1(gold: Int[np.ndarray, "words"], predicted: Int[np.ndarray, "words"]) -> float:
    """The mean of the tags' F1, over the tags that occur in gold or prediction."""
    hits, n_gold, n_predicted = _tag_counts(
        gold, predicted, int(max(gold.max(), predicted.max())) + 1 if len(gold) else 0
    )
    total = n_gold + n_predicted
    return float((2 * hits[total > 0] / total[total > 0]).mean()) if total.any() else 0.0


def token_f1(gold: Int[np.ndarray, "words"], predicted: Int[np.ndarray, "words"], null: int) -> float:
    """Micro-F1 over words, ignoring the label `null` in both gold and prediction."""
    hits = int(((gold == predicted) & (gold != null)).sum())
    return f1(hits, int((gold != null).sum()), int((predicted != null).sum()))


def published_f1(gold: Int[np.ndarray, "words"], predicted: Int[np.ndarray, "words"], labels: Sequence[str]) -> float:
    """F1 as in the authors' script: micro-F1 over all labels, `O` included, but the first in sorted order."""
    return token_f1(gold, predicted, null=list(labels).index(min(labels)))


def span_f1(
    gold: Int[np.ndarray, "words"],
    predicted: Int[np.ndarray, "words"],
    labels: Sequence[str],
    lengths: Int[np.ndarray, "sentences"],
    lenient: bool = False,
) -> float:
    """Micro-F1 over spans: start, end and type must all agree. With `lenient`, an I- may start a span: see `spans`."""
    gold_spans, predicted_spans = (spans(ids, labels, lengths, lenient) for ids in (gold, predicted))
    return f1(len(np.intersect1d(gold_spans, predicted_spans)), len(gold_spans), len(predicted_spans))


def spans(
    ids: Int[np.ndarray, "words"],
    labels: Sequence[str],
    lengths: Int[np.ndarray, "sentences"],
    lenient: bool = False,
) -> Int[np.ndarray, "spans"]:
    """The spans of a labelled corpus, each encoded as one integer from its start, end and type.

    In strict IOB2 a span starts with B-, and an I- that does not continue a span is ignored; with `lenient` it starts
    a span, as in CoNLL's scorer.
    """
    types = span_types(labels)
    if not len(ids) or not types:
        return np.empty(0, dtype=np.int64)
    rows = {name: i for i, name in enumerate(types)}
    type_of = np.array([rows[label[2:]] if label != "O" else -1 for label in labels])[ids]
    inside = _starting("I-", labels)[ids]
    opens = type_of >= 0 if lenient else _starting("B-", labels)[ids]
    breaks = np.ones(len(ids) + 1, dtype=bool)  # before each word: whether a new segment starts here
    breaks[1:-1] = ~inside[1:] | (type_of[1:] != type_of[:-1])
    breaks[np.cumsum(lengths)] = True
    edges = np.flatnonzero(breaks)
    starts, ends = edges[:-1], edges[1:]
    opened = opens[starts]
    return (starts[opened] * (len(ids) + 1) + ends[opened]) * len(types) + type_of[starts[opened]]


def f1(hits: int, n_gold: int, n_predicted: int) -> float:
    """2 · hits / (gold + predicted); 0 if there are no items."""
    return 2 * hits / (n_gold + n_predicted) if n_gold + n_predicted else 0.0


def span_types(labels: Sequence[str]) -> tuple[str, ...]:
    """The span types of these IOB2 labels, sorted."""
    return tuple(sorted({label[2:] for label in labels if label != "O"}))


def _starting(prefix: str, labels: Sequence[str]) -> Bool[np.ndarray, "labels"]:
    return np.array([label.startswith(prefix) for label in labels])


def _tag_counts(
    gold: Int[np.ndarray, "words"], predicted: Int[np.ndarray, "words"], n_labels: int
) -> tuple[Int[np.ndarray, "labels"], Int[np.ndarray, "labels"], Int[np.ndarray, "labels"]]:
    """Hits, gold and predicted words of each tag."""
    parts = (gold[gold == predicted], gold, predicted)
    hits, n_gold, n_predicted = (np.bincount(part, minlength=n_labels) for part in parts)
    return hits, n_gold, n_predicted
