"""The objective against closed forms: exact evidence, importance sampling, and the sum over all cells and rows."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal

from crossfill.config import LatentConfig, ObjectiveConfig
from crossfill.grid.cells import Cell
from crossfill.methods.factorized.posteriors import VARIANCE_FLOOR, LowRankPosterior
from crossfill.model import Divergence
from crossfill.prediction.predict import predict
from crossfill.training.elbo import KlWeight, log_likelihood, negative_elbo, schedule, total_divergence
from crossfill.training.loop import Trainer
from tests.scenarios import SEEN, SMALL, labelled, small_model


def exact_linear_gaussian(n: int = 7, size: int = 3, noise: float = 0.5):
    """y = X l + ε: a posterior set to the exact one, its log-likelihood, and the exact log evidence."""
    torch.manual_seed(0)
    x, y = torch.randn(n, size).double(), torch.randn(n).double()
    covariance = torch.linalg.inv(torch.eye(size).double() + x.T @ x / noise)
    posterior = LowRankPosterior(1, LatentConfig(size=size, rank=size)).double()
    with torch.no_grad():
        diagonal = torch.linalg.eigvalsh(covariance)[0] / 2
        posterior.mean[0] = covariance @ x.T @ y / noise
        posterior.rho.fill_(math.log(math.expm1(float(diagonal) - VARIANCE_FLOOR)))
        factor = torch.linalg.cholesky(covariance - diagonal * torch.eye(size).double())
        posterior.factor[0] = factor.flatten()

    def likelihood(latent: torch.Tensor) -> torch.Tensor:
        residual = y - latent @ x.T
        return -0.5 * (residual**2).sum(-1) / noise - 0.5 * n * math.log(2 * math.pi * noise)

    evidence = MultivariateNormal(torch.zeros(n).double(), x @ x.T + noise * torch.eye(n).double()).log_prob(y)
    return posterior, covariance, likelihood, evidence, n


def test_elbo_is_the_exact_evidence_at_the_exact_posterior():
    posterior, covariance, likelihood, evidence, n = exact_linear_gaussian()
    # 2h points with the posterior's exact mean and covariance: the mean of a quadratic over them is exact
    root = torch.linalg.cholesky(covariance) * math.sqrt(len(covariance))
    points = torch.cat([posterior.mean + root.T, posterior.mean - root.T])
    divergence = total_divergence([Divergence(posterior.kl(torch.tensor([0])).sum(), "language")], lambda _: 1.0)
    objective = negative_elbo(likelihood(points), divergence, words=n, kl_weight=1 / n)
    assert -objective.loss.item() * n == pytest.approx(evidence.item(), abs=1e-10)


def test_sampled_elbo_meets_the_evidence_only_at_the_exact_posterior():
    posterior, _, likelihood, evidence, n = exact_linear_gaussian()
    row = torch.tensor([0])

    def elbo() -> tuple[float, float]:
        values = likelihood(posterior.sample(row, 100_000)[:, 0])
        objective = negative_elbo(values, posterior.kl(row).sum(), words=n, kl_weight=1 / n)
        return -objective.loss.item() * n, 4 * values.std().item() / math.sqrt(len(values))

    with torch.no_grad():
        value, error = elbo()
        assert abs(value - evidence.item()) < error
        posterior.mean += 0.3
        value, error = elbo()
        assert value + error < evidence.item()


def test_elbo_lies_below_an_importance_sampled_evidence():
    cell = Cell("pos", "aaa")
    model = small_model("pf-lr", "generator.initial_variance=0.1")
    data = labelled(cell, [3, 2])
    n_samples = 20_000
    with torch.no_grad():
        ((head, divergences),) = model.heads.training_draw([cell], n_samples)
        likelihoods = log_likelihood(head.log_probabilities(data.inputs.features), data.labels)
        elbo = -negative_elbo(likelihoods, total_divergence(divergences, lambda _: 1.0), 1.0, 1.0).loss
        # log E_prior p(y | θ): the prior is the proposal, as p(θ | t, l) is tied to q(θ | t, l)
        model.heads.tasks.reset_to_prior(torch.arange(2))
        model.heads.languages.reset_to_prior(torch.arange(3))
        ((head, _),) = model.heads.training_draw([cell], n_samples)
        under_prior = log_likelihood(head.log_probabilities(data.inputs.features), data.labels)
        log_evidence = under_prior.logsumexp(0) - math.log(n_samples)
    error = 4 * likelihoods.std() / math.sqrt(n_samples)
    assert elbo + error < log_evidence
    assert log_evidence < 0


def test_words_without_a_label_leave_the_objective():
    """The likelihood is a naive loop over labelled words, and words are counted with a label only."""
    cell = Cell("pos", "aaa")
    model, data = small_model("pf-lr"), labelled(cell, [3, 4, 2])
    some = replace(data, labels=torch.where(torch.arange(9) % 3 == 1, -1, data.labels))
    ((head, _),) = model.heads.training_draw([cell], 2)
    logs = head.log_probabilities(data.inputs.features).detach()
    naive = [sum(float(logs[v, n, y]) for n, y in enumerate(some.labels.tolist()) if y >= 0) for v in range(2)]
    torch.testing.assert_close(log_likelihood(logs, some.labels), torch.tensor(naive, dtype=torch.float64))
    trainer = Trainer(model, {cell: some}, {cell: some}, SMALL)
    assert trainer.sampler.n_words == 6
    assert trainer.sampler.draw(0)[0].expected_words == pytest.approx(4 * 6 / 3)
    probabilities = predict(model, data.inputs, cell, 0).probabilities.numpy()
    measured = trainer.validate()
    nlls = [-math.log(probabilities[n, y]) for n, y in enumerate(some.labels.tolist()) if y >= 0]
    assert measured.nll["pos"] == pytest.approx(float(np.mean(nlls)))
    right = [probabilities[n].argmax() == y for n, y in enumerate(some.labels.tolist()) if y >= 0]
    assert measured.scores["pos"] == pytest.approx(float(np.mean(right)))


@pytest.mark.parametrize("prior", ["tied", "untied"])
def test_steps_estimate_the_whole_objective_without_bias(prior):
    """Over all cells and batches, by their probabilities, the parts of a step sum to the ELBO's."""
    config = SMALL.change(
        {"objective.cell_sampling": "proportional", "training.batch_sentences": 1, "objective.head_prior": prior}
    )
    model = small_model("pf-d", f"objective.head_prior={prior}")
    data = {
        cell: labelled(cell, lengths, i)
        for i, (cell, lengths) in enumerate(zip(sorted(SEEN), ([3, 1], [2, 5, 4], [6]), strict=True))
    }
    trainer = Trainer(model, data, {}, config)
    sampler = trainer.sampler
    n_words = sum(len(d.labels) for d in data.values())
    expected_nll = expected_kl = 0.0
    whole_nll = 0.0
    for cell, probability in zip(sampler.cells, sampler.probabilities, strict=True):
        lengths = data[cell].inputs.lengths
        for sentence in range(len(lengths)):
            torch.manual_seed(hash_of(cell))  # the same draw of the head for all sentences of a cell
            draw = sampler.draw(0)[0]._replace(
                cell=cell, sentences=np.array([sentence]), expected_words=float(lengths.double().mean())
            )
            (objective,) = trainer.objectives([draw])
            expected_nll += probability / len(lengths) * objective.nll.item()
            expected_kl += probability / len(lengths) * objective.kl.item()
        torch.manual_seed(hash_of(cell))
        ((head, _),) = model.heads.training_draw([cell], config.objective.samples)
        log_probabilities = head.log_probabilities(data[cell].inputs.features)
        whole_nll -= log_likelihood(log_probabilities, data[cell].labels).mean().item()
    whole_kl = model.heads.tasks.kl(torch.tensor([0, 1])).sum() + model.heads.languages.kl(torch.arange(3)).sum()
    if prior == "untied":
        for cell in SEEN:
            torch.manual_seed(hash_of(cell))
            whole_kl = whole_kl + model.heads.training_draw([cell], config.objective.samples)[0].divergences[-1].value
    assert expected_nll == pytest.approx(whole_nll / n_words, rel=1e-9)
    assert expected_kl == pytest.approx(whole_kl.item(), rel=1e-9)


