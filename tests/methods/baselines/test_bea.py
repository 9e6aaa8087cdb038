"""BEA against a naive loop, and on simulated voters of whom some are random and some adversarial."""

import numpy as np
import pytest
import torch
from scipy.special import digamma

from crossfill.methods.baselines.bea import _patterns, aggregate, bea, majority


def naive(votes: np.ndarray, n_labels: int, iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """The same updates, one word, voter and label at a time."""
    n_voters, n_words = votes.shape
    q = np.zeros((n_words, n_labels))
    for i in range(n_words):
        tally = [sum(votes[s, i] == k for s in range(n_voters)) for k in range(n_labels)]
        winners = [k for k in range(n_labels) if tally[k] == max(tally)]
        q[i, winners] = 1 / len(winners)
    for _ in range(iterations):
        alpha, beta = np.ones(n_labels), np.ones((n_voters, n_labels, n_labels))
        for i in range(n_words):
            alpha += q[i]
            for s in range(n_voters):
                for k in range(n_labels):
                    beta[s, k, votes[s, i]] += q[i, k]
        new = np.zeros_like(q)
        for i in range(n_words):
            for k in range(n_labels):
                value = digamma(alpha[k]) - digamma(alpha.sum())
                for s in range(n_voters):
                    value += digamma(beta[s, k, votes[s, i]]) - digamma(beta[s, k].sum())
                new[i, k] = value
            new[i] = np.exp(new[i] - new[i].max())
            new[i] /= new[i].sum()
        q = new
    beta = np.ones((n_voters, n_labels, n_labels))
    for i in range(n_words):
        for s in range(n_voters):
            beta[s, :, votes[s, i]] += q[i]
    return q, beta / beta.sum(-1, keepdims=True)


def simulate(n_words: int, n_labels: int, seed: int, honest: int = 7, chance: int = 3, adversarial: int = 3):
    """True labels, votes and confusion matrices: honest voters of several kinds, random ones, and ones that permute."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_labels, size=n_words, p=rng.dirichlet(np.full(n_labels, 5.0)))
    matrices = []
    for i in range(honest):
        right = 0.55 + 0.05 * i
        rest = rng.dirichlet(np.ones(n_labels), size=n_labels)
        matrices.append(right * np.eye(n_labels) + (1 - right) * rest)
    matrices += [np.tile(rng.dirichlet(np.ones(n_labels)), (n_labels, 1)) for _ in range(chance)]
    wrong = np.roll(np.eye(n_labels), 1, axis=1)
    matrices += [0.8 * wrong + 0.2 / n_labels for _ in range(adversarial)]
    cumulative = np.stack(matrices).cumsum(-1)[:, truth]  # voters × words × labels
    votes = (rng.random((len(matrices), n_words, 1)) > cumulative).sum(-1).clip(max=n_labels - 1)
    return truth, votes, np.stack(matrices)


@pytest.mark.parametrize(("n_labels", "seed"), [(3, 0), (5, 1)])
def test_it_equals_a_naive_loop_at_the_same_iteration_count(n_labels: int, seed: int):
    _, votes, _ = simulate(120, n_labels, seed)
    for iterations in (1, 4):
        q, confusion, done = aggregate(torch.from_numpy(votes), n_labels, tolerance=0.0, most_iterations=iterations)
        expected_q, expected_confusion = naive(votes, n_labels, iterations)
        assert done == iterations
        np.testing.assert_allclose(q.numpy(), expected_q, atol=1e-9)
        np.testing.assert_allclose(confusion.numpy(), expected_confusion, atol=1e-9)


def test_true_labels_and_confusions_are_recovered_where_an_honest_majority_votes():
    truth, votes, matrices = simulate(4000, 6, seed=2)
    q, confusion, _ = aggregate(torch.from_numpy(votes), 6)
    by_bea = (q.argmax(1).numpy() == truth).mean()
    by_majority = (majority(torch.from_numpy(votes), 6).argmax(1).numpy() == truth).mean()
    assert by_bea > 0.97
    assert by_bea > by_majority + 0.03
    assert np.abs(confusion.numpy() - matrices).max() < 0.1
    assert np.abs(confusion.numpy() - matrices).mean() < 0.02


def test_it_stops_when_nothing_moves():
    _, votes, _ = simulate(500, 4, seed=3)
    q, _, done = aggregate(torch.from_numpy(votes), 4, tolerance=1e-3)
    again, _, _ = aggregate(torch.from_numpy(votes), 4, tolerance=0.0, most_iterations=done - 1)
    before, _, _ = aggregate(torch.from_numpy(votes), 4, tolerance=0.0, most_iterations=done - 2)
    assert (q - again).abs().max() <= 1e-3
    assert (again - before).abs().max() > 1e-3


def test_majority_shares_ties_and_no_words_are_no_problem():
    votes = torch.tensor([[0, 1, 2], [0, 2, 2], [1, 1, 0], [1, 1, 2]])
    expected = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    torch.testing.assert_close(majority(votes, 3), torch.tensor(expected, dtype=torch.float64))
    assert bea(torch.zeros(4, 0, dtype=torch.long), 3).shape == (0, 3)


def test_words_with_the_same_votes_are_one_pattern():
    rng = np.random.default_rng(5)
    votes = rng.integers(5, size=(40, 30))[:, rng.integers(30, size=400)]  # 5 ** 40 does not fit into 64 bits
    found = _patterns(torch.from_numpy(votes), 5).numpy()
    _, expected = np.unique(votes, axis=1, return_inverse=True)
    assert len(set(zip(found, expected.ravel(), strict=True))) == len(set(found)) == len(set(expected.ravel()))
    assert sorted(set(found)) == list(range(len(set(found))))
