"""Entropy, mutual information and correlation at values known by hand."""

import math

import numpy as np
import pytest
import torch

from crossfill.uncertainty import correlation, entropy, mutual_information


def test_entropy_of_certain_and_of_uniform_predictions():
    assert entropy(torch.tensor([1.0, 0.0, 0.0])).item() == pytest.approx(0)
    assert entropy(torch.full((17,), 1 / 17)).item() == pytest.approx(math.log(17))


def test_samples_that_disagree_have_mutual_information_and_those_that_agree_have_none():
    opposite = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert mutual_information(opposite.mean(0), opposite).item() == pytest.approx(math.log(2))
    same = torch.full((3, 1, 2), 0.5)
    assert mutual_information(same.mean(0), same).item() == pytest.approx(0)


def test_correlation():
    x = np.array([1.0, 2.0, 3.0])
    assert correlation(x, 5 - 2 * x).r == pytest.approx(-1)
    assert math.isnan(correlation(x, np.ones(3)).r)
    assert math.isnan(correlation(x[:1], x[:1]).r)
