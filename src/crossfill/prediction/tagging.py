"""What comes out of tagging: a sentence with its labels in one cell, and how sure the model is of each."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.measures.metrics import TaskKind

DIGITS = 6
"""Digits of numbers that are written as JSON."""


@dataclass(frozen=True)
class TaggingOptions:
    """Options for using uncertainty in the output."""

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


@dataclass(frozen=True, slots=True)
class TaggedWord:
    """A word and what the model believes of it."""

    text: str
    label: str
    confidence: float
    entropy: float
    mutual_information: float
    label_set: tuple[str, ...]
    """Labels of the conformal set, most probable first; empty where no level was asked for."""
    doubtful: bool


@dataclass(frozen=True, slots=True)
class Span:
    """A name or phrase: words `start` to `end` of the sentence, the latter not included."""

    start: int
    end: int
    type: str
    text: str
    confidence: float
    """The probability of a span with exactly this start, end and type."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self) | {"confidence": round(self.confidence, DIGITS)}


@dataclass(frozen=True)
class Tagging:
    """A tagged sentence."""

    cell: Cell
    sentence: Sentence
    labels: tuple[str, ...]
    """The label of each word: the most probable one, or in tasks with spans that of the best valid sequence."""
    probabilities: Float[np.ndarray, "words labels"]
    label_names: tuple[str, ...]
    """What the columns of `probabilities` stand for."""
    confidence: Float[np.ndarray, "words"]
    """The probability of each word's label."""
    entropy: Float[np.ndarray, "words"]
    mutual_information: Float[np.ndarray, "words"]
    """The part of the entropy that more knowledge of the parameters would remove; zero in plug-in prediction."""
    spans: tuple[Span, ...] = ()
    sets: Bool[np.ndarray, "words labels"] | None = None
    """The conformal label set of each word, where a level was asked for."""
    doubtful: Bool[np.ndarray, "words"] | None = None
    """Which words should go to a person, where that was asked for."""
    bounds: Float[np.ndarray, "2 words labels"] | None = None
    """Lower and upper bound of each probability over the posterior samples, where an interval was asked for."""

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def kind(self) -> TaskKind:
        """Whether its labels are tags, values or spans."""
        return TaskKind.of(self.label_names)

    @cached_property
    def label_sets(self) -> tuple[tuple[str, ...], ...]:
        """The labels in each word's set, most probable first; empty sets where no level was asked for."""
        if self.sets is None:
            return ((),) * len(self)
        order = np.argsort(-self.probabilities, axis=-1, kind="stable")
        return tuple(
            tuple(self.label_names[i] for i in row if chosen[i]) for row, chosen in zip(order, self.sets, strict=True)
        )

    @cached_property
    def words(self) -> tuple[TaggedWord, ...]:
        """Word by word."""
        doubtful: Sequence[bool] = [False] * len(self) if self.doubtful is None else self.doubtful.tolist()
        return tuple(
            TaggedWord(*row)
            for row in zip(
                self.sentence.words,
                self.labels,
                self.confidence.tolist(),
                self.entropy.tolist(),
                self.mutual_information.tolist(),
                self.label_sets,
                doubtful,
                strict=True,
            )
        )

    def distribution(self, word: int) -> dict[str, float]:
        """The probability of every label of a word, largest first."""
        order = np.argsort(-self.probabilities[word], kind="stable").tolist()
        return {self.label_names[i]: float(self.probabilities[word, i]) for i in order}
