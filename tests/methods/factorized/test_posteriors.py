"""Posteriors against torch.distributions, Monte Carlo and sampled covariances, in float64."""

import math

import pytest
import torch
from torch.distributions import LowRankMultivariateNormal, MultivariateNormal, Normal, kl_divergence

from crossfill.config import LatentConfig
from crossfill.methods.factorized.posteriors import VARIANCE_FLOOR, DiagonalPosterior, LowRankPosterior, Posterior

SMALL = LatentConfig(size=6, rank=3, mean_scale=1.0, rho_range=(-1.0, 1.5), factor_range=(-1.0, 1.5))
ROWS = torch.tensor([2, 0, 3])
KINDS = [DiagonalPosterior, LowRankPosterior]


def make(kind: type[Posterior], joint: bool = False) -> Posterior:
    torch.manual_seed(1)
    return kind(4, SMALL.model_copy(update={"joint": joint})).double()


def variance(posterior: Posterior) -> torch.Tensor:
    return torch.nn.functional.softplus(posterior.rho) + VARIANCE_FLOOR


def covariance(posterior: Posterior, row: int) -> torch.Tensor:
    """S, built in full: what the module itself never does."""
    diagonal = torch.diag(variance(posterior)[row])
    if isinstance(posterior, DiagonalPosterior):
        return diagonal
    factor = posterior.factor[row].view(SMALL.size, SMALL.rank)
    return diagonal + factor @ factor.T


def full_distribution(posterior: Posterior, row: int) -> MultivariateNormal:
    return MultivariateNormal(posterior.mean[row], covariance(posterior, row))


PRIOR = MultivariateNormal(torch.zeros(SMALL.size).double(), torch.eye(SMALL.size).double())


def test_diagonal_kl_equals_torch_distributions():
    posterior = make(DiagonalPosterior)
    ours = posterior.kl(ROWS)
    theirs = kl_divergence(
        Normal(posterior.mean, variance(posterior).sqrt()),
        Normal(torch.zeros(1).double(), torch.ones(1).double()),
    ).sum(-1)[ROWS]
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_low_rank_kl_equals_torch_distributions():
    posterior = make(LowRankPosterior)
    theirs = kl_divergence(
        LowRankMultivariateNormal(
            posterior.mean[ROWS], posterior.factor.view(4, SMALL.size, SMALL.rank)[ROWS], variance(posterior)[ROWS]
        ),
        LowRankMultivariateNormal(
            torch.zeros(SMALL.size).double(),
            torch.zeros(SMALL.size, 1).double(),
            torch.ones(SMALL.size).double(),
        ),
    )
    torch.testing.assert_close(posterior.kl(ROWS), theirs, rtol=0, atol=1e-10)
    for ours, row in zip(posterior.kl(ROWS), ROWS, strict=True):
        assert abs(ours - kl_divergence(full_distribution(posterior, row), PRIOR)) < 1e-10


def test_joint_kl_is_that_of_one_gaussian_over_all_rows():
    posterior = make(LowRankPosterior, joint=True)
    factor = posterior.factor.view(-1, SMALL.rank)
    whole = MultivariateNormal(posterior.mean.flatten(), torch.diag(variance(posterior).flatten()) + factor @ factor.T)
    prior = MultivariateNormal(torch.zeros(len(factor)).double(), torch.eye(len(factor)).double())
    ours = posterior.kl(ROWS)
    assert ours.shape == (1,)
    assert abs(ours[0] - kl_divergence(whole, prior)) < 1e-10


@pytest.mark.parametrize("kind", KINDS)
def test_kl_equals_its_monte_carlo_estimate(kind):
    posterior = make(kind)
    with torch.no_grad():
        samples = posterior.sample(torch.tensor([1]), 50_000)[:, 0]
        ratios = full_distribution(posterior, 1).log_prob(samples) - PRIOR.log_prob(samples)
        error = ratios.std() / math.sqrt(len(ratios))
        assert abs(ratios.mean() - posterior.kl(torch.tensor([1]))[0]) < 4 * error


@pytest.mark.parametrize("kind", KINDS)
def test_samples_have_the_mean_and_covariance_the_kl_assumes(kind):
    posterior = make(kind)
    n_samples = 200_000
    with torch.no_grad():
        samples = posterior.sample(torch.tensor([2]), n_samples)[:, 0]
        expected = covariance(posterior, 2)
    # the sampling error of an empirical covariance: var(c_ij) = (S_ii S_jj + S_ij²) / n
    diagonal = expected.diagonal()
    error = ((torch.outer(diagonal, diagonal) + expected**2) / n_samples).sqrt()
    assert ((samples.T.cov() - expected).abs() < 5 * error).all()
    assert ((samples.mean(0) - posterior.mean[2]).abs() < 5 * (diagonal / n_samples).sqrt()).all()


def test_joint_samples_covary_across_rows():
    posterior = make(LowRankPosterior, joint=True)
    with torch.no_grad():
        samples = posterior.sample(torch.tensor([0, 3]), 100_000)
    factor = posterior.factor.view(4, SMALL.size, SMALL.rank)
    expected = factor[0] @ factor[3].T
    centred = samples - samples.mean(0)
    found = centred[:, 0].T @ centred[:, 1] / len(samples)
    torch.testing.assert_close(found, expected, rtol=0, atol=0.06)
    assert expected.abs().max() > 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_sparse_and_touch_only_the_rows_used(kind):
    posterior = make(kind)
    (posterior.sample(ROWS, 2).sum() + posterior.kl(ROWS).sum()).backward()
    for parameter in posterior.parameters():
        assert parameter.grad.is_sparse
        assert set(parameter.grad.coalesce().indices().flatten().tolist()) == set(ROWS.tolist())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_reset_to_the_prior_have_no_kl(kind):
    posterior = make(kind)
    posterior.reset_to_prior(torch.tensor([1]))
    assert posterior.kl(torch.tensor([1])).item() == pytest.approx(0, abs=1e-12)
    assert posterior.kl(torch.tensor([0])).item() > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_float32_survives_autocast_and_tiny_variances(kind):
    torch.manual_seed(0)
    posterior = kind(3, SMALL)
    with torch.no_grad():
        posterior.rho.fill_(-200.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        samples, kl = posterior.sample(ROWS[:2], 5), posterior.kl(ROWS[:2])
    assert samples.dtype == kl.dtype == torch.float32
    assert torch.isfinite(kl).all()
    assert torch.isfinite(samples).all()
