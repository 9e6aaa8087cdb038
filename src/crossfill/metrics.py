"""Scores of predicted labels against gold ones: accuracy, strict span F1, micro-F1 without a null label."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Int

Metric = Literal["accuracy", "span_f1", "token_f1"]


def headline(labels: Sequence[str]) -> Metric:
    """The metric of a task, by its labels: spans in IOB2, features with an absent value `_`, or plain tags."""
    if "O" in labels and all(label == "O" or label[:2] in ("B-", "I-") for label in labels):
        return "span_f1"
    return "token_f1" if "_" in labels else "accuracy"


def score(
    gold: Int[np.ndarray, "words"],
    predicted: Int[np.ndarray, "words"],
    labels: Sequence[str],
    lengths: Int[np.ndarray, "sentences"],
) -> float:
    """The task's headline score, from 0 to 1."""
    match headline(labels):
        case "accuracy":
            return accuracy(gold, predicted)
        case "span_f1":
            return span_f1(gold, predicted, labels, lengths)
        case "token_f1":
            return token_f1(gold, predicted, null=list(labels).index("_"))


def accuracy(gold: Int[np.ndarray, "words"], predicted: Int[np.ndarray, "words"]) -> float:
    """The share of words with the right label."""
    return float((gold == predicted).mean()) if len(gold) else 0.0


def token_f1(gold: Int[np.ndarray, "words"], predicted: Int[np.ndarray, "words"], null: int) -> float:
    """Micro-F1 over words, where the label `null` is neither found nor missed."""
    hits = int(((gold == predicted) & (gold != null)).sum())
    return _f1(hits, int((gold != null).sum()), int((predicted != null).sum()))


def span_f1(
    gold: Int[np.ndarray, "words"],
    predicted: Int[np.ndarray, "words"],
    labels: Sequence[str],
    lengths: Int[np.ndarray, "sentences"],
) -> float:
    """Micro-F1 over spans in strict IOB2: a span starts with B-, and start, end and type must all agree."""
    gold_spans, predicted_spans = spans(gold, labels, lengths), spans(predicted, labels, lengths)
    return _f1(len(np.intersect1d(gold_spans, predicted_spans)), len(gold_spans), len(predicted_spans))


def spans(
    ids: Int[np.ndarray, "words"], labels: Sequence[str], lengths: Int[np.ndarray, "sentences"]
) -> Int[np.ndarray, "spans"]:
    """The spans of a labelled corpus, each as one number made of its start, end and type."""
    if not len(ids):
        return np.empty(0, dtype=np.int64)
    types = {name: i for i, name in enumerate(sorted({label[2:] for label in labels if label != "O"}))}
    type_of = np.array([types.get(label[2:], -1) if label != "O" else -1 for label in labels])[ids]
    inside = np.array([label.startswith("I-") for label in labels])[ids]
    begins = np.array([label.startswith("B-") for label in labels])[ids]
    breaks = np.ones(len(ids) + 1, dtype=bool)  # before each word: does something new start here?
    breaks[1:-1] = ~inside[1:] | (type_of[1:] != type_of[:-1])
    breaks[np.cumsum(lengths)] = True
    edges = np.flatnonzero(breaks)
    starts, ends = edges[:-1], edges[1:]
    kept = begins[starts]
    return (starts[kept] * (len(ids) + 1) + ends[kept]) * max(1, len(types)) + type_of[starts[kept]]


def _f1(hits: int, n_gold: int, n_predicted: int) -> float:
    return 2 * hits / (n_gold + n_predicted) if n_gold + n_predicted else 0.0
