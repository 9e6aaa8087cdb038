"""BEA, Bayesian ensemble aggregation: the heads of all seen languages vote, weighted by estimated reliability."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

TOLERANCE = 1e-3
MOST_ITERATIONS = 200


def majority(votes: Int[Tensor, "voters words"], n_labels: int) -> Float[Tensor, "words labels"]:
    """Put all probability on the label with the most votes, shared equally among ties."""
    tallies = torch.zeros(votes.shape[1], n_labels, dtype=torch.float64, device=votes.device)
    tallies.scatter_add_(1, votes.T, torch.ones_like(votes.T, dtype=torch.float64))
    winners = (tallies == tallies.amax(1, keepdim=True)).double()
    return winners / winners.sum(1, keepdim=True)


def bea(votes: Int[Tensor, "voters words"], n_labels: int) -> Float[Tensor, "words labels"]:
    """Compute the posterior q(z) of the true labels; see `aggregate`."""
    return aggregate(votes, n_labels)[0]


def aggregate(
    votes: Int[Tensor, "voters words"],
    n_labels: int,
    tolerance: float = TOLERANCE,
    most_iterations: int = MOST_ITERATIONS,
) -> tuple[Float[Tensor, "words labels"], Float[Tensor, "voters labels labels"], int]:
    """Variational Bayes over true labels z, their frequencies π and each voter's confusion matrix V.

        q(zᵢ = k) ∝ exp(E ln π_k + Σₛ E ln V⁽ˢ⁾[k, yᵢₛ]),   π and every row of every V ~ Dirichlet(1)

    Starts from the majority vote and stops when no q(zᵢ = k) changes by more than `tolerance`. Returns q(z), the
    posterior mean of each voter's confusion matrix (rows: true label), and the number of iterations. Words with the
    same votes have the same q, so each pattern of votes is computed once.
    """
    n_voters = len(votes)
    pattern_of = _patterns(votes, n_labels)
    repeats = pattern_of.bincount()
    first = torch.empty_like(repeats).scatter_(0, pattern_of, torch.arange(votes.shape[1], device=votes.device))
    votes, weights = votes[:, first], repeats.double().unsqueeze(1)
    offsets = torch.arange(n_voters, device=votes.device).unsqueeze(1) * n_labels
    columns = (votes + offsets).T.contiguous()  # patterns × voters: index of each (voter, label) pair
    q = majority(votes, n_labels)
    counts = _count(columns, weights * q, n_voters * n_labels)
    iterations = 0
    while iterations < most_iterations and len(q):
        iterations += 1
        frequencies = (weights * q).sum(0) + 1
        confusion = counts.unflatten(0, (n_voters, n_labels)) + 1  # voters × voted label × true label
        log_frequencies = frequencies.digamma() - frequencies.sum().digamma()
        log_confusion = confusion.digamma() - confusion.sum(1, keepdim=True).digamma()
        scores = functional.embedding_bag(columns, log_confusion.flatten(0, 1), mode="sum")
        moved = (log_frequencies + scores).softmax(-1)
        change = float((moved - q).abs().max())
        q = moved
        counts = _count(columns, weights * q, n_voters * n_labels)
        if change <= tolerance:
            break
    confusion = counts.unflatten(0, (n_voters, n_labels)).transpose(1, 2) + 1
    return q[pattern_of], confusion / confusion.sum(-1, keepdim=True), iterations


def _patterns(votes: Int[Tensor, "voters words"], n_labels: int) -> Int[Tensor, "words"]:
    """Return the index, from 0, of each word's pattern of votes; words with the same votes share an index.

    A word's votes are read as the digits of a number in base `n_labels`, renumbered before it exceeds 62 bits.
    """
    code = votes.new_zeros(votes.shape[1])
    limit = 2**62 // (n_labels * max(1, votes.shape[1]))
    size = 1  # codes are below this
    for row in votes:
        if size > limit:
            code = code.unique(return_inverse=True)[1]
            size = votes.shape[1]
        code, size = code * n_labels + row, size * n_labels
    return code.unique(return_inverse=True)[1]


def _count(
    columns: Int[Tensor, "words voters"], q: Float[Tensor, "words labels"], n_columns: int
) -> Float[Tensor, "columns labels"]:
    """Sum Σᵢ q(zᵢ = k) [word i has this (voter, label) pair], for every pair and every k."""
    pairs, n_voters = columns.flatten(), columns.shape[1]
    counts = [pairs.bincount(row.repeat_interleave(n_voters), n_columns) for row in q.unbind(1)]
    return torch.stack(counts, dim=1).to(q.dtype)
