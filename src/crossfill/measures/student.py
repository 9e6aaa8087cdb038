"""Quantiles of Student's t distribution."""

import math
from functools import cache

from crossfill.measures.correlation import incomplete_beta


@cache
def student_quantile(level: float, freedom: int) -> float:
    """The t below which a share `level` of the distribution with these degrees of freedom lies; level above a half.

    P(|T| > t) = I(ν/2, 1/2) at ν/(ν + t²), and t is found by bisection.
    """
    outside = 2 * (1 - level)
    low, high = 0.0, 1.0
    while incomplete_beta(freedom / 2, 0.5, freedom / (freedom + high**2)) > outside:
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = math.fsum((low, high)) / 2
        if incomplete_beta(freedom / 2, 0.5, freedom / (freedom + middle**2)) > outside:
            low = middle
        else:
            high = middle
    return (low + high) / 2
