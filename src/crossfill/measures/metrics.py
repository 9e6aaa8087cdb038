"""Scores of predicted against gold labels. Headline metrics are F1 scores over hits, gold and predicted items.

The items are all words for accuracy, spans for span F1, and words with a label other than the null label for token F1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from crossfill.grid.task import Task, TaskKind

LabelIds = Int[np.ndarray, "words"]
"""The label of each word, sentence or pair, as its position among the task's labels; −1 for a word without a label."""
Lengths = Int[np.ndarray, "sentences"]
"""Labels of each sentence or pair: its words, or one."""
Probabilities = Float[np.ndarray, "words labels"]


@dataclass(frozen=True)
class Labelling:
    """Gold and predicted labels of a corpus, as indices into the task's labels.

    Words without a gold label are not scored: both sides have none there, so that spans end before such a word.
    """

    gold: LabelIds
    predicted: LabelIds
    task: Task
    lengths: Lengths
    """Labels per sentence or pair: its words, or one."""

    def scores(self) -> dict[str, float]:
        """Compute all metrics of the task by name, and its headline metric as `score`; each from 0 to 1."""
        labels, absent = self.task.labels, self.task.absent
        gold, predicted = self._labelled()
        if self.task.kind is TaskKind.SPANS:
            masked = self._masked()
            scores = {
                "span_f1": span_f1(self.gold, masked, labels, self.lengths),
                "lenient_f1": span_f1(self.gold, masked, labels, self.lengths, lenient=True),
                "token_f1": token_f1(gold, predicted, null=labels.index("O")),
                "published_f1": published_f1(gold, predicted, labels),
            }
        else:
            scores = {"accuracy": accuracy(gold, predicted), "macro_f1": macro_f1(gold, predicted)}
            if absent is not None:
                scores["token_f1"] = token_f1(gold, predicted, null=labels.index(absent))
        return {"score": scores[self.task.metric], **scores}

    def counts(self) -> Int[np.ndarray, "sentences 3"]:
        """Count hits, gold and predicted items of the headline metric in each sentence, the input of paired tests."""
        sentence = np.repeat(np.arange(len(self.lengths)), self.lengths)
        labels, absent = self.task.labels, self.task.absent
        if self.task.kind is TaskKind.SPANS:
            size = (len(self.gold) + 1) * len(span_types(labels))
            places = [sentence[items // size] for items in self._spans()]
        else:
            null, predicted = -1 if absent is None else labels.index(absent), self._masked()
            counted, guessed = (~np.isin(ids, (-1, null)) for ids in (self.gold, predicted))
            places = [sentence[chosen] for chosen in ((self.gold == predicted) & counted, counted, guessed)]
        return np.stack([np.bincount(place, minlength=len(self.lengths)) for place in places], axis=1)

    def by_label(self) -> dict[str, float]:
        """Compute F1 of each span type, or of each tag, that occurs in gold or prediction."""
        labels = self.task.labels
        if self.task.kind is not TaskKind.SPANS:
            hits, n_gold, n_predicted = _tag_counts(*self._labelled(), len(labels))
            names = labels
        else:
            names = span_types(labels)
            hits, n_gold, n_predicted = (
                np.bincount(items % len(names), minlength=len(names)) for items in self._spans()
            )
        rows = zip(names, hits.tolist(), n_gold.tolist(), n_predicted.tolist(), strict=True)
        return {name: f1(right, real, guessed) for name, right, real, guessed in rows if real + guessed}

    def _spans(self) -> list[Int[np.ndarray, "spans"]]:
        gold, predicted = (spans(ids, self.task.labels, self.lengths) for ids in (self.gold, self._masked()))
        return [np.intersect1d(gold, predicted), gold, predicted]

    def _masked(self) -> LabelIds:
        """What is predicted of words that have a gold label; −1 for others."""
        return np.where(self.gold < 0, -1, self.predicted)

    def _labelled(self) -> tuple[LabelIds, LabelIds]:
        """The gold and the predicted labels of words that have a gold label."""
        return self.gold[self.gold >= 0], self.predicted[self.gold >= 0]


def score(gold: LabelIds, predicted: LabelIds, task: Task, lengths: Lengths) -> float:
    """Compute the task's headline score, from 0 to 1."""
    return Labelling(gold, predicted, task, lengths).scores()["score"]


def accuracy(gold: LabelIds, predicted: LabelIds) -> float:
    """Compute the share of words with the right label."""
    return float((gold == predicted).mean()) if len(gold) else 0.0


def macro_f1(gold: LabelIds, predicted: LabelIds) -> float:
    """Compute the mean of the tags' F1, over the tags that occur in gold or prediction."""
    n_labels = int(max(gold.max(initial=0), predicted.max(initial=0))) + 1
    hits, n_gold, n_predicted = _tag_counts(gold, predicted, n_labels)
    total = n_gold + n_predicted
    return float((2 * hits[total > 0] / total[total > 0]).mean()) if total.any() else 0.0


def token_f1(gold: LabelIds, predicted: LabelIds, null: int) -> float:
    """Compute micro-F1 over words, ignoring the label `null` in both gold and prediction."""
    hits = int(((gold == predicted) & (gold != null)).sum())
    return f1(hits, int((gold != null).sum()), int((predicted != null).sum()))


def published_f1(gold: LabelIds, predicted: LabelIds, labels: Sequence[str]) -> float:
    """Compute F1 as in the authors' script: micro-F1 over all labels, `O` included, but the first in sorted order."""
    return token_f1(gold, predicted, null=list(labels).index(min(labels)))


def span_f1(
    gold: LabelIds, predicted: LabelIds, labels: Sequence[str], lengths: Lengths, lenient: bool = False
) -> float:
    """Compute micro-F1 over spans: start, end and type agree. With `lenient`, an I- may start a span: see `spans`."""
    gold_spans, predicted_spans = (spans(ids, labels, lengths, lenient) for ids in (gold, predicted))
    return f1(len(np.intersect1d(gold_spans, predicted_spans)), len(gold_spans), len(predicted_spans))


def spans(ids: LabelIds, labels: Sequence[str], lengths: Lengths, lenient: bool = False) -> Int[np.ndarray, "spans"]:
    """Find the spans of a labelled corpus, each encoded as one integer from its start, end and type.

    In strict IOB2 a span starts with B-, and an I- that does not continue a span is ignored; with `lenient` it starts
    a span, as in CoNLL's scorer.
    """
    types = span_types(labels)
    if not len(ids) or not types:
        return np.empty(0, dtype=np.int64)
    rows = {name: i for i, name in enumerate(types)}
    names = (*labels, "O")  # the last is also that of −1: a word without a label is in no span
    type_of = np.array([rows[label[2:]] if label != "O" else -1 for label in names])[ids]
    inside, begins = (np.array([label.startswith(prefix) for label in names])[ids] for prefix in ("I-", "B-"))
    opens = type_of >= 0 if lenient else begins
    breaks = np.ones(len(ids) + 1, dtype=bool)  # before each word: whether a new segment starts here
    breaks[1:-1] = ~inside[1:] | (type_of[1:] != type_of[:-1])
    breaks[np.cumsum(lengths)] = True
    edges = np.flatnonzero(breaks)
    starts, ends = edges[:-1], edges[1:]
    opened = opens[starts]
    return (starts[opened] * (len(ids) + 1) + ends[opened]) * len(types) + type_of[starts[opened]]


def f1(hits: int, n_gold: int, n_predicted: int) -> float:
    """Compute 2 · hits / (gold + predicted); 0 if there are no items."""
    return 2 * hits / (n_gold + n_predicted) if n_gold + n_predicted else 0.0


def span_types(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the span types of these IOB2 labels, sorted."""
    return tuple(sorted({label[2:] for label in labels if label != "O"}))


def pairable_values(counts: Int[np.ndarray, "units labels"]) -> Float[np.ndarray, "units sums"]:
    """Return what each unit adds to the sums of α: its disagreement, and its values by label; zeros for a lone value.

    `counts` says how many people gave a unit (a word) each label: n_uc, of m_u = Σ_c n_uc values. The disagreement is
    (m_u² − Σ_c n_uc²) / (m_u − 1): the ordered pairs of values that differ, of which a value is in m_u − 1.
    """
    m = counts.sum(1)
    differing = (m**2 - (counts**2).sum(1)) / np.maximum(1, m - 1)
    return np.where((m > 1)[:, None], np.concatenate([differing[:, None], counts], axis=1), 0.0)


def krippendorff_alpha(sums: Float[np.ndarray, "*draws sums"]) -> Float[np.ndarray, "*draws"]:
    """Compute Krippendorff's α of nominal values from `pairable_values`, summed over units.

        α = 1 − D_observed / D_expected = 1 − (n − 1) Σ_u (m_u² − Σ_c n_uc²) / (m_u − 1) / (n² − Σ_c n_c²)

    NaN where all values are alike.
    """
    differing, values = sums[..., 0], sums[..., 1:]
    n = values.sum(-1)
    expected = n**2 - (values**2).sum(-1)
    return np.where(expected > 0, 1 - (n - 1) * differing / np.where(expected > 0, expected, 1.0), np.nan)


def _tag_counts(gold: LabelIds, predicted: LabelIds, n_labels: int) -> list[Int[np.ndarray, "labels"]]:
    """Count hits, gold and predicted words of each tag."""
    return [np.bincount(words, minlength=n_labels) for words in (gold[gold == predicted], gold, predicted)]
