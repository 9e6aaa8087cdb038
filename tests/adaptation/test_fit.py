"""Words that are predicted without their sentence, and heads that move part of the way."""

from dataclasses import replace

import torch
from torch import Tensor

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import DOUBT, CellVariances, Fit
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.laplace import Categorical, PosteriorProblem
from tests.adaptation.test_cell import word_cues

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


def test_words_left_out_are_predicted_by_heads_that_never_saw_them() -> None:
    """By influence, to the first order: probabilities are close to those of heads that were fitted again."""
    generated, examples = drawn(1.0, seed=20, n_sentences=30)
    fit = Fit.of(generated, examples, CellVariances(1.0, 1.0, (1.0,) * 5))
    again = torch.zeros_like(fit.leave_out_logits)
    for sentence in range(30):
        out = examples.words_of([sentence])
        others = examples.words_of([i for i in range(30) if i != sentence])
        likelihood = Categorical.of(examples.labels[others], len(generated.mean))
        problem = PosteriorProblem(fit.problem.prior, likelihood, fit.problem.matrix.take(others))
        again[out] = fit.problem.matrix.take(out).times(problem.mode.mean)
    seen = fit.problem.matrix.times(fit.approximate_mean()).softmax(-1)
    found, again = fit.leave_out_logits.softmax(-1), again.softmax(-1)
    assert float((found - again).norm()) < 0.25 * float((seen - again).norm())


def test_sentences_without_spans_leave_a_head_where_it_was_generated() -> None:
    generated, examples = drawn(1.0, seed=20, n_sentences=6)
    whole = Fit.of(generated, examples, CellVariances(1.0, 1.0))
    careful = Fit.of(generated, examples, CellVariances(1.0, 1.0, none_label=0))
    n = int((examples.labels != 0).sum())
    start, mode = generated.mean, whole.posterior().mean
    torch.testing.assert_close(careful.posterior().mean, start + n / (n + DOUBT) * (mode - start))
    none = replace(examples, labels=torch.zeros_like(examples.labels))
    unmoved = Fit.of(generated, none, CellVariances(1.0, 1.0, none_label=0))
    torch.testing.assert_close(unmoved.approximate_mean(), start)
    torch.testing.assert_close(unmoved.leave_out_logits, unmoved.problem.matrix.times(start))
