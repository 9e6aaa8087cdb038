"""Pearson's correlation with its p-value."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Correlation(NamedTuple):
    """Pearson's r over n pairs and its two-sided p-value; NaN where either variable is constant."""

    r: float
    p: float
    n: int


def correlation(first: Float[np.ndarray, "n"], second: Float[np.ndarray, "n"]) -> Correlation:
    """Pearson's correlation, with p = P(|T| ≥ |t|) for Student's t with n − 2 degrees of freedom, as in scipy."""
    n = len(first)
    if n < 2 or first.std() == 0 or second.std() == 0:
        return Correlation(math.nan, math.nan, n)
    r = float(np.clip(np.corrcoef(first, second)[0, 1], -1, 1))
    if n == 2:
        return Correlation(r, 1.0, n)
    return Correlation(r, incomplete_beta((n - 2) / 2, 0.5, 1 - r * r), n)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function Iₓ(a, b), by Lentz's evaluation of its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    log_front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    tiny = 1e-300
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d, tiny)
            c = _away_from_zero(1 + term / c, tiny)
            change *= d * c
        fraction *= change
        if abs(change - 1) < 1e-15:
            break
    return math.exp(log_front) * fraction / a


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
