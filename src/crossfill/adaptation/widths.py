"""How far the heads of a task's cells lie from what is generated for them: the widths of the prior between cells.

    θ of a cell ~ N(generated θ, covariance of its draws + diag(τ², …, τ², β², ω², …, ω²))

τ² is the variance of a weight, β² that of the bias, ω² that of the effect of a cue that is known by heart, one for
words, one for endings and one for neighbours. They depend on the kind of task alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.words import N_CUES, Cue, kinds
from crossfill.grid.task import TaskKind

SPREAD = 0.3
"""The spread of cells. Chosen on held-out cells (docs/adapt.md)."""


@dataclass(frozen=True)
class Width:
    """Variances between the cells of a task."""

    weights: float
    """τ²."""
    bias: float
    """β²."""
    words: float
    """ω² of words; 0 learns none by heart, likewise for the others."""
    spread: float = SPREAD
    """Standard deviation of the logarithm of a cell's τ² around the task's; 0 keeps the evidence out."""
    endings: float = 0.0
    """ω² of last letters."""
    neighbours: float = 0.0
    """ω² of words beside the word."""

    @property
    def learnt(self) -> tuple[Cue, ...]:
        """The kinds of cues that are learnt by heart."""
        return tuple(cue for cue, variance in zip(Cue, self._of_cues, strict=True) if variance > 0)

    def without_cues(self) -> "Width":
        """The widths of a head that learns nothing by heart."""
        return replace(self, words=0.0, endings=0.0, neighbours=0.0)

    def prior(self, generated: HeadPrior, lexicon: Int[Tensor, "known"]) -> HeadPrior:
        """The prior of a cell's head, with a column for each of the cues that are known by heart."""
        return generated.widened(self.weights, self.bias).with_columns(torch.tensor(self._of_cues)[kinds(lexicon)])

    @property
    def _of_cues(self) -> tuple[float, float, float]:
        return (self.words, self.endings, self.neighbours)


class Moves(NamedTuple):
    """Standard deviations between cells."""

    logit: float
    """Of a logit by its weights."""
    bias: float
    word: float
    """Of the effect of a word; of its endings and of the words beside it, the next."""
    ending: float
    neighbour: float


_MOVES = {
    TaskKind.TAGS: Moves(3.0, 1.5, 3.0, 2.0, 1.5),
    TaskKind.VALUES: Moves(3.0, 0.05, 4.0, 2.0, 1.5),
    TaskKind.SPANS: Moves(2.4, 0.05, 2.0, 0.5, 1.5),
}
"""By kind of task. Those of tags and spans were chosen on held-out cells (docs/adapt.md); values have the bias of spans
and cues of tags."""
_FRESH = Moves(4.0, 2.0, 4.0, 2.0, 1.5)
"""The same where nothing is known, and the prior is centred on zero."""


def default_width(mean_square: float, labels: Sequence[str]) -> Width:
    """The widths of a task's cells; `mean_square` is the mean squared norm of the words' features."""
    return _moving(_MOVES[TaskKind.of(labels)], mean_square)


def fresh_width(mean_square: float) -> Width:
    """The widths of a head that is learnt from its own sentences alone, with a prior centred on zero."""
    return _moving(_FRESH, mean_square)


def _moving(moves: Moves, mean_square: float) -> Width:
    weights = moves.logit**2 / max(mean_square, 1e-12)
    return Width(weights, moves.bias**2, moves.word**2, endings=moves.ending**2, neighbours=moves.neighbour**2)


def mean_square(examples: Examples) -> float:
    """The mean squared norm of the words' features."""
    return float((examples.features[:, :-N_CUES].double() ** 2).sum(1).mean())
