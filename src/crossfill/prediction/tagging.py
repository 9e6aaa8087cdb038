"""The output of tagging: a sentence with its labels in one cell, and the uncertainty of each.

Notebooks show it as HTML with inline styles, in the colours of the web page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from crossfill.config import Decision
from crossfill.errors import ConfigError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task, TaskKind, Unit
from crossfill.measures.metrics import Probabilities
from crossfill.prediction.rules import Preference

Row = Mapping[str, Any]
"""Values by the names of their columns; all rows of a table have the same names in the same order."""
DIGITS = 6
"""Decimal places of numbers that are written as JSON."""
_SINGULAR = {"labels": "label", "distributions": "distribution", "label_sets": "label_set"}
HUES = {
    **{"NOUN": 250, "PROPN": 225, "PRON": 275, "NUM": 200, "VERB": 25, "AUX": 45, "ADJ": 145, "ADV": 120, "DET": 300},
    **{"ADP": 330, "CCONJ": 80, "SCONJ": 95, "PART": 355, "INTJ": 60, "X": 10, "SYM": 180, "PUNCT": 165},
    **{"PER": 25, "LOC": 250, "ORG": 145, "MISC": 300},
}
"""Hues of word classes and of spans, as in `web/static/colours.js`."""
LITTLE_DOUBT, MUCH_DOUBT = 0.9, 0.6
"""Confidence below which words are underlined with dots, and with a wave."""
_DOUBT, _INK = "#c0392f", "#1c2126"
_BOX = "display:inline-flex;flex-direction:column;align-items:center;vertical-align:top;gap:.1em;margin:0 1px .4em;"
_LABEL = "font-size:.7em;font-weight:600;line-height:1.1;direction:ltr"


@dataclass(frozen=True)
class TaggingOptions:
    """Options for using uncertainty in the output."""

    alpha: float | None = None
    """Give label sets that contain the right label in all but this share of words (see docs/trust.md)."""
    abstain: float | None = None
    """Mark words whose confidence would be in the lowest share of this size among the calibration words."""
    min_confidence: float = 0.0
    """Replace labels below this confidence by `_`, and spans below it by `O`."""
    temperature: bool = False
    """Scale probabilities by the temperature found on calibration words; sets and marks do not depend on it."""
    decision: Decision = "metric"
    """How labels are chosen: for the task's `metric`, as the best `valid` sequence, or by `argmax` for each word."""
    prefer: Preference = "f1"
    """What a decision for the metric looks for where it scores what is found: precision, recall, or both alike."""
    interval: float | None = None
    """Give bounds that contain this central share of the posterior samples' probabilities, before any temperature."""


@dataclass(frozen=True, slots=True)
class TaggedWord:
    """A word with its label and the uncertainty of that label; or a whole sentence or pair, where a task labels it."""

    text: str
    label: str
    confidence: float
    entropy: float
    mutual_information: float
    label_set: tuple[str, ...]
    """Labels of the conformal set, most probable first; empty if no `alpha` was given."""
    doubtful: bool
    start_char: int
    """Where it starts in the text that it was cut from (`Sentence.original`), in characters."""
    end_char: int


@dataclass(frozen=True, slots=True)
class Span:
    """A name or phrase: words `start` to `end` (exclusive) of the sentence; characters count in `Sentence.original`."""

    start: int
    end: int
    type: str
    text: str
    confidence: float
    """The probability of a span with exactly this start, end and type."""
    start_char: int
    end_char: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"confidence": round(self.confidence, DIGITS)}


