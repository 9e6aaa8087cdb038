"""Measures of doubt at values known by hand, against naive loops, torchmetrics and scipy."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr
from torchmetrics.classification import MulticlassCalibrationError

from crossfill.measures.significance import correlation
from crossfill.measures.uncertainty import aurc, brier, nll, reliability, risk_coverage
from crossfill.prediction.predict import entropy, mutual_information

RNG = np.random.default_rng(0)
PROBABILITIES = RNG.dirichlet(np.full(5, 0.4), size=400)
GOLD = np.array([RNG.choice(5, p=p) for p in 0.6 * PROBABILITIES + 0.08])
CONFIDENCE, CORRECT = PROBABILITIES.max(1), PROBABILITIES.argmax(1) == GOLD


def test_entropy_of_certain_and_of_uniform_predictions():
    assert entropy(torch.tensor([1.0, 0.0, 0.0])).item() == pytest.approx(0)
    assert entropy(torch.full((17,), 1 / 17)).item() == pytest.approx(math.log(17))


def test_samples_that_disagree_have_mutual_information_and_those_that_agree_have_none():
    opposite = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert mutual_information(opposite.mean(0), opposite).item() == pytest.approx(math.log(2))
    same = torch.full((3, 1, 2), 0.5)
    assert mutual_information(same.mean(0), same).item() == pytest.approx(0)


def test_nll_and_brier_against_a_loop_and_torch():
    expected = torch.nn.functional.nll_loss(torch.from_numpy(np.log(PROBABILITIES)), torch.from_numpy(GOLD)).item()
    assert nll(PROBABILITIES, GOLD) == pytest.approx(expected)
    total = sum((p - (k == y)) ** 2 for row, y in zip(PROBABILITIES, GOLD, strict=True) for k, p in enumerate(row))
    assert brier(PROBABILITIES, GOLD) == pytest.approx(total / len(GOLD))
    assert nll(np.array([[1.0, 0.0]]), np.array([1])) == pytest.approx(12 * math.log(10))  # not infinite


@pytest.mark.parametrize("n_bins", [5, 15])
def test_ece_is_torchmetrics(n_bins: int):
    metric = MulticlassCalibrationError(num_classes=5, n_bins=n_bins, norm="l1")
    expected = metric(torch.from_numpy(PROBABILITIES), torch.from_numpy(GOLD)).item()
    assert reliability(CONFIDENCE, CORRECT, n_bins).error() == pytest.approx(expected, abs=1e-6)


def test_adaptive_bins_hold_equally_many_words():
    bins = reliability(CONFIDENCE, CORRECT, 16, adaptive=True)
    assert bins.count.tolist() == [25] * 16
    order = np.argsort(CONFIDENCE)
    parts = [(CORRECT[part].mean(), CONFIDENCE[part].mean()) for part in order.reshape(16, 25)]
    np.testing.assert_allclose(bins.accuracy, [right for right, _ in parts])
    np.testing.assert_allclose(bins.confidence, [sure for _, sure in parts])
    assert bins.error() == pytest.approx(np.mean([abs(right - sure) for right, sure in parts]))


def test_certainty_falls_into_the_last_bin():
    bins = reliability(np.array([1.0, 0.95, 0.0]), np.array([True, False, False]))
    assert bins.count.tolist() == [1] + [0] * 13 + [2]
    assert bins.accuracy[-1] == 0.5


def test_risk_coverage_against_a_loop():
    order = np.argsort(-CONFIDENCE)
    risks = [1 - CORRECT[order[:k]].mean() for k in range(1, 401)]
    assert aurc(CONFIDENCE, CORRECT) == pytest.approx(np.mean(risks))
    np.testing.assert_allclose(risk_coverage(CONFIDENCE, CORRECT), [risks[20 * i - 1] for i in range(1, 21)])
    few = risk_coverage(CONFIDENCE[:7], CORRECT[:7])  # 5 % of seven words is one word
    assert len(few) == 20
    assert few[-1] == pytest.approx(1 - CORRECT[:7].mean())


def test_equally_confident_words_stand_in_random_order():
    confidence, correct = np.repeat([0.9, 0.5, 0.4], [3, 4, 2]), RNG.random(9) < 0.5
    shuffled = [np.random.default_rng(i).permutation(9) for i in range(1500)]
    exact = [aurc(confidence[p], correct[p]) for p in shuffled[:20]]
    np.testing.assert_allclose(exact, exact[0])
    broken = [aurc(confidence[p] - 1e-6 * np.arange(9), correct[p]) for p in shuffled]
    assert np.mean(broken) == pytest.approx(exact[0], abs=0.02)


@pytest.mark.parametrize("n", [3, 10, 62])
def test_correlation_is_scipys(n: int):
    for strength in (0.0, 1.0, 5.0):
        x = RNG.normal(size=n)
        y = strength * x + RNG.normal(size=n)
        r, p, size = correlation(x, y)
        expected = pearsonr(x, y)
        assert (r, size) == (pytest.approx(expected.statistic), n)
        assert p == pytest.approx(expected.pvalue, rel=1e-6)


def test_correlation_where_it_is_certain_or_undefined():
    x = np.array([1.0, 2.0, 3.0])
    assert correlation(x, 5 - 2 * x).r == pytest.approx(-1)
    assert correlation(x, 5 - 2 * x).p == pytest.approx(0, abs=1e-6)
    assert math.isnan(correlation(x, np.ones(3)).r)
    assert math.isnan(correlation(x[:1], x[:1]).r)
