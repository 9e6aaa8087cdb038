"""Paired significance tests over sentences or cells, and Holm's correction for multiple comparisons.

Both tests take two arrays in the same order: counts of hits, gold and predicted items (sentences × 3, as in
`CellResult.counts`) to compare F1, or one score per cell to compare means. Both tests are two-sided.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from crossfill.errors import DataError

ALPHA = 0.05
"""The level at which a difference is called significant."""
CHUNK_NUMBERS = 2**22  # resamples × items held at once


class Comparison(NamedTuple):
    """The difference first − second, its p-value, and a 95 % interval of the difference (NaN if not computed)."""

    difference: float
    p_value: float
    low: float = float("nan")
    high: float = float("nan")


class Summary(NamedTuple):
    """Mean and sample standard deviation (n − 1) of values such as scores over seeds; `sd` is NaN for one value."""

    mean: float
    sd: float
    n: int


def paired_bootstrap(first: np.ndarray, second: np.ndarray, n_resamples: int = 10_000, seed: int = 0) -> Comparison:
    """Bootstrap test: p is the share of resamples whose difference is at least |observed| away from the observed one.

    The interval is the central 95 % of the resamples' differences.
    """
    a, b = _paired(first, second)
    rng = np.random.default_rng(seed)
    n_items = len(a)
    found = _difference(a, b)
    parts = []
    for size in _chunks(n_resamples, n_items):
        times = rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=size).astype(np.float64)
        parts.append(_statistic(times @ a) - _statistic(times @ b))
    differences = np.concatenate(parts)
    as_far = np.abs(differences - found) >= abs(found) - _SLACK
    low, high = np.quantile(differences, [0.025, 0.975]).tolist()
    return Comparison(found, _p_value(as_far), low, high)


def approximate_randomisation(
    first: np.ndarray, second: np.ndarray, n_resamples: int = 10_000, seed: int = 0
) -> Comparison:
    """Swap the two sides of each item at random; p is the share of swaps with at least the observed |difference|."""
    a, b = _paired(first, second)
    rng = np.random.default_rng(seed)
    found = _difference(a, b)
    parts = []
    for size in _chunks(n_resamples, len(a)):
        swapped = rng.integers(2, size=(size, len(a))).astype(np.float64)
        moved = swapped @ (b - a)
        parts.append(_statistic(a.sum(0) + moved) - _statistic(b.sum(0) - moved))
    return Comparison(found, _p_value(np.abs(np.concatenate(parts)) >= abs(found) - _SLACK))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: multiply the k-th smallest of m p-values by m − k + 1, then make them monotone.

    Rejecting where the result is below α keeps the family-wise error rate at α.
    """
    order = np.argsort(p_values, kind="stable")
    raised = np.asarray(p_values, dtype=np.float64)[order] * (len(p_values) - np.arange(len(p_values)))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(raised)) if len(p_values) else raised
    return adjusted.tolist()


def summarise(values: Sequence[float]) -> Summary:
    """Mean ± standard deviation."""
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Summary(float(np.mean(values)), sd, len(values))


_SLACK = 1e-12  # tolerance for rounding when differences are equal


def _paired(first: np.ndarray, second: np.ndarray) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "n k"]]:
    """Both sides as rows that can be summed: counts unchanged, each score as (score, 1)."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim not in (1, 2) or (a.ndim == 2 and a.shape[1] != 3) or not len(a):
        raise DataError(
            "expected two arrays of the same sentences (n × 3 counts: hits, gold, predicted) or of the same cells "
            f"(n scores), got shapes {a.shape} and {b.shape}"
        )
    if a.ndim == 1:
        a, b = (np.stack([side, np.ones_like(side)], axis=1) for side in (a, b))
    return a, b


def _statistic(sums: Float[np.ndarray, "resamples k"]) -> Float[np.ndarray, "resamples"]:
    """F1 from sums of hits, gold and predicted; a mean from sums of scores and ones."""
    if sums.shape[-1] == 2:
        return sums[..., 0] / sums[..., 1]
    total = sums[..., 1] + sums[..., 2]
    return 2 * sums[..., 0] / np.where(total > 0, total, 1.0)


def _difference(a: Float[np.ndarray, "n k"], b: Float[np.ndarray, "n k"]) -> float:
    first, second = (float(_statistic(side.sum(0, keepdims=True))[0]) for side in (a, b))
    return first - second


def _p_value(extreme: np.ndarray) -> float:
    """The share of extreme resamples, with the observed difference as one of them, so that p is never 0."""
    return float((extreme.sum() + 1) / (len(extreme) + 1))


def _chunks(n: int, width: int) -> Iterator[int]:
    size = max(1, CHUNK_NUMBERS // max(1, width))
    yield from (min(size, n - start) for start in range(0, n, size))