@dataclass(frozen=True, repr=False)
class Tagging:
    """A tagged sentence: labels and how sure they are, which notebooks show in colours.

    Where the task labels sentences or pairs, there is one label, and everything that is said of words is said of it.
    """

    cell: Cell
    sentence: Sentence
    labels: tuple[str, ...]
    """The label of each word: the most probable one, or in tasks with spans that of the best valid sequence."""
    probabilities: Probabilities
    task: Task
    """Its labels are those of the columns of `probabilities`."""
    confidence: Float[np.ndarray, "words"]
    """The probability of each word's label, under the rule that decided."""
    entropy: Float[np.ndarray, "words"]
    mutual_information: Float[np.ndarray, "words"]
    """The part of the entropy that more knowledge of the parameters would remove; zero in plug-in prediction."""
    spans: tuple[Span, ...] = ()
    sets: Bool[np.ndarray, "words labels"] | None = None
    """The conformal label set of each word, if an `alpha` was given."""
    doubtful: Bool[np.ndarray, "words"] | None = None
    """Whether a person should check each word, if `abstain` or `min_confidence` was given."""
    bounds: Float[np.ndarray, "2 words labels"] | None = None
    """Lower and upper bound of each probability over the posterior samples, if an `interval` was given."""
    languages: Mapping[str, float] | None = None
    """The probabilities of the sentence's languages, the likeliest first, if the model was asked to choose them."""

    def __repr__(self) -> str:
        if self.task.unit is not Unit.WORD:
            return f"<Tagging {self.cell}: {self.labels[0]}: {self.sentence.text}>"
        tagged = " ".join(f"{word}/{label}" for word, label in zip(self.sentence.words, self.labels, strict=True))
        return f"<Tagging {self.cell}: {tagged}>"

    def _repr_html_(self) -> str:
        return tagging_html(self)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def cell_asked(self) -> str:
        """The cell as it was asked for: without the language if the model chose it."""
        return str(self.cell) if self.languages is None else self.cell.task

    @cached_property
    def label_sets(self) -> tuple[tuple[str, ...], ...]:
        """The labels in each word's set, most probable first; empty if no `alpha` was given."""
        if self.sets is None:
            return ((),) * len(self)
        order = np.argsort(-self.probabilities, axis=-1, kind="stable")
        return tuple(
            tuple(self.task.labels[i] for i in row if chosen[i]) for row, chosen in zip(order, self.sets, strict=True)
        )

    @cached_property
    def words(self) -> tuple[TaggedWord, ...]:
        doubtful: Sequence[bool] = [False] * len(self) if self.doubtful is None else self.doubtful.tolist()
        texts, places = self.sentence.words, self.sentence.offsets
        if self.task.unit is not Unit.WORD:
            texts, places = (self.sentence.text,), ((0, len(self.sentence.text)),)
        numbers = (self.confidence.tolist(), self.entropy.tolist(), self.mutual_information.tolist())
        rows = zip(texts, self.labels, *numbers, self.label_sets, doubtful, places, strict=True)
        return tuple(TaggedWord(*row, *place) for *row, place in rows)

    def distribution(self, word: int) -> dict[str, float]:
        """Return the probability of every label of a word, largest first."""
        order = np.argsort(-self.probabilities[word], kind="stable").tolist()
        return {self.task.labels[i]: float(self.probabilities[word, i]) for i in order}

    def tags(self, distributions: bool = False) -> dict[str, Any]:
        """Return labels, their uncertainty and spans as JSON values; `distributions` adds all labels' probabilities.

        Where the task labels sentences or pairs, these are values of one label, always with its distribution.
        """
        values: dict[str, Any] = {"labels": list(self.labels)}
        if self.languages is not None:
            values["languages"] = {language: round(p, DIGITS) for language, p in self.languages.items()}
        for name in ("confidence", "entropy", "mutual_information"):
            values[name] = [round(value, DIGITS) for value in getattr(self, name).tolist()]
        if self.task.kind is TaskKind.SPANS:
            values["spans"] = [span.as_dict() for span in self.spans]
        if self.sets is not None:
            values["label_sets"] = [list(labels) for labels in self.label_sets]
        if self.doubtful is not None:
            values["doubtful"] = self.doubtful.tolist()
        if distributions or self.task.unit is not Unit.WORD:
            values["distributions"] = [
                {label: round(p, DIGITS) for label, p in self.distribution(i).items()} for i in range(len(self))
            ]
        if self.task.unit is Unit.WORD:
            return values
        return {_SINGULAR.get(name, name): of_labels[0] for name, of_labels in values.items()}

    def to_dict(self, distributions: bool = False) -> dict[str, Any]:
        """Return the tagging as JSON values: cell, text, words with their offsets in it, and what `tags` gives."""
        sentence = self.sentence
        return {
            "cell": str(self.cell),
            "text": sentence.original,
            "words": list(sentence.words),
            "offsets": [list(place) for place in sentence.offsets],
            **self.tags(distributions),
        }

    def to_pandas(self) -> Any:
        """Return a row for each word, as a data frame of pandas, which is not installed with crossfill."""
        return data_frame([asdict(word) | {"label_set": list(word.label_set)} for word in self.words])


