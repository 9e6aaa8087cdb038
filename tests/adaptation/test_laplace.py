"""The posterior of a head, against closed forms, quadrature and dense matrices."""

import math

import pytest
import torch
from torch import Tensor

from crossfill.adaptation.design import DesignMatrix
from crossfill.adaptation.gaussian import Curvature, HeadPosterior, HeadPrior
from crossfill.adaptation.laplace import Categorical, Likelihood, PosteriorProblem, laplace
from crossfill.model import Head

N_LABELS, N_FEATURES, RANK = 3, 4, 2
RNG = torch.Generator().manual_seed(0)


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=RNG)


class Gaussian(Likelihood):
    """y ~ N(s, σ² I): the stand-in in which everything has a closed form."""

    def __init__(self, targets: Tensor, variance: float) -> None:
        self.targets, self.variance = targets, variance

    def take(self, words: Tensor) -> "Gaussian":
        return Gaussian(self.targets[words], self.variance)

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
    return HeadPrior(noise(N_LABELS, N_FEATURES), noise(RANK, N_LABELS, N_FEATURES), noise(N_FEATURES) ** 2 + 0.1)


def dense(prior: HeadPrior) -> Tensor:
    """S as a matrix over labels × features."""
    flat = prior.factor.flatten(1)
    return flat.T @ flat + prior.variance.repeat(N_LABELS).diag()


def covariance(posterior: HeadPosterior) -> Tensor:
    """P⁻¹ + B Bᵀ as a matrix, from its action on unit vectors."""
    units = torch.eye(posterior.mean.numel(), dtype=torch.float64).unflatten(1, posterior.mean.shape)
    own = posterior.scale * posterior.curvature.power(units * posterior.scale, -1.0)
    flat = posterior.factor.flatten(1)
    return own.flatten(1) + flat.T @ flat


@pytest.mark.parametrize("n_words", [1, 3, 12])
def test_posterior_and_evidence_equal_the_closed_form_in_a_linear_gaussian_model(n_words: int) -> None:
    prior, features, targets, variance = some_prior(), noise(n_words, N_FEATURES), noise(n_words, N_LABELS), 0.3
    found = laplace(PosteriorProblem(prior, Gaussian(targets, variance), DesignMatrix.plain(features)))

    s, design = dense(prior), torch.kron(torch.eye(N_LABELS, dtype=torch.float64), features)
    precision = torch.linalg.inv(s) + design.T @ design / variance
    centre = prior.mean.flatten()
    observed = targets.T.flatten()
    mean = centre + torch.linalg.solve(precision, design.T @ (observed - design @ centre)) / variance
    marginal = torch.distributions.MultivariateNormal(
        design @ centre, design @ s @ design.T + variance * torch.eye(len(observed), dtype=torch.float64)
    )
    torch.testing.assert_close(found.posterior.mean.flatten(), mean, rtol=1e-5, atol=2e-5)
    torch.testing.assert_close(covariance(found.posterior), torch.linalg.inv(precision), rtol=1e-8, atol=1e-8)
    assert found.evidence == pytest.approx(float(marginal.log_prob(observed)), abs=1e-6)


