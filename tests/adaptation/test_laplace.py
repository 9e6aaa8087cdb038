"""The posterior of a head, against closed forms, quadrature and dense matrices."""

import math

import pytest
import torch
from torch import Tensor

from crossfill.adaptation.design import DesignMatrix
from crossfill.adaptation.gaussian import Curvature, HeadPosterior, HeadPrior
from crossfill.adaptation.laplace import Categorical, Likelihood, PosteriorProblem

N_LABELS, N_FEATURES = 3, 4
RNG = torch.Generator().manual_seed(0)


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=RNG)


class Gaussian(Likelihood):
    """y ~ N(s, σ² I): the stand-in in which everything has a closed form."""

    def __init__(self, targets: Tensor, variance: float) -> None:
        self.targets, self.variance = targets, variance

    def loss(self, logits: Tensor) -> Tensor:
        apart = (logits - self.targets.to(logits)) ** 2 / self.variance
        return 0.5 * (apart + math.log(2 * math.pi * self.variance)).sum()

    def gradient(self, logits: Tensor) -> Tensor:
        return (logits - self.targets.to(logits)) / self.variance

    def hessian_product(self, logits: Tensor, direction: Tensor) -> Tensor:
        return direction / self.variance

    def hessians(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        n, labels = logits.shape
        return n * torch.eye(labels, dtype=logits.dtype) / self.variance, logits.new_full((n,), labels / self.variance)


def some_prior() -> HeadPrior:
    return HeadPrior(noise(N_LABELS, N_FEATURES), noise(N_FEATURES) ** 2 + 0.1)


def dense(prior: HeadPrior) -> Tensor:
    """S as a matrix over labels × features."""
    return prior.variance.repeat(N_LABELS).diag()


def covariance(posterior: HeadPosterior) -> Tensor:
    """The covariance as a matrix, from its action on unit vectors."""
    units = torch.eye(posterior.mean.numel(), dtype=torch.float64).unflatten(1, posterior.mean.shape)
    return (posterior.scale * posterior.curvature.power(units * posterior.scale, -1.0)).flatten(1)


@pytest.mark.parametrize("n_words", [1, 3, 12])
def test_posterior_equals_the_closed_form_in_a_linear_gaussian_model(n_words: int) -> None:
    prior, features, targets, variance = some_prior(), noise(n_words, N_FEATURES), noise(n_words, N_LABELS), 0.3
    posterior = PosteriorProblem(prior, Gaussian(targets, variance), DesignMatrix.plain(features)).posterior()

    s, design = dense(prior), torch.kron(torch.eye(N_LABELS, dtype=torch.float64), features)
    precision = torch.linalg.inv(s) + design.T @ design / variance
    centre = prior.mean.flatten()
    observed = targets.T.flatten()
    mean = centre + torch.linalg.solve(precision, design.T @ (observed - design @ centre)) / variance
    torch.testing.assert_close(posterior.mean.flatten(), mean, rtol=1e-5, atol=2e-5)
    torch.testing.assert_close(covariance(posterior), torch.linalg.inv(precision), rtol=1e-8, atol=1e-8)


def without(problem: PosteriorProblem, group: Tensor) -> Tensor:
    """The logits of some words at the mode of the posterior without them."""
    others = torch.ones(len(problem.matrix), dtype=torch.bool)
    others[group] = False
    rest = others.nonzero().squeeze(1)
    given = problem.likelihood
    assert isinstance(given, Gaussian | Categorical)
    few = given.targets[rest]
    likelihood = Gaussian(few, given.variance) if isinstance(given, Gaussian) else Categorical(few)
    refitted = PosteriorProblem(problem.prior, likelihood, problem.matrix.take(rest))
    return problem.matrix.take(group).times(refitted.mode.mean)


@pytest.mark.parametrize("sizes", [[7], [1, 1, 1, 1], [2, 5, 3]])
def test_influence_is_the_closed_form_in_a_linear_gaussian_model(sizes: list[int]) -> None:
    """Its objective is quadratic and its curvature a Kronecker product, so that a Newton step arrives."""
    n_words = sum(sizes) + 2
    problem = PosteriorProblem(
        some_prior(), Gaussian(noise(n_words, N_LABELS), 0.3), DesignMatrix.plain(noise(n_words, N_FEATURES))
    )
    *groups, rest = torch.arange(n_words).split([*sizes, 2])
    found = problem.leave_out_logits(groups)
    for group in groups:
        torch.testing.assert_close(found[group], without(problem, group), rtol=0.02, atol=0.05)
    torch.testing.assert_close(found[rest], problem.approximate_mode().logits[rest])


@pytest.mark.parametrize(("labels", "width"), [(17, 3.0), (7, 2.4)])
@pytest.mark.parametrize("n_sentences", [4, 40])
def test_influence_is_near_to_refitting(labels: int, width: float, n_sentences: int) -> None:
    """Sizes of real adaptations: half of the variance of a logit is of cues, most of which are rare."""
    rng = torch.Generator().manual_seed(labels)
    n_words, n_features, n_cues, words = 12 * n_sentences, 64, 1000, 12

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    features = random(n_words, n_features) * (1 + torch.arange(n_features) / 10) ** -0.5
    mean_square = float((features**2).sum(1).mean())
    features[:, -1] = 1.0
    places = (torch.rand(3 * n_words, generator=rng) ** 3 * n_cues).long()
    matrix = DesignMatrix(features, torch.arange(n_words).repeat(3), places, torch.ones(n_cues).double())
    centre = 0.3 * random(labels, n_features)
    centre[0, -1] += 2 if labels == 7 else 0
    prior = HeadPrior.at(centre).widened(width**2 / mean_square, 0.5)
    prior = prior.with_columns(torch.full((n_cues,), 4.0))
    truth = features @ (centre + 0.3 * random(labels, n_features)).T
    gold = torch.multinomial(truth.softmax(-1), 1, generator=rng).squeeze(1)
    problem = PosteriorProblem(prior, Categorical.of(gold, labels), matrix)
    groups = torch.arange(n_words).split(words)[:: n_sentences // 4]
    found, mode, chosen = problem.leave_out_logits(groups), problem.mode.logits, torch.cat(groups)
    moves, exact = found[chosen] - mode[chosen], torch.cat([without(problem, g) for g in groups]) - mode[chosen]
    moves, exact = (one - one.mean(1, keepdim=True) for one in (moves, exact))
    correlation = float(torch.stack([moves.flatten(), exact.flatten()]).corrcoef()[0, 1])
    assert correlation > 0.96
    assert float((moves - exact).norm()) < 0.3 * float(exact.norm())
    assert float((moves - exact).abs().max()) < 0.6 * float(exact.abs().max())
    assert 0.85 < float((moves * exact).sum() / (exact**2).sum()) < 1.05


def test_draws_have_the_covariance_of_the_posterior() -> None:
    found = PosteriorProblem(
        some_prior(), Gaussian(noise(3, N_LABELS), 0.3), DesignMatrix.plain(noise(3, N_FEATURES))
    ).posterior()
    draws = found.sample(200_000, torch.Generator().manual_seed(1)).flatten(1)
    expected = covariance(found)
    torch.testing.assert_close(draws.T.cov(), expected, rtol=0.0, atol=0.02 * float(expected.diagonal().max()))
    torch.testing.assert_close(draws.mean(0), found.mean.flatten(), rtol=0.0, atol=0.02)


def test_mode_has_no_slope_and_no_labels_leave_the_prior() -> None:
    prior, features, labels = some_prior(), noise(9, N_FEATURES), torch.arange(9) % N_LABELS
    theta = (
        PosteriorProblem(prior, Categorical.of(labels, N_LABELS), DesignMatrix.plain(features))
        .mode.mean.clone()
        .requires_grad_()
    )
    apart = (theta - prior.mean).flatten()
    loss = Categorical.of(labels, N_LABELS).loss(features @ theta.T) + 0.5 * apart @ torch.linalg.solve(
        dense(prior), apart
    )
    (slope,) = torch.autograd.grad(loss, theta)
    assert float(slope.abs().max()) < 1e-4
    none = PosteriorProblem(prior, Categorical.of(labels[:0], N_LABELS), DesignMatrix.plain(features[:0])).posterior()
    torch.testing.assert_close(none.mean, prior.mean)
    torch.testing.assert_close(covariance(none), dense(prior))


def test_thousands_of_words_give_the_maximum_likelihood_head() -> None:
    truth, features = noise(N_LABELS, N_FEATURES), noise(20_000, N_FEATURES)
    labels = torch.multinomial((features @ truth.T).softmax(-1), 1, generator=RNG).squeeze(1)
    prior = some_prior()
    found = PosteriorProblem(prior, Categorical.of(labels, N_LABELS), DesignMatrix.plain(features)).posterior()
    theta = torch.zeros_like(truth, requires_grad=True)
    optimiser = torch.optim.LBFGS([theta], max_iter=200, line_search_fn="strong_wolfe", tolerance_change=1e-12)

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = Categorical.of(labels, N_LABELS).loss(features @ theta.T) / len(labels)
        value.backward()
        return value

    optimiser.step(loss)  # pyright: ignore[reportArgumentType]
    apart = found.mean - theta.detach()
    apart -= apart.mean(0)  # the likelihood does not change if all labels move alike
    assert float(apart.abs().max()) < 0.01
    between = torch.eye(N_LABELS, dtype=torch.float64) - 1 / N_LABELS
    between = torch.kron(between, torch.eye(N_FEATURES, dtype=torch.float64))
    assert float((between @ covariance(found)).trace()) < 0.01 * float((between @ dense(prior)).trace())


def test_words_without_a_label_leave_the_likelihood() -> None:
    """Loss, slope, curvature and posterior are those of the words that have a label."""
    prior, features, labels = some_prior(), noise(9, N_FEATURES), torch.tensor([0, -1, 2, -1, 1, 0, -1, 2, 1])
    rows = (labels >= 0).nonzero().squeeze(1)
    some, logits, direction = Categorical.of(labels, N_LABELS), noise(9, N_LABELS), noise(9, N_LABELS)
    others = Categorical.of(labels[rows], N_LABELS)
    expected = torch.nn.functional.cross_entropy(logits, labels, reduction="sum", ignore_index=-1)
    torch.testing.assert_close(some.loss(logits), expected)
    torch.testing.assert_close(some.gradient(logits)[rows], others.gradient(logits[rows]))
    assert not bool(some.gradient(logits)[labels < 0].any())
    assert not bool(some.hessian_product(logits, direction)[labels < 0].any())
    for one, other in zip(some.hessians(logits), others.hessians(logits[rows]), strict=True):
        torch.testing.assert_close(one[rows] if one.dim() == 1 else one, other)
    found = PosteriorProblem(prior, some, DesignMatrix.plain(features)).posterior()
    alone = PosteriorProblem(prior, others, DesignMatrix.plain(features[rows])).posterior()
    torch.testing.assert_close(found.mean, alone.mean)
    torch.testing.assert_close(covariance(found), covariance(alone))


@pytest.mark.parametrize("n_words", [3, 30])
def test_curvature_is_exact_with_two_labels_and_takes_cues_for_independent(n_words: int) -> None:
    logits, places = noise(n_words, 2), torch.tensor([0, 1, 1])
    given, values = noise(n_words, N_FEATURES), noise(2)
    matrix = DesignMatrix(given, torch.tensor([0, 0, 2]), places, values)
    curvature = Curvature.of(matrix, *Categorical.of(torch.zeros(n_words, dtype=torch.long), 2).hessians(logits))
    units = torch.eye(2 * (N_FEATURES + 2), dtype=torch.float64).unflatten(1, (2, N_FEATURES + 2))
    found = (curvature.power(units, 1.0) - units).flatten(1)
    x = torch.cat([given, torch.zeros(n_words, 2, dtype=torch.float64)], 1)
    x[[0, 0, 2], N_FEATURES + places] = values[places]
    p = logits.softmax(-1)
    blocks = torch.diag_embed(p) - p.unsqueeze(2) * p.unsqueeze(1)
    exact = torch.einsum("nab,nc,nd->acbd", blocks, x, x)
    for cue in (N_FEATURES, N_FEATURES + 1):
        others = [i for i in range(N_FEATURES + 2) if i != cue]
        exact[:, cue, :, others] = exact[:, others, :, cue] = 0
    exact = exact.reshape(len(found), -1)
    torch.testing.assert_close(found, exact)
    torch.testing.assert_close(curvature.power(curvature.power(units, -0.5), -0.5), curvature.power(units, -1.0))
