"""The objective, term by term: the negative ELBO per training word.

    L = −(1/V) Σᵥ Σₓ log p(y | x, θ⁽ᵛ⁾) / words  +  w(step) · [Σ KL(q(t) ‖ p) + Σ KL(q(l) ‖ p) + Σ KL(q(θ) ‖ p)] / N

A draw is of one cell. Only the KL terms of that cell's rows are computed, each divided by the probability of drawing
its row, so that the expectation is the sum over all rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.config import KlSchedule, ObjectiveConfig
from crossfill.model import Divergence, Scope

LOGISTIC_STEEPNESS = 10.0


class Objective(NamedTuple):
    """A step's estimate of the negative ELBO per word, and its parts."""

    loss: Float[Tensor, ""]
    nll: Float[Tensor, ""]
    """Negative log-likelihood per word."""
    kl: Float[Tensor, ""]
    """Estimated KL of all rows together, in nats, before weighting."""


def log_likelihood(
    log_probabilities: Float[Tensor, "samples words labels"], labels: Int[Tensor, "words"]
) -> Float[Tensor, "samples"]:
    """Σ log p(y | x, θ⁽ᵛ⁾) over the words, for each sample."""
    index = labels.expand(len(log_probabilities), -1).unsqueeze(-1)
    return log_probabilities.gather(-1, index).squeeze(-1).sum(-1)


def total_divergence(divergences: Sequence[Divergence], probability: Callable[[Scope], float]) -> Float[Tensor, ""]:
    """Unbiased estimate of the KL over all rows: Σ KL / P(its row is drawn)."""
    zero = torch.zeros(())
    return sum((value / probability(scope) for value, scope in divergences), start=zero)


def negative_elbo(
    log_likelihoods: Float[Tensor, "samples"], divergence: Float[Tensor, ""], words: float, kl_weight: float
) -> Objective:
    """−(1/V) Σᵥ log p(x | θ⁽ᵛ⁾) / words + weight · KL."""
    nll = -log_likelihoods.mean() / words
    divergence = divergence.to(nll.device)
    return Objective(nll + kl_weight * divergence, nll, divergence)


@dataclass(frozen=True)
class KlWeight:
    """The weight of the KL at a step: 1/N per word (or 1/|K| per batch), times the factor and the schedule."""

    config: ObjectiveConfig
    n_words: int
    """N, the number of training words in seen cells."""
    n_batches: int
    """|K|, the number of mini-batches in seen cells."""
    n_steps: int

    def __call__(self, step: int) -> float:
        share = 1 / self.n_words if self.config.kl_scale == "words" else 1 / self.n_batches
        return self.config.kl_factor * share * schedule(self.config.kl_schedule, step, self.n_steps, self.n_batches)


def schedule(kind: KlSchedule, step: int, n_steps: int, n_batches: int) -> float:
    """The weight of the KL at a step, relative to the constant schedule.

    `linear` and `logistic` rise from 0 to 1 over training. `blundell` puts half of an epoch's KL on its first batch,
    half of the rest on the second, and so on (2^(M−i) / (2^M − 1) of it on batch i of M), with a mean weight of 1.
    """
    progress = step / max(1, n_steps - 1)
    match kind:
        case "constant":
            return 1.0
        case "linear":
            return progress
        case "logistic":
            return 1 / (1 + math.exp(-LOGISTIC_STEEPNESS * (progress - 0.5)))
        case "blundell":
            return n_batches * 0.5 ** (step % n_batches + 1) / (1 - 0.5**n_batches)
