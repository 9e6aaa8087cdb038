"""Scores against naive loops on random label sequences."""

import numpy as np
import pytest

from crossfill.metrics import accuracy, headline, score, span_f1, token_f1

LABELS = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")


def naive_spans(labels: list[str]) -> set[tuple[int, int, str]]:
    """Strict IOB2: B-X, then all I-X that follow without a gap; an I-X on its own is nothing."""
    found = set()
    i = 0
    while i < len(labels):
        if labels[i].startswith("B-"):
            end = i + 1
            while end < len(labels) and labels[end] == "I-" + labels[i][2:]:
                end += 1
            found.add((i, end, labels[i][2:]))
            i = end
        else:
            i += 1
    return found


def test_span_f1_equals_a_naive_loop():
    rng = np.random.default_rng(0)
    for _ in range(200):
        lengths = rng.integers(0, 6, size=rng.integers(1, 6))
        gold, predicted = rng.integers(len(LABELS), size=(2, lengths.sum()))
        hits = n_gold = n_predicted = 0
        start = 0
        for length in lengths:
            one, two = (naive_spans([LABELS[i] for i in side[start : start + length]]) for side in (gold, predicted))
            hits, n_gold, n_predicted = hits + len(one & two), n_gold + len(one), n_predicted + len(two)
            start += length
        expected = 2 * hits / (n_gold + n_predicted) if n_gold + n_predicted else 0.0
        assert span_f1(gold, predicted, LABELS, lengths) == pytest.approx(expected)


def test_token_f1_ignores_the_null_label():
    gold, predicted = np.array([0, 1, 1, 2]), np.array([0, 1, 0, 0])
    assert token_f1(gold, predicted, null=2) == pytest.approx(2 * 2 / (3 + 4))
    assert token_f1(gold, predicted, null=0) == pytest.approx(2 * 1 / (3 + 1))


def test_labels_choose_the_metric():
    assert headline(LABELS) == "span_f1"
    assert headline(("ADJ", "NOUN")) == "accuracy"
    assert headline(("Acc", "Nom", "_")) == "token_f1"
    gold, predicted = np.array([0, 1, 1]), np.array([0, 1, 0])
    assert score(gold, predicted, ("ADJ", "NOUN"), np.array([3])) == accuracy(gold, predicted) == pytest.approx(2 / 3)
