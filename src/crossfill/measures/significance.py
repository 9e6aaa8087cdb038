"""Statistics of results: paired tests over trainings and cells, correlation, principal components.

`over_trainings_and_cells` is the test of one method against another, two-sided: it asks whether the difference would be
there with other languages *and* with other seeds.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from crossfill.errors import DataError

ALPHA = 0.05
"""The level at which a difference is called significant."""


class Comparison(NamedTuple):
    """The difference first − second, its p-value, and a 95 % interval of the difference (NaN if not computed)."""

    difference: float
    p_value: float
    low: float = float("nan")
    high: float = float("nan")


class Correlation(NamedTuple):
    """Pearson's r over n pairs and its two-sided p-value; NaN where either variable is constant."""

    r: float
    p: float
    n: int


class Summary(NamedTuple):
    """Mean and sample standard deviation (n − 1) of values such as scores over seeds; `sd` is NaN for one value."""

    mean: float
    sd: float
    n: int


class Projection(NamedTuple):
    """Points projected onto their principal components."""

    points: Float[np.ndarray, "points components"]
    shares: Float[np.ndarray, "components"]
    """Share of the variance that each component explains."""
    directions: Float[np.ndarray, "components latent"]


def over_trainings_and_cells(parts: Sequence[np.ndarray]) -> Comparison:
    """Test the mean paired difference, with seeds and cells as samples of all that there could be.

    Each part has the differences (seeds × cells) between two methods, with the same seeds, in the cells that one
    partition leaves unseen. A difference is modelled as d = μ + a(training) + b(cell) + e, with a, b and e independent
    and of unknown variance. For partitions of equal size

        Var(mean) = (MS_trainings + MS_cells − MS_rest) / n        MS: mean squares of the two-way analysis of variance

    and Student's t has Satterthwaite's degrees of freedom. With a single seed the variance between trainings cannot be
    estimated: then this is the paired t-test over cells.
    """
    from scipy.special import stdtr

    parts = [np.asarray(part, dtype=np.float64) for part in parts if np.size(part)]
    n_seeds = {len(part) for part in parts}
    n_cells = sum(part.shape[1] for part in parts)
    if len(n_seeds) != 1 or n_cells < 2:
        shapes = ", ".join(str(part.shape) for part in parts) or "nothing"
        raise DataError(f"expected two or more cells, and the same seeds in each partition; got shapes {shapes}")
    (seeds,) = n_seeds
    by_cell = np.concatenate([part.mean(0) for part in parts])
    mean = float(by_cell.mean())
    cells = seeds * float(((by_cell - mean) ** 2).sum()) / (n_cells - 1)
    variance, freedom = cells / (seeds * n_cells), float(n_cells - 1)
    if seeds > 1:
        effects = [part.mean(1) - part.mean() for part in parts]
        rests = [part - part.mean(0) - effect[:, None] for part, effect in zip(parts, effects, strict=True)]
        rest = sum(float((r**2).sum()) for r in rests) / max(1, (seeds - 1) * (n_cells - len(parts)))
        squares = [part.shape[1] * float((e**2).sum()) for part, e in zip(parts, effects, strict=True)]
        trainings = sum(squares) / ((seeds - 1) * len(parts))
        # Σ (cells of a part / all cells)² is how far trainings average out: 1 / parts, if these are equally large
        weight = sum((part.shape[1] / n_cells) ** 2 for part in parts) / (seeds * n_cells / len(parts))
        terms = [(variance, n_cells - 1), (weight * trainings, (seeds - 1) * len(parts))]
        terms.append((-weight * rest, max(1, (seeds - 1) * (n_cells - len(parts)))))
        whole = sum(term for term, _ in terms)
        if whole > variance:  # else the trainings differ by no more than the rest does
            freedom = whole**2 / sum(term**2 / degrees for term, degrees in terms)
            variance = whole
    if variance <= 0:
        return Comparison(mean, 1.0 if mean == 0 else 0.0, mean, mean)
    scale = variance**0.5
    reach = student_quantile(1 - ALPHA / 2, freedom) * scale
    return Comparison(mean, 2 * float(stdtr(freedom, -abs(mean) / scale)), mean - reach, mean + reach)


def student_quantile(level: float, freedom: float) -> float:
    """Return the t below which a share `level` of Student's distribution with these degrees of freedom lies."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, level))


def correlation(first: Float[np.ndarray, "n"], second: Float[np.ndarray, "n"]) -> Correlation:
    """Compute Pearson's correlation, with p = P(|T| ≥ |t|) for Student's t with n − 2 degrees of freedom."""
    from scipy.special import betainc

    n = len(first)
    if n < 2 or first.std() == 0 or second.std() == 0:
        return Correlation(math.nan, math.nan, n)
    r = float(np.clip(np.corrcoef(first, second)[0, 1], -1, 1))
    return Correlation(r, float(betainc((n - 2) / 2, 0.5, 1 - r * r)) if n > 2 else 1.0, n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values by Holm: multiply the k-th smallest of m by m − k + 1, then make them monotone."""
    order = np.argsort(p_values, kind="stable")
    raised = np.asarray(p_values, dtype=np.float64)[order] * (len(p_values) - np.arange(len(p_values)))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(raised)) if len(p_values) else raised
    return adjusted.tolist()


def summarise(values: Sequence[float]) -> Summary:
    """Compute mean and standard deviation."""
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Summary(float(np.mean(values)), sd, len(values))


def pca(points: Float[np.ndarray, "points latent"], n: int) -> Projection:
    """Project the points onto their first n principal components."""
    centred = points - points.mean(0)
    _, values, directions = np.linalg.svd(centred, full_matrices=False)
    total = (values**2).sum()
    shares = values**2 / total if total else np.zeros_like(values)
    return Projection(centred @ directions[:n].T, shares[:n], directions[:n])
