"""A task: what it labels, with which labels, and what follows for decoding and scoring."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Literal

Metric = Literal["accuracy", "span_f1", "token_f1"]


class Unit(StrEnum):
    """What a task gives a label to."""

    WORD = "word"
    """Every word of a sentence."""
    SENTENCE = "sentence"
    """A sentence as a whole: its topic, intent or sentiment."""
    PAIR = "pair"
    """Two sentences together: whether the first entails the second."""

    @property
    def n_sentences(self) -> int:
        return 2 if self is Unit.PAIR else 1

    def width(self, n_features: int) -> int:
        """Count the numbers in a unit's vector, over an encoder with `n_features` for a word (`encoders.base.pool`)."""
        return 4 * n_features if self is Unit.PAIR else n_features


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
        if unit is not Unit.WORD:
            return cls.CLASSES
        if "O" in labels and all(label == "O" or label[:2] in ("B-", "I-") for label in labels):
            return cls.SPANS
        return cls.VALUES if "_" in labels else cls.TAGS

    @property
    def metric(self) -> Metric:
        metrics: dict[TaskKind, Metric] = {TaskKind.VALUES: "token_f1", TaskKind.SPANS: "span_f1"}
        return metrics.get(self, "accuracy")


@dataclass(frozen=True)
class Task:
    """A task of a grid."""

    name: str
    labels: tuple[str, ...]
    """All labels, in the order of a head's rows."""
    unit: Unit = Unit.WORD

    @cached_property
    def kind(self) -> TaskKind:
        return TaskKind.of(self.labels, self.unit)

    @property
    def metric(self) -> Metric:
        return self.kind.metric

    @property
    def absent(self) -> str | None:
        """The label that means none: `O` in tasks with spans, `_` in tasks with values; F1 is over the others."""
        return {TaskKind.SPANS: "O", TaskKind.VALUES: "_"}.get(self.kind)
