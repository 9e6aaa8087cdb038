"""Paired tests: their size where nothing differs, and Holm's correction by hand."""

import numpy as np
import pytest

from crossfill.errors import DataError
from crossfill.measures.significance import (
    holm,
    over_trainings_and_cells,
    student_quantile,
    summarise,
)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_summaries():
    assert summarise([1.0, 2.0, 3.0]) == (2.0, 1.0, 3)
    assert np.isnan(summarise([1.0]).sd)


def simulated(rng: np.random.Generator, seeds: int, cells: list[int], training: float, cell: float, rest: float):
    """Differences without a true one: trainings, cells and the rest vary."""
    return [
        rng.normal(0, training, (seeds, 1)) + rng.normal(0, cell, (1, n)) + rng.normal(0, rest, (seeds, n))
        for n in cells
    ]


@pytest.mark.parametrize("spread", [(1.0, 1.0, 1.0), (0.3, 1.0, 1.0), (0.0, 1.0, 0.5)])
def test_variance_between_trainings_is_told_from_a_difference(spread: tuple[float, float, float]):
    rng = np.random.default_rng(5)
    drawn = [simulated(rng, 3, [14, 15], *spread) for _ in range(150)]
    found = [over_trainings_and_cells(parts) for parts in drawn]
    assert np.mean([c.p_value < 0.05 for c in found]) <= 0.09
    assert np.mean([c.low <= 0 <= c.high for c in found]) >= 0.91
    if spread[0] == 1.0:  # a test over cells alone finds a difference in one of four pairs of equal methods
        over_cells = [over_trainings_and_cells([np.concatenate([p.mean(0) for p in parts])[None]]) for parts in drawn]
        assert np.mean([c.p_value < 0.05 for c in over_cells]) > 0.2


def test_with_one_seed_it_is_the_paired_t_test_and_finds_what_is_there():
    rng = np.random.default_rng(6)
    values = rng.normal(0.4, 1.0, 20)
    found = over_trainings_and_cells([values[None]])
    t = values.mean() / (values.std(ddof=1) / np.sqrt(20))
    assert found.difference == pytest.approx(values.mean())
    # P(|T| > t) with 19 degrees of freedom, by simulation
    draws = rng.standard_t(19, 400_000)
    assert found.p_value == pytest.approx((np.abs(draws) > abs(t)).mean(), abs=0.003)
    assert (found.high - found.low) / 2 == pytest.approx(2.093 * values.std(ddof=1) / np.sqrt(20), rel=1e-3)
    parts = [part + 1.0 for part in simulated(rng, 3, [14, 15], 0.1, 0.5, 0.5)]
    assert over_trainings_and_cells(parts).p_value < 0.001
    assert over_trainings_and_cells([np.zeros((2, 3))]).p_value == 1
    for wrong in ([], [np.zeros((3, 1))], [np.zeros((3, 4)), np.zeros((2, 4))]):
        with pytest.raises(DataError, match="expected two or more cells, and the same seeds"):
            over_trainings_and_cells(wrong)


def test_the_variance_is_that_of_balanced_analysis_of_variance():
    rng = np.random.default_rng(7)
    (part,) = simulated(rng, 4, [6], 2.0, 1.0, 0.5)
    n_seeds, n_cells = part.shape
    rows, columns = part.mean(1, keepdims=True), part.mean(0, keepdims=True)
    trainings = n_cells * ((rows - part.mean()) ** 2).sum() / (n_seeds - 1)
    cells = n_seeds * ((columns - part.mean()) ** 2).sum() / (n_cells - 1)
    rest = ((part - rows - columns + part.mean()) ** 2).sum() / ((n_seeds - 1) * (n_cells - 1))
    variance = (trainings + cells - rest) / part.size
    freedom = (trainings + cells - rest) ** 2 / (
        trainings**2 / (n_seeds - 1) + cells**2 / (n_cells - 1) + rest**2 / ((n_seeds - 1) * (n_cells - 1))
    )
    found = over_trainings_and_cells([part])
    assert (found.high - found.low) / 2 == pytest.approx(student_quantile(0.975, freedom) * np.sqrt(variance))
