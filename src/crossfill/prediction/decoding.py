"""Decoding of valid IOB2 sequences, and the confidence of each span in them.

Words have independent distributions; sequences in which an I-X follows neither B-X nor I-X are excluded, and the
rest renormalised: p(y) = Πᵢ pᵢ(yᵢ) [y is valid] / Z.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

TINY = 1e-30


class DecodedSpan(NamedTuple):
    """A span of the decoded sequence: words `start` to `end` (exclusive), counted over all sentences."""

    start: int
    end: int
    type: str
    confidence: float
    """The probability of a span with exactly this start, end and type, over all valid sequences."""


def follows(labels: Sequence[str]) -> Bool[np.ndarray, "labels labels"]:
    """Whether the label of each column may follow that of each row."""
    inside = np.array([label.startswith("I-") for label in labels])
    same = np.array([[one != "O" and one[2:] == other[2:] for other in labels] for one in labels])
    return ~inside[None, :] | same


def starts(labels: Sequence[str]) -> Bool[np.ndarray, "labels"]:
    """Whether a sentence may begin with each label."""
    return np.array([not label.startswith("I-") for label in labels])


def viterbi(
    weights: Float[np.ndarray, "words labels"], lengths: Int[np.ndarray, "sentences"], labels: Sequence[str]
) -> Int[np.ndarray, "words"]:
    """The valid sequence of each sentence with the largest sum of weights, such as log-probabilities.

    Computed word by word for all sentences at once.
    """
    barred = np.where(follows(labels), 0.0, -np.inf)
    steps = _steps(lengths)
    back = np.zeros(weights.shape, dtype=np.int64)
    scores = np.zeros((len(steps[0]) if steps else 0, len(labels)))
    for step, rows in enumerate(steps):
        n = len(rows)
        if step == 0:
            scores[:] = np.where(starts(labels), weights[rows], -np.inf)
            continue
        moves = scores[:n, :, None] + barred  # sentences × previous label × next label
        back[rows] = moves.argmax(1)
        scores[:n] = moves.max(1) + weights[rows]
    best = scores.argmax(1)
    found = np.zeros(len(weights), dtype=np.int64)
    for rows in reversed(steps):
        n = len(rows)
        found[rows] = best[:n]
        best[:n] = back[rows, best[:n]]
    return found


def decode_spans(
    probabilities: Float[np.ndarray, "words labels"],
    decoded: Int[np.ndarray, "words"],
    lengths: Int[np.ndarray, "sentences"],
    labels: Sequence[str],
) -> list[DecodedSpan]:
    """The spans of a sequence with their probabilities, by the forward and backward recursions."""
    forward, backward, scales = _recursions(probabilities, lengths, labels)
    p = np.maximum(probabilities, TINY)
    allowed, place = follows(labels), {label: i for i, label in enumerate(labels)}
    found = []
    for start, end, kind, last in _runs(decoded, lengths, labels):
        begin, inside = place[f"B-{kind}"], place.get(f"I-{kind}")
        mass = forward[start, begin]
        if inside is not None:
            mass *= np.prod(p[start + 1 : end, inside] / scales[start + 1 : end])
        if end < last:  # the span ends here: the next label is any valid one but its continuation
            after = allowed[decoded[end - 1]].copy()
            if inside is not None:
                after[inside] = False
            mass *= float((p[end] * backward[end])[after].sum()) / scales[end]
        found.append(DecodedSpan(start, end, kind, min(1.0, float(mass))))
    return found


def _recursions(
    probabilities: Float[np.ndarray, "words labels"], lengths: Int[np.ndarray, "sentences"], labels: Sequence[str]
) -> tuple[Float[np.ndarray, "words labels"], Float[np.ndarray, "words labels"], Float[np.ndarray, "words"]]:
    """Forward and backward sums over valid sequences, both divided at each word by the total of the forward sums."""
    p, allowed = np.maximum(probabilities.astype(np.float64), TINY), follows(labels).astype(np.float64)
    steps = _steps(lengths)
    forward, backward, scales = np.zeros_like(p), np.ones_like(p), np.ones(len(p))
    for step, rows in enumerate(steps):
        reach = starts(labels) if step == 0 else forward[steps[step - 1][: len(rows)]] @ allowed
        mass = p[rows] * reach
        scales[rows] = mass.sum(1)
        forward[rows] = mass / scales[rows, None]
    for step in range(len(steps) - 1, 0, -1):
        rows = steps[step]
        backward[steps[step - 1][: len(rows)]] = (p[rows] * backward[rows] / scales[rows, None]) @ allowed.T
    return forward, backward, scales


def _steps(lengths: Int[np.ndarray, "sentences"]) -> list[Int[np.ndarray, "active"]]:
    """The rows of all first words, all second words, …; longest sentences first, so that unfinished ones lead."""
    order = np.argsort(-lengths, kind="stable")
    first = (np.cumsum(lengths) - lengths)[order]
    active = np.searchsorted(-lengths[order], -np.arange(1, int(lengths.max(initial=0)) + 1), side="right")
    return [first[:n] + step for step, n in enumerate(active)]


def _runs(
    decoded: Int[np.ndarray, "words"], lengths: Int[np.ndarray, "sentences"], labels: Sequence[str]
) -> list[tuple[int, int, str, int]]:
    """Start, end and type of each span, and the end of its sentence; an I- that continues none is in no span."""
    begins = np.array([label.startswith("B-") for label in labels])[decoded]
    types = np.array([label[2:] for label in labels])[decoded]
    inside = np.array([label.startswith("I-") for label in labels])[decoded]
    inside[1:] &= types[1:] == types[:-1]
    ends = np.repeat(np.cumsum(lengths), lengths)
    # for each word, the next word that does not continue a span
    stops = np.where(np.append(inside[1:], False), len(decoded), np.arange(1, len(decoded) + 1))
    stops = np.minimum.accumulate(stops[::-1])[::-1]
    found = []
    for start in np.flatnonzero(begins).tolist():
        last = int(ends[start])
        found.append((start, min(int(stops[start]), last), labels[decoded[start]][2:], last))
    return found
