"""Dropout by bytes: the share, the mean and independence of its zeros; nothing outside training."""

import pytest
import torch

from crossfill.encoders.base import Dropout


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_zeros_fall_independently_at_the_share_asked_for(share: float):
    torch.manual_seed(0)
    layer = Dropout(share)
    kept = layer(torch.ones(4001, 63)) != 0  # an odd number of numbers: the last bytes are cut off
    exact = 1 - layer.dropped / 256
    assert abs(exact - (1 - share)) <= 1 / 512
    error = (exact * (1 - exact)) ** 0.5
    assert abs(kept.float().mean().item() - exact) < 4 * error / kept.numel() ** 0.5
    correlations = torch.corrcoef(kept.float().T)[~torch.eye(63, dtype=torch.bool)]
    assert correlations.abs().max() < 5 / 4001**0.5


def test_the_mean_is_kept_and_gradients_follow_the_mask():
    torch.manual_seed(0)
    features = torch.randn(2000, 8).requires_grad_()
    dropped = Dropout(0.3)(features)
    torch.testing.assert_close(dropped.mean(), features.mean(), atol=0.03, rtol=0)
    (gradient,) = torch.autograd.grad(dropped.sum(), features)
    torch.testing.assert_close(gradient, dropped.detach() / features.detach())


def test_nothing_is_dropped_outside_training_or_at_share_zero():
    features = torch.randn(5, 3)
    assert Dropout(0.5).eval()(features) is features
    assert Dropout(0.0)(features) is features
