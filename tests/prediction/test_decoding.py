"""Constrained decoding against all sequences, one by one."""

from itertools import pairwise, product

import numpy as np
import pytest

from crossfill.prediction.rules import TINY, decode_spans, follows, move_weights, viterbi

LABELS = ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")
RNG = np.random.default_rng(0)


def valid(sequence: tuple[str, ...]) -> bool:
    return all(
        not label.startswith("I-") or (i > 0 and sequence[i - 1][2:] == label[2:]) for i, label in enumerate(sequence)
    )


def spans(sequence: tuple[str, ...]) -> set[tuple[int, int, str]]:
    found, start = set(), None
    for i, label in enumerate((*sequence, "O")):
        if start is not None and not label.startswith("I-"):
            found.add((start, i, sequence[start][2:]))
            start = None
        if label.startswith("B-"):
            start = i
    return found


def everything(p: np.ndarray) -> dict[tuple[str, ...], float]:
    weights = {
        s: float(np.prod([p[i, LABELS.index(label)] for i, label in enumerate(s)]))
        for s in product(LABELS, repeat=len(p))
        if valid(s)
    }
    total = sum(weights.values())
    return {s: w / total for s, w in weights.items()}


def test_the_rules():
    allowed = follows(LABELS)
    for one, other in product(LABELS, repeat=2):
        first = f"B-{one[2:]}" if one.startswith("I-") else one
        assert allowed[LABELS.index(one), LABELS.index(other)] == valid((first, one, other)[one == first :])
    assert [label for label, good in zip(LABELS, move_weights(LABELS)[-1], strict=True) if good] == [
        "B-LOC",
        "B-PER",
        "O",
    ]


@pytest.mark.parametrize("sharpness", [0.3, 3.0])
def test_against_all_sequences(sharpness: float):
    lengths = np.array([3, 0, 5, 1, 4])
    p = RNG.dirichlet(np.full(len(LABELS), 1 / sharpness), size=lengths.sum())
    decoded = viterbi(np.log(np.maximum(p, TINY)), lengths, LABELS)
    found = decode_spans(p, decoded, lengths, LABELS)
    first, expected = 0, []
    for length in lengths.tolist():
        if not length:
            continue
        sequences = everything(p[first : first + length])
        best = max(sequences, key=sequences.__getitem__)
        assert tuple(LABELS[i] for i in decoded[first : first + length]) == best
        for start, end, kind in sorted(spans(best)):
            mass = sum(weight for s, weight in sequences.items() if (start, end, kind) in spans(s))
            expected.append((first + start, first + end, kind, mass))
        first += length
    assert [span[:3] for span in found] == [span[:3] for span in expected]
    np.testing.assert_allclose([span[3] for span in found], [span[3] for span in expected], rtol=1e-9)


def test_transitions_against_all_sequences():
    lengths, table = np.array([4, 1, 3]), RNG.normal(0, 2, (len(LABELS) + 1, len(LABELS)))
    p = RNG.dirichlet(np.ones(len(LABELS)), size=lengths.sum())
    decoded, first = viterbi(np.log(p), lengths, LABELS, table), 0
    for length in lengths.tolist():
        weights = {}
        for sequence, weight in everything(p[first : first + length]).items():
            numbers = [LABELS.index(label) for label in sequence]
            weights[sequence] = np.log(max(weight, TINY)) + sum(table[i, j] for i, j in pairwise([-1, *numbers]))
        assert tuple(LABELS[i] for i in decoded[first : first + length]) == max(weights, key=weights.__getitem__)
        first += length


def test_impossible_and_long_input():
    p = np.zeros((4, len(LABELS)))
    p[:, LABELS.index("I-PER")] = 1.0  # no word may begin here, and yet a sequence has to come out
    assert valid(tuple(LABELS[i] for i in viterbi(np.log(np.maximum(p, TINY)), np.array([4]), LABELS)))
    long = RNG.dirichlet(np.ones(len(LABELS)), size=5000)
    decoded = viterbi(np.log(np.maximum(long, TINY)), np.array([5000]), LABELS)
    assert valid(tuple(LABELS[i] for i in decoded))
    assert all(0 < span.confidence <= 1 for span in decode_spans(long, decoded, np.array([5000]), LABELS))
    assert len(viterbi(np.zeros((0, 5)), np.array([], dtype=np.int64), LABELS)) == 0


def test_a_type_without_an_inside_label():
    labels = ("B-LOC", "O")
    p = np.array([[0.6, 0.4], [0.7, 0.3]])
    decoded = viterbi(np.log(np.maximum(p, TINY)), np.array([2]), labels)
    assert [span.confidence for span in decode_spans(p, decoded, np.array([2]), labels)] == pytest.approx([0.6, 0.7])
