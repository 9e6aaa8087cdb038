"""Paired tests: against exact enumeration, their size where nothing differs, and Holm's correction by hand."""

from itertools import product

import numpy as np
import pytest

from crossfill.errors import DataError
from crossfill.measures.significance import (
    approximate_randomisation,
    holm,
    over_trainings_and_cells,
    student_quantile,
    summarise,
)


def f1(counts: np.ndarray) -> float:
    hits, gold, predicted = counts.sum(0)
    return 2 * hits / (gold + predicted)


def random_counts(rng: np.random.Generator, n: int, right: float = 0.5) -> np.ndarray:
    gold, predicted = rng.integers(1, 5, size=(2, n))
    return np.stack([rng.binomial(np.minimum(gold, predicted), right), gold, predicted], axis=1)


def test_randomisation_equals_the_enumeration_of_all_swaps():
    rng = np.random.default_rng(0)
    a, b = random_counts(rng, 8), random_counts(rng, 8, 0.8)
    observed = f1(a) - f1(b)
    extreme = 0
    for flips in product([False, True], repeat=8):
        swap = np.array(flips)[:, None]
        extreme += abs(f1(np.where(swap, b, a)) - f1(np.where(swap, a, b))) >= abs(observed) - 1e-12
    difference, p, *_ = approximate_randomisation(a, b, n_resamples=40_000)
    assert difference == pytest.approx(observed)
    assert p == pytest.approx(extreme / 2**8, abs=0.01)


def test_it_rejects_as_often_as_it_should_where_nothing_differs():
    test = approximate_randomisation
    rng = np.random.default_rng(2)
    sentences = [test(random_counts(rng, 80), random_counts(rng, 80), n_resamples=200).p_value for _ in range(200)]
    assert 0.005 < np.mean(np.array(sentences) < 0.05) < 0.11
    assert 0.4 < np.mean(sentences) < 0.6


def test_a_real_difference_is_found_and_no_difference_is_not():
    test = approximate_randomisation
    rng = np.random.default_rng(3)
    a, b = random_counts(rng, 300, 0.7), random_counts(rng, 300, 0.5)
    found, turned, none = test(a, b, 2000), test(b, a, 2000), test(a, a, 100)
    assert found.p_value < 0.001
    assert found.difference == pytest.approx(-turned.difference)
    assert found == test(a, b, 2000)
    assert (none.difference, none.p_value) == (0.0, 1.0)


def test_chunks_do_not_change_the_kind_of_answer(monkeypatch):
    rng = np.random.default_rng(4)
    a, b = random_counts(rng, 50), random_counts(rng, 50)
    whole = approximate_randomisation(a, b, n_resamples=5000)
    monkeypatch.setattr("crossfill.measures.significance.CHUNK_NUMBERS", 5000)
    assert approximate_randomisation(a, b, n_resamples=5000).p_value == pytest.approx(whole.p_value, abs=0.03)


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
        with pytest.raises(DataError, match="expected at least two cells, and the same number of seeds"):
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
