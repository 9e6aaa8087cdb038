"""Heads: vectorised against naive loops, slices of tasks, and the start of the last layers."""

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from crossfill.config import GeneratorConfig
from crossfill.methods.factorized.generator import Generator, HeadDistribution
from crossfill.model import Head

LATENT = 3
LABELS, WIDTHS = (2, 4), (5, 20)
SHAPES = list(zip(LABELS, WIDTHS, strict=True))
CONFIG = GeneratorConfig(hidden=(8, 7))


@pytest.fixture
def generator() -> Generator:
    torch.manual_seed(0)
    return Generator(LATENT, SHAPES, CONFIG).double()


def latents(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, LATENT, dtype=torch.float64)


def test_all_cells_in_one_call_equal_one_cell_and_sample_at_a_time(generator):
    tasks, t, l = [1, 0, 1], latents(2, 3), latents(2, 3)
    together = generator(tasks, t, l)
    for cell, task in enumerate(tasks):
        for sample in range(2):
            x = torch.cat(
                [t[sample, cell], l[sample, cell], t[sample, cell] - l[sample, cell], t[sample, cell] * l[sample, cell]]
            )
            for layer in generator.trunk:
                x = layer(x)
            mean = generator.means[task](x).view(LABELS[task], WIDTHS[task] + 1)
            variance = torch.log1p(torch.exp(generator.variances[task](x))).view(LABELS[task], WIDTHS[task] + 1)
            torch.testing.assert_close(together[cell].mean[sample], mean)
            torch.testing.assert_close(together[cell].variance[sample], variance, rtol=1e-8, atol=1e-9)


def test_logits_are_w_x_plus_b():
    parameters, features = torch.randn(4, 3, WIDTHS[0] + 1).double(), torch.randn(6, WIDTHS[0]).double()
    logits = Head(parameters).logits(features)
    for sample in range(4):
        for word in range(6):
            naive = parameters[sample, :, :-1] @ features[word] + parameters[sample, :, -1]
            torch.testing.assert_close(logits[sample, word], naive)


def test_head_samples_have_the_variance_they_should():
    mean, variance = torch.randn(1, 2, 3).double(), torch.rand(1, 2, 3).double() + 0.1
    n = 100_000
    draws = HeadDistribution(mean.expand(n, -1, -1), variance.expand(n, -1, -1)).sample().parameters
    assert ((draws.mean(0) - mean[0]).abs() < 5 * (variance[0] / n).sqrt()).all()
    assert ((draws.var(0) - variance[0]).abs() < 5 * variance[0] * math.sqrt(2 / n)).all()


def test_head_kl_equals_torch_distributions():
    head = HeadDistribution(torch.randn(3, 2, 4).double(), torch.rand(3, 2, 4).double() + 0.1)
    theirs = kl_divergence(
        Normal(head.mean, head.variance.sqrt()), Normal(torch.zeros(1).double(), torch.ones(1).double())
    )
    torch.testing.assert_close(head.kl(), theirs.flatten(1).sum(-1))


def test_without_deviation_all_cells_of_a_task_start_from_one_head_of_known_variance():
    config = GeneratorConfig(hidden=(8,), deviation=0.0, initial_variance=0.02)
    first, second = Generator(LATENT, SHAPES, config).double()([0, 0], latents(1, 2), latents(1, 2))
    torch.testing.assert_close(first.mean, second.mean)
    torch.testing.assert_close(first.variance, torch.full_like(first.variance, 0.02), rtol=1e-5, atol=0)


def test_only_the_task_in_use_gets_gradients(generator):
    generator([0], latents(1, 1), latents(1, 1))[0].sample().parameters.sum().backward()
    assert generator.means[0].weight.grad is not None
    assert generator.means[1].weight.grad is None


def test_units_of_the_trunk_are_dropped_in_training_alone():
    torch.manual_seed(0)
    generator = Generator(LATENT, SHAPES, GeneratorConfig(hidden=(400,), dropout=0.5)).double()
    t, l = latents(1, 1), latents(1, 1)
    whole, kept = generator.eval().hidden(t, l), generator.train().hidden(t, l)
    torch.testing.assert_close(kept[kept > 0], 2 * whole[kept > 0])
    assert 0.4 < float((kept > 0).sum() / (whole > 0).sum()) < 0.6
