"""Widths by evidence, against closed forms and quadrature; and words that are predicted without their sentence."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from crossfill.adaptation.design import DesignMatrix
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import DOUBT, NOTHING_KNOWN, POINTS, CellVariances, Fit, adjusted, shrunk
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.laplace import Categorical, PosteriorProblem, laplace
from tests.adaptation.test_cell import word_cues
from tests.adaptation.test_laplace import Gaussian

SPREAD = 0.5
FEATURES, LABELS, WORDS = 5, 3, 60


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def drawn(factor: float, seed: int, n_sentences: int = 40) -> tuple[HeadPrior, Examples]:
    """A generated head, and sentences whose labels follow one that lies `factor` standard deviations of τ from it."""
    centre = noise(LABELS, FEATURES + 1, seed=seed)
    features = noise(5 * n_sentences, FEATURES, seed=seed + 1)
    theta = centre + factor * noise(LABELS, FEATURES + 1, seed=seed + 2)
    logits = torch.cat([features, torch.ones(len(features), 1)], 1) @ theta.T
    labels = torch.multinomial(logits.softmax(-1), 1, generator=torch.Generator().manual_seed(seed)).squeeze(1)
    hashes = tuple(f"{i:04}" for i in range(n_sentences))
    return HeadPrior.at(centre), Examples(
        features.float(), word_cues(torch.arange(len(features))), labels, torch.full((n_sentences,), 5), hashes
    )


@pytest.mark.parametrize("truth", [0.2, 1.0, 2.5])
def test_widths_by_evidence_are_those_of_the_closed_form_in_a_linear_gaussian_model(truth: float) -> None:
    """p(y | χ) is N(0, X eᵡτ² Xᵀ + σ² I) for every label; few values of χ do where it is not far from zero."""
    features, variance = noise(12, FEATURES), 0.5
    targets = features @ (truth * noise(LABELS, FEATURES, seed=4)).T + variance**0.5 * noise(12, LABELS, seed=5)

    def exact(chi: float) -> float:
        covariance = math.exp(chi) * features @ features.T + variance * torch.eye(12, dtype=torch.float64)
        marginal = torch.distributions.MultivariateNormal(torch.zeros(12, dtype=torch.float64), covariance)
        return float(marginal.log_prob(targets.T).sum())

    def by_laplace(chi: float) -> float:
        prior = HeadPrior.at(torch.zeros(LABELS, FEATURES, dtype=torch.float64)).widened(math.exp(chi))
        return laplace(
            PosteriorProblem(prior, Gaussian(targets, variance), DesignMatrix.plain(features)), approximate=True
        ).evidence

    few, fine = [point * SPREAD for point in POINTS], torch.linspace(-4, 4, 801).tolist()
    for chi in few:
        assert by_laplace(chi) == pytest.approx(exact(chi), abs=1e-3)
    found = shrunk(few, [by_laplace(chi) for chi in few], SPREAD)
    assert found == pytest.approx(shrunk(few, [exact(chi) for chi in few], SPREAD), abs=1e-3)
    quadrature = shrunk(fine, [exact(chi) for chi in fine], SPREAD)
    assert (found - quadrature) * quadrature < 0.1 * abs(quadrature)  # never farther from the task's width
    if abs(quadrature) < SPREAD:
        assert found == pytest.approx(quadrature, abs=0.1)
    assert shrunk(few, [0.0, 0.0, 0.0], SPREAD) == 0.0


def test_cells_that_lie_far_from_what_is_generated_get_wider_priors() -> None:
    width, found = CellVariances(1.0, 1.0, spread=SPREAD), []
    for factor in (0.1, 3.0):
        generated, examples = drawn(factor, seed=7)
        found.append(adjusted(width, generated, examples, NOTHING_KNOWN).weights)
        same = adjusted(width, generated, examples.take(list(range(len(examples)))[::-1]), NOTHING_KNOWN)
        assert same.weights == pytest.approx(found[-1], rel=1e-4)
    assert math.exp(-2 * SPREAD) < found[0] < 0.8
    assert 1.1 < found[1] < math.exp(2 * SPREAD)
    generated, examples = drawn(3.0, seed=7)
    assert adjusted(CellVariances(1.0, 1.0, spread=0.0), generated, examples, NOTHING_KNOWN).weights == 1.0


def test_words_left_out_are_predicted_almost_as_by_heads_that_never_saw_them() -> None:
    generated, examples = drawn(1.0, seed=20, n_sentences=40)
    fit = Fit.of(generated, examples, CellVariances(1.0, 1.0))
    refitted = torch.zeros_like(fit.leave_out_logits)
    for sentence in range(40):
        out = examples.words_of([sentence])
        others = examples.words_of([i for i in range(40) if i != sentence])
        likelihood = Categorical.of(examples.labels[others], len(generated.mean))
        problem = PosteriorProblem(fit.problem.prior, likelihood, fit.problem.matrix.take(others))
        refitted[out] = fit.problem.matrix.take(out).times(problem.approximate_mode().mean)
    moves = [(logits - fit.problem.mode.logits).flatten() for logits in (fit.leave_out_logits, refitted)]
    assert float(torch.stack(moves).corrcoef()[0, 1]) > 0.9
    assert float((fit.leave_out_logits.softmax(-1) - refitted.softmax(-1)).abs().max()) < 0.1


def test_sentences_without_spans_leave_a_head_where_it_was_generated() -> None:
    generated, examples = drawn(1.0, seed=20, n_sentences=6)
    whole = Fit.of(generated, examples, CellVariances(1.0, 1.0))
    careful = Fit.of(generated, examples, CellVariances(1.0, 1.0, none_label=0))
    n = int((examples.labels != 0).sum())
    start, mode = generated.mean, whole.posterior().posterior.mean
    torch.testing.assert_close(careful.posterior().posterior.mean, start + n / (n + DOUBT) * (mode - start))
    none = replace(examples, labels=torch.zeros_like(examples.labels))
    unmoved = Fit.of(generated, none, CellVariances(1.0, 1.0, none_label=0))
    torch.testing.assert_close(unmoved.approximate_mean(), start)
    torch.testing.assert_close(unmoved.leave_out_logits, unmoved.problem.matrix.times(start))