def hash_of(cell: Cell) -> int:
    return sorted(SEEN).index(cell)


def test_a_joint_covariance_counts_once_whatever_is_drawn():
    model = small_model("pf-lr", "latents.joint=true")
    for cell in SEEN:
        divergences = model.heads.training_draw([cell], 2)[0].divergences
        assert [d.scope for d in divergences] == ["all", "all"]
        total = total_divergence(divergences, lambda unit: {"all": 1.0}[unit])
        whole = model.heads.tasks.kl(torch.tensor([0])) + model.heads.languages.kl(torch.tensor([0]))
        assert total.item() == pytest.approx(whole.item())


def test_kl_weight_counts_words_or_batches():
    words = KlWeight(ObjectiveConfig(), n_words=500, n_batches=20, n_steps=100)
    published = KlWeight(ObjectiveConfig(kl_scale="published"), n_words=500, n_batches=20, n_steps=100)
    assert words(3) == 1 / 500
    assert published(3) == 1 / 20


def test_schedules():
    def weights(kind, n_steps):
        return [schedule(kind, step, n_steps, 10) for step in range(n_steps)]

    assert set(weights("constant", 30)) == {1.0}
    assert weights("linear", 11) == pytest.approx([i / 10 for i in range(11)])
    logistic = weights("logistic", 101)
    assert logistic[50] == pytest.approx(0.5)
    assert logistic[0] < 0.01 < 0.99 < logistic[-1]
    assert all(a < b for a, b in itertools.pairwise(logistic))
    epoch = weights("blundell", 10)
    assert sum(epoch) == pytest.approx(10)
    assert epoch[1] == pytest.approx(epoch[0] / 2)
    assert weights("blundell", 20)[10:] == epoch