def without(problem: PosteriorProblem, group: Tensor) -> Tensor:
    """The logits of some words at the mode of the posterior without them."""
    others = torch.ones(len(problem.matrix), dtype=torch.bool)
    others[group] = False
    rest = others.nonzero().squeeze(1)
    refitted = PosteriorProblem(problem.prior, problem.likelihood.take(rest), problem.matrix.take(rest))
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
        torch.testing.assert_close(found[group], without(problem, group), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(found[rest], problem.mode.logits[rest])


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
    centre, factor = 0.3 * random(labels, n_features), 0.05 * random(8, labels, n_features)
    centre[0, -1] += 2 if labels == 7 else 0
    prior = HeadPrior(centre, factor, torch.zeros(n_features).double()).widened(width**2 / mean_square, 0.5)
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
    found = laplace(
        PosteriorProblem(some_prior(), Gaussian(noise(3, N_LABELS), 0.3), DesignMatrix.plain(noise(3, N_FEATURES)))
    ).posterior
    draws = found.sample(200_000, torch.Generator().manual_seed(1)).flatten(1)
    expected = covariance(found)
    torch.testing.assert_close(draws.T.cov(), expected, rtol=0.0, atol=0.02 * float(expected.diagonal().max()))
    torch.testing.assert_close(draws.mean(0), found.mean.flatten(), rtol=0.0, atol=0.02)


@pytest.mark.parametrize("between", [0.05, 0.5])
def test_evidence_is_close_to_quadrature(between: float) -> None:
    """Two labels, one feature and no bias: p(y | X) is an integral over the difference of the two weights."""
    features, labels = torch.tensor([[0.5], [-1.0], [1.5], [0.8]], dtype=torch.float64), torch.tensor([0, 1, 0, 1])
    prior = HeadPrior(
        torch.tensor([[0.4], [-0.1]], dtype=torch.float64), torch.zeros(0, 2, 1).double(), torch.zeros(1).double()
    )
    found = laplace(
        PosteriorProblem(prior.widened(between), Categorical.of(labels, 2), DesignMatrix.plain(features))
    ).evidence

    gap = torch.linspace(-8, 8, 20001, dtype=torch.float64) * (2 * between) ** 0.5 + 0.5
    weight = torch.exp(-((gap - 0.5) ** 2) / (4 * between)) / (4 * math.pi * between) ** 0.5
    signs = 1 - 2 * labels.double()
    likelihood = torch.sigmoid(gap.unsqueeze(1) * features[:, 0] * signs).prod(1)
    exact = float((weight * likelihood).sum() * (gap[1] - gap[0]))
    assert found == pytest.approx(math.log(exact), abs=0.02)


def test_mode_has_no_slope_and_no_labels_leave_the_prior() -> None:
    prior, features, labels = some_prior(), noise(9, N_FEATURES), torch.arange(9) % N_LABELS
    theta = (
        laplace(PosteriorProblem(prior, Categorical.of(labels, N_LABELS), DesignMatrix.plain(features)))
        .posterior.mean.clone()
        .requires_grad_()
    )
    apart = (theta - prior.mean).flatten()
    loss = Categorical.of(labels, N_LABELS).loss(features @ theta.T) + 0.5 * apart @ torch.linalg.solve(
        dense(prior), apart
    )
    (slope,) = torch.autograd.grad(loss, theta)
    assert float(slope.abs().max()) < 1e-4
    nothing = laplace(PosteriorProblem(prior, Categorical.of(labels[:0], N_LABELS), DesignMatrix.plain(features[:0])))
    torch.testing.assert_close(nothing.posterior.mean, prior.mean)
    torch.testing.assert_close(covariance(nothing.posterior), dense(prior))
    assert nothing.evidence == pytest.approx(0.0, abs=1e-9)


def test_thousands_of_words_give_the_maximum_likelihood_head() -> None:
    truth, features = noise(N_LABELS, N_FEATURES), noise(20_000, N_FEATURES)
    labels = torch.multinomial((features @ truth.T).softmax(-1), 1, generator=RNG).squeeze(1)
    found = laplace(
        PosteriorProblem(some_prior(), Categorical.of(labels, N_LABELS), DesignMatrix.plain(features))
    ).posterior
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
    assert float(covariance(found).diagonal().sum()) < float(dense(some_prior()).diagonal().sum()) / 2


def test_words_without_a_label_leave_the_likelihood() -> None:
    """Loss, slope, curvature, posterior and evidence are those of the words that have a label."""
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
    found = laplace(PosteriorProblem(prior, some, DesignMatrix.plain(features)))
    alone = laplace(PosteriorProblem(prior, others, DesignMatrix.plain(features[rows])))
    torch.testing.assert_close(found.posterior.mean, alone.posterior.mean)
    torch.testing.assert_close(covariance(found.posterior), covariance(alone.posterior))
    assert found.evidence == pytest.approx(alone.evidence)


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
    assert float(curvature.log_det()) == pytest.approx(float((torch.eye(len(exact)) + exact).logdet()))
    torch.testing.assert_close(curvature.power(curvature.power(units, -0.5), -0.5), curvature.power(units, -1.0))


def test_prior_has_the_covariance_of_the_draws_it_is_made_from() -> None:
    """A few directions and independent noise: both are recovered, and noise is not taken for a direction."""
    labels, features, n_draws = 4, 60, 64
    direction, scale = noise(1, labels, features), 0.3
    plug_in = Head(noise(1, labels, features))
    draws = Head(plug_in.parameters + noise(n_draws, 1, 1) * direction + scale * noise(n_draws, labels, features))
    prior = HeadPrior.of(plug_in, draws)
    torch.testing.assert_close(prior.mean, plug_in.parameters[0])
    along = torch.einsum("rlf,lf->r", prior.factor, direction[0]).square().sum() / direction.square().sum()
    assert float(along) == pytest.approx(float(direction.square().sum()), rel=0.5)
    total = float(prior.factor.square().sum() + labels * prior.variance.sum())
    assert total == pytest.approx(float(direction.square().sum() + scale**2 * labels * features), rel=0.3)
    assert float(prior.variance.mean()) == pytest.approx(scale**2, rel=0.15)
    assert HeadPrior.of(plug_in).variance.max() == 0
