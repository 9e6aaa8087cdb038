"""Paired tests: against exact enumeration, their size where nothing differs, and Holm's correction by hand."""

from itertools import product

import numpy as np
import pytest

from crossfill.errors import DataError
from crossfill.measures.significance import approximate_randomisation, holm, paired_bootstrap, summarise

TESTS = (paired_bootstrap, approximate_randomisation)


def f1(counts: np.ndarray) -> float:
    hits, gold, predicted = counts.sum(0)
    return 2 * hits / (gold + predicted)


def random_counts(rng: np.random.Generator, n: int, right: float = 0.5) -> np.ndarray:
    gold, predicted = rng.integers(1, 5, size=(2, n))
    return np.stack([rng.binomial(np.minimum(gold, predicted), right), gold, predicted], axis=1)


def test_randomisation_equals_the_enumeration_of_all_swaps():
    rng = np.random.default_rng(0)
    for sides in ((random_counts(rng, 8), random_counts(rng, 8, 0.8)), tuple(rng.random((2, 8)))):
        a, b = sides
        value = f1 if a.ndim == 2 else np.mean
        found = value(a) - value(b)
        extreme = 0
        for flips in product([False, True], repeat=8):
            swap = np.array(flips).reshape(-1, *[1] * (a.ndim - 1))
            extreme += abs(value(np.where(swap, b, a)) - value(np.where(swap, a, b))) >= abs(found) - 1e-12
        difference, p, *_ = approximate_randomisation(a, b, n_resamples=40_000)
        assert difference == pytest.approx(found)
        assert p == pytest.approx(extreme / 2**8, abs=0.01)


def test_bootstrap_equals_a_loop_over_resamples_in_distribution():
    rng = np.random.default_rng(1)
    a, b = random_counts(rng, 60), random_counts(rng, 60, 0.6)
    found = f1(a) - f1(b)
    draws = [rng.integers(60, size=60) for _ in range(4000)]
    loop = np.array([f1(a[i]) - f1(b[i]) for i in draws])
    comparison = paired_bootstrap(a, b, n_resamples=20_000)
    assert comparison.difference == pytest.approx(found)
    assert comparison.p_value == pytest.approx((np.abs(loop - found) >= abs(found)).mean(), abs=0.03)
    low, high = np.quantile(loop, [0.025, 0.975])
    assert (comparison.low, comparison.high) == (pytest.approx(low, abs=0.01), pytest.approx(high, abs=0.01))


@pytest.mark.parametrize("test", TESTS)
def test_they_reject_as_often_as_they_should_where_nothing_differs(test):
    rng = np.random.default_rng(2)
    sentences = [test(random_counts(rng, 80), random_counts(rng, 80), n_resamples=200).p_value for _ in range(200)]
    cells = [test(rng.random(30), rng.random(30), n_resamples=200).p_value for _ in range(200)]
    for p_values in (sentences, cells):
        assert 0.005 < np.mean(np.array(p_values) < 0.05) < 0.11
        assert 0.4 < np.mean(p_values) < 0.6


@pytest.mark.parametrize("test", TESTS)
def test_a_real_difference_is_found_and_no_difference_is_not(test):
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


def test_sides_that_do_not_pair_are_refused():
    for first, second in ((np.ones(3), np.ones(4)), (np.ones((3, 2)), np.ones((3, 2))), (np.ones(0), np.ones(0))):
        with pytest.raises(DataError, match="expected two arrays of the same sentences"):
            paired_bootstrap(first, second)
