"""Measures of predicted probabilities: likelihood, calibration, risk against coverage."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from crossfill.measures.metrics import LabelIds, Probabilities

SMALLEST = 1e-12
"""Lower bound on probabilities in the log-likelihood, so that a word costs at most 27.6 nats."""
N_BINS = 15
COVERAGES = 20
"""Points of a risk–coverage curve: the most confident 5 %, 10 %, …, 100 % of words."""

Confidence = Float[np.ndarray, "words"]
Correct = Bool[np.ndarray, "words"]


def nll(probabilities: Probabilities, gold: LabelIds) -> float:
    """Compute −ln p(y) per word, in nats."""
    right = probabilities[np.arange(len(gold)), gold]
    return float(-np.log(np.maximum(right, SMALLEST)).mean())


def brier(probabilities: Probabilities, gold: LabelIds) -> float:
    """Compute Σₖ (p(k) − [y = k])² per word: from 0 to 2."""
    right = probabilities[np.arange(len(gold)), gold]
    return float(((probabilities**2).sum(1) - 2 * right + 1).mean())


@dataclass(frozen=True)
class Reliability:
    """Words binned by confidence: their number, mean confidence and accuracy in each bin."""

    count: Int[np.ndarray, "bins"]
    confidence: Float[np.ndarray, "bins"]
    accuracy: Float[np.ndarray, "bins"]

    def error(self) -> float:
        """Compute the expected calibration error: Σ n |accuracy − confidence| / N."""
        gaps = np.abs(self.accuracy - self.confidence)
        return float((self.count * gaps).sum() / max(1, self.count.sum()))


def reliability(confidence: Confidence, correct: Correct, n_bins: int = N_BINS, adaptive: bool = False) -> Reliability:
    """Bin words for a reliability diagram, in bins [i/n, (i + 1)/n) or (`adaptive`) of as many words each."""
    if adaptive:
        bins = np.empty(len(confidence), dtype=np.int64)
        bins[np.argsort(confidence, kind="stable")] = np.arange(len(confidence)) * n_bins // max(1, len(confidence))
    else:
        bins = np.minimum((confidence.astype(np.float64) * n_bins).astype(np.int64), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    sums = (np.bincount(bins, weights=values, minlength=n_bins) for values in (confidence, correct))
    sure, right = (total / np.maximum(1, count) for total in sums)
    return Reliability(count, sure, right)


def cumulative_errors(confidence: Confidence, correct: Correct) -> Float[np.ndarray, "words"]:
    """Count the expected errors among the 1, 2, …, n most confident words, with ties in random order."""
    order = np.argsort(-confidence, kind="stable")
    wrong = 1.0 - correct[order]
    _, first, size = np.unique(-confidence[order], return_index=True, return_counts=True)
    rates = np.add.reduceat(wrong, first) / size if len(first) else wrong
    return np.cumsum(np.repeat(rates, size))


def risk_coverage(confidence: Confidence, correct: Correct, points: int = COVERAGES) -> Float[np.ndarray, "points"]:
    """Compute the error rate of the most confident 1/points, 2/points, …, of all words."""
    errors = cumulative_errors(confidence, correct)
    if not len(errors):
        return np.zeros(points)
    counts = -(-np.arange(1, points + 1) * len(errors) // points)  # rounded up
    return errors[counts - 1] / counts


def aurc(confidence: Confidence, correct: Correct) -> float:
    """Compute the area under the risk–coverage curve: the mean over k of errors among the k most confident words."""
    errors = cumulative_errors(confidence, correct)
    return float((errors / np.arange(1, len(errors) + 1)).mean()) if len(errors) else 0.0
