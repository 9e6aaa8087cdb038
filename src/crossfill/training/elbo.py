"""The objective, the negative ELBO per training word, and the draws of cells and sentences that estimate it.

    L = −(1/V) Σᵥ Σₓ log p(y | x, θ⁽ᵛ⁾) / words  +  w(step) · [Σ KL(q(t) ‖ p) + Σ KL(q(l) ‖ p) + Σ KL(q(θ) ‖ p)] / N

A draw is of one cell. Only the KL terms of that cell's rows are computed, each divided by the probability of drawing
its row, so that the expectation is the sum over all rows.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.config import KlSchedule, ObjectiveConfig, TrainingConfig
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.model import Divergence, Scope

LOGISTIC_STEEPNESS = 10.0


class Draw(NamedTuple):
    """A mini-batch: some sentences of one cell."""

    cell: Cell
    sentences: np.ndarray
    expected_words: float
    """Mean number of labelled words in such a batch; dividing by it, not by their number, keeps the loss unbiased."""


class CellSize(NamedTuple):
    """Numbers of training sentences and labelled words of a seen cell."""

    sentences: int
    words: int


class CellSampler:
    """Draws a cell, uniformly or in proportion to its words, then its next sentences in a shuffled order.

    A draw depends only on the seed, the step and how often each cell was drawn, so `drawn` is the only state.
    """

    def __init__(
        self, sizes: Mapping[Cell, CellSize], config: TrainingConfig, scheme: Literal["uniform", "proportional"]
    ) -> None:
        empty = [str(cell) for cell, size in sizes.items() if size.words == 0]
        if empty or not sizes:
            got = f"none in {', '.join(empty)}" if empty else "no seen cell"
            raise DataError(f"expected training words in every seen cell, got {got}; leave such cells unseen")
        self.cells, self.sizes, self.config = sorted(sizes), sizes, config
        weights = np.array([1.0 if scheme == "uniform" else sizes[cell].words for cell in self.cells])
        self.probabilities = weights / weights.sum()
        self.drawn = np.zeros(len(self.cells), dtype=np.int64)
        self._cumulative = np.cumsum(self.probabilities)
        self._row_probability: Counter[tuple[Scope, str]] = Counter()
        for cell, probability in zip(self.cells, self.probabilities.tolist(), strict=True):
            for scope in get_args(Scope):
                self._row_probability[scope, _row(scope, cell)] += probability
        self._orders: dict[int, tuple[int, np.ndarray]] = {}

    @property
    def n_words(self) -> int:
        """N, the labelled training words in seen cells."""
        return sum(size.words for size in self.sizes.values())

    @property
    def n_batches(self) -> int:
        """|K|, the mini-batches in one pass over the seen cells."""
        return sum(-(-size.sentences // self.config.batch_sentences) for size in self.sizes.values())

    def draw(self, step: int) -> list[Draw]:
        """Draw the batches of this step: cells are drawn independently, or from one task, drawn beforehand."""
        rng = np.random.default_rng([self.config.seed, step])
        places = rng.random(self.config.cells_per_step)
        if self.config.step_tasks == "one":
            task = self.cells[self._cells_at(rng.random())].task  # cells are sorted by task
            same = [i for i, cell in enumerate(self.cells) if cell.task == task]
            start, end = self._cumulative[same[0] - 1] if same[0] else 0.0, self._cumulative[same[-1]]
            places = start + (end - start) * places
        return [self._draw_from(int(which)) for which in self._cells_at(places)]

    def _cells_at(self, places: Any) -> Any:
        """Find the cells at places between 0 and 1."""
        return np.searchsorted(self._cumulative, places, side="right").clip(max=len(self.cells) - 1)

    def _draw_from(self, which: int) -> Draw:
        cell, size = self.cells[which], self.sizes[self.cells[which]]
        n = self.config.batch_sentences
        places = range(int(self.drawn[which]) * n, (int(self.drawn[which]) + 1) * n)
        self.drawn[which] += 1
        sentences = [int(self._order(which, p // size.sentences)[p % size.sentences]) for p in places]
        return Draw(cell, np.array(sentences), n * size.words / size.sentences)

    def probability(self, scope: Scope, cell: Cell) -> float:
        """Return the probability that a draw has this cell's task, language or both, by scope; 1 for `all`."""
        return self._row_probability[scope, _row(scope, cell)]

    def _order(self, which: int, epoch: int) -> np.ndarray:
        """Return the shuffled order of a cell's sentences in one of its epochs; the latest one is cached."""
        if self._orders.get(which, (-1,))[0] != epoch:
            rng = np.random.default_rng([self.config.seed, which, epoch, 1])
            self._orders[which] = epoch, rng.permutation(self.sizes[self.cells[which]].sentences)
        return self._orders[which][1]


def _row(scope: Scope, cell: Cell) -> str:
    return {"task": cell.task, "language": cell.language, "cell": str(cell), "all": ""}[scope]


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
    """Compute Σ log p(y | x, θ⁽ᵛ⁾) over the words that have a label, for each sample."""
    index = labels.clamp(min=0).expand(len(log_probabilities), -1).unsqueeze(-1)
    return log_probabilities.gather(-1, index).squeeze(-1).masked_fill(labels < 0, 0.0).sum(-1)


def total_divergence(divergences: Sequence[Divergence], probability: Callable[[Scope], float]) -> Float[Tensor, ""]:
    """Estimate the KL over all rows without bias: Σ KL / P(its row is drawn)."""
    zero = torch.zeros(())
    return sum((value / probability(scope) for value, scope in divergences), start=zero)


def negative_elbo(
    log_likelihoods: Float[Tensor, "samples"], divergence: Float[Tensor, ""], words: float, kl_weight: float
) -> Objective:
    """Compute −(1/V) Σᵥ log p(x | θ⁽ᵛ⁾) / words + weight · KL."""
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
    """Return the weight of the KL at a step, relative to the constant schedule.

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