def data_frame(rows: Sequence[Row]) -> Any:
    """Make a data frame of pandas, which is not installed with crossfill."""
    try:
        pandas = import_module("pandas")
    except ModuleNotFoundError:
        raise ConfigError("expected pandas for data frames, found none; pip install pandas") from None
    return pandas.DataFrame([dict(row) for row in rows])


def tagging_html(tagging: Tagging) -> str:
    """Show a tagged sentence: each word over its label, coloured by its label and underlined where the model doubts."""
    spaces = (tagging.sentence.spaces if tagging.task.unit is Unit.WORD else ()) or (True,) * len(tagging)
    words = "".join(
        _word(tagging, i) + (" " if space else "") for i, space in zip(range(len(tagging)), spaces, strict=True)
    )
    n, summary = len(tagging), "no words"
    if n:
        doubt = f"mean confidence {tagging.confidence.mean():.0%}, entropy {tagging.entropy.mean():.3f} nats"
        summary = f"{n} {tagging.task.unit}{'s' if n > 1 else ''}, {doubt}"
    return (
        f'<div style="max-width:60em"><div style="font-size:.85em;opacity:.75"><b>{escape(str(tagging.cell))}</b>, '
        f'{summary}</div><div dir="auto" style="line-height:1;margin-top:.5em">{words}</div></div>'
    )


def hue(label: str, labels: Sequence[str]) -> float | None:
    """Return the hue of a label from 0 to 360, none for those that mean nothing; a span has that of its type."""
    if label in ("O", "_"):
        return None
    if (kind := _kind(label)) in HUES:
        return HUES[kind]
    kinds = list(dict.fromkeys(map(_kind, labels)))
    return (20 + 137.508 * (kinds.index(kind) if kind in kinds else -1)) % 360


def _word(tagging: Tagging, i: int) -> str:
    word, colour = tagging.words[i], hue(tagging.labels[i], tagging.task.labels)
    in_spans = tagging.task.kind is TaskKind.SPANS
    shown = word.label if not in_spans else word.label[2:] if word.label.startswith("B-") else "\u00a0"
    if colour is None:
        box, label = "padding:.3em .35em .25em;", f"{_LABEL};opacity:.6"
    else:
        share = round(100 * (0.12 + 0.7 * word.confidence**2))
        background = f"color-mix(in oklab,oklch(.86 .09 {colour:g}) {share}%,white)"
        goes_on = in_spans and word.label.startswith("I-")
        box = f"padding:.3em .45em .25em;border-radius:{0 if goes_on else '7px'};color:{_INK};background:{background};"
        label = f"{_LABEL};color:oklch(.36 .1 {colour:g})"
    line = f"wavy {_DOUBT} 1.5px" if word.confidence < MUCH_DOUBT else f"dotted {_DOUBT} 2px"
    doubt = f";text-decoration:underline {line};text-underline-offset:.22em" if word.confidence < LITTLE_DOUBT else ""
    form = f'<span style="line-height:1.45{doubt}">{escape(word.text)}</span>'
    under = f'<span style="{label}">{escape(shown)}</span>'
    return f'<span title="{escape(_title(word))}" style="{_BOX}{box}">{form}{under}</span>'


def _title(word: TaggedWord) -> str:
    label_set = f"one of {', '.join(word.label_set)}" if word.label_set else ""
    parts = [f"{word.text}: {word.label}, {word.confidence:.0%}; entropy {word.entropy:.3f} nats", label_set]
    return "; ".join(filter(None, [*parts, "doubtful" if word.doubtful else ""]))


def _kind(label: str) -> str:
    return label[2:] if label.startswith(("B-", "I-")) else label
