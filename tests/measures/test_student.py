"""Student's quantiles, against scipy's."""

import pytest
from scipy import stats

from crossfill.measures.student import student_quantile


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 30, 1000])
@pytest.mark.parametrize("level", [0.6, 0.9, 0.975, 0.9999])
def test_quantiles(level: float, freedom: int):
    assert student_quantile(level, freedom) == pytest.approx(stats.t.ppf(level, freedom), rel=1e-7)
