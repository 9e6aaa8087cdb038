"""How far the heads of a task's cells lie from what is generated for them: the widths of the prior between cells.

    θ of a cell ~ N(generated θ, covariance of its draws + diag(τ², …, τ², β², ω², …, ω²))

τ² is the variance of a weight, β² that of the bias, ω² that of the effect of a word that is known by heart.
The widths of a task are estimated by empirical Bayes on cells that were held out in turn, with heads from a model that
was trained without the cell: one after the other, each takes the value with the best mean score on other sentences of
these cells, after adaptations to some numbers k of their sentences. Without such an estimate they are defaults.

The score is used, and neither the evidence nor the likelihood of other sentences: what cells are tagged for is scores.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from crossfill import checkpoint
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import Body, Design
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.laplace import Problem
from crossfill.adaptation.likelihood import Categorical
from crossfill.adaptation.shifts import shift_of_none
from crossfill.errors import CheckpointError
from crossfill.files import write_json
from crossfill.measures.metrics import TaskKind, score
from crossfill.prediction.rules import Rule

SENTENCES = (2, 8, 32)
"""k: the numbers of sentences of a held-out cell that are adapted to."""
FACTORS = (1 / 9, 1 / 3, 1.0, 3.0, 9.0)
"""Multiples of the default widths that are tried."""


@dataclass(frozen=True)
class Width:
    """Variances between the cells of a task."""

    weights: float
    """τ²."""
    bias: float
    """β²."""
    words: float
    """ω²; 0 learns no word by heart."""
    cells: int = 0
    """Number of held-out cells that they were estimated on; 0 for the default."""

    def prior(self, generated: HeadPrior, n_words: int = 0) -> HeadPrior:
        """The prior of a cell's head, for as many words as are learnt by heart."""
        return generated.widened(self.weights, self.bias).with_words(n_words, self.words)


_MOVES = {TaskKind.TAGS: (3.0, 1.0, 4.0), TaskKind.VALUES: (3.0, 0.3, 4.0), TaskKind.SPANS: (1.7, 0.3, 3.0)}
"""Standard deviations between cells by kind of task: of a logit by its weights, of a bias, of the effect of a word.
Chosen on held-out cells (docs/adapt.md)."""
_FRESH = (4.0, 2.0, 4.0)
"""The same where nothing is known, and the prior is centred on zero."""


def default_width(mean_square: float, labels: Sequence[str]) -> Width:
    """The widths where none were estimated; `mean_square` is the mean squared norm of the words' features."""
    return _moving(_MOVES[TaskKind.of(labels)], mean_square)


def fresh_width(mean_square: float) -> Width:
    """The widths of a head that is learnt from its own sentences alone, with a prior centred on zero."""
    return _moving(_FRESH, mean_square)


def _moving(deviations: tuple[float, float, float], mean_square: float) -> Width:
    logit, bias, word = deviations
    return Width(logit**2 / max(mean_square, 1e-12), bias**2, word**2)


def mean_square(examples: Examples, body: Body | None = None) -> float:
    """The mean squared norm of the words' features, as an affine head sees them."""
    given = examples.features[:, :-1]
    return float(((body(given) if body else given).double() ** 2).sum(1).mean())


@dataclass(frozen=True)
class HeldOutCell:
    """A seen cell that a model was trained without: the head generated for it, and sentences of its own."""

    generated: HeadPrior
    body: Body | None
    examples: Examples
    """Sentences to adapt to, in order."""
    others: Examples
    """Sentences to score."""
    labels: tuple[str, ...]

    def default(self) -> Width:
        return default_width(mean_square(self.examples, self.body), self.labels)

    @torch.no_grad()
    def score(self, width: Width, sentences: Sequence[int] | None = None) -> float:
        """The mean score on other sentences after adaptations to the first k sentences, over k."""
        lengths, gold = self.others.lengths.numpy(), self.others.labels.numpy()
        found = []
        for k in SENTENCES if sentences is None else sentences:
            few = self.examples.take(range(min(k, len(self.examples))))
            design = Design.of(self.body, few.features, learn_words=width.words > 0)
            prior = width.prior(self.generated, len(design.lexicon))
            mean = Problem(prior, Categorical(few.labels), design(few.features)).rough_mean()
            probabilities = (design(self.others.features) @ mean.T).softmax(-1).numpy()
            rule = Rule(shift_of_none(self.generated.mean, mean, self.labels))
            found.append(score(gold, rule.choose(probabilities, lengths, self.labels), self.labels, lengths))
        return float(np.mean(found))

    @torch.no_grad()
    def before(self) -> tuple[float, float]:
        """The score of the generated head, and the share of words that it expects to get wrong."""
        design = Design.of(self.body, self.others.features, learn_words=False)
        probabilities = (design(self.others.features) @ self.generated.mean.T).softmax(-1).numpy()
        lengths = self.others.lengths.numpy()
        chosen = Rule().choose(probabilities, lengths, self.labels)
        found = score(self.others.labels.numpy(), chosen, self.labels, lengths)
        return found, float(1 - probabilities.max(-1).mean())


def fit_width(cells: Sequence[HeldOutCell]) -> Width:
    """The widths of a task from its held-out cells: weights, bias and words in turn, each at its best mean score."""
    defaults = [cell.default() for cell in cells]
    best = replace(defaults[0], weights=float(np.median([own.weights for own in defaults])))
    for name in ("weights", "bias", "words"):
        tried = [replace(best, **{name: getattr(best, name) * factor}) for factor in FACTORS]
        best = max(tried, key=lambda width: np.mean([cell.score(width) for cell in cells]))
    return replace(best, cells=len(cells))


def save_widths(folder: Path, widths: Mapping[str, Width]) -> None:
    """Write the widths of a model's tasks into its folder."""
    write_json(folder / checkpoint.WIDTHS, {task: asdict(width) for task, width in widths.items()})


def load_widths(folder: Path) -> dict[str, Width]:
    """The widths of a model's tasks; empty if none were estimated."""
    path = folder / checkpoint.WIDTHS
    try:
        found = {
            str(task): Width(
                float(values["weights"]), float(values["bias"]), float(values["words"]), int(values["cells"])
            )
            for task, values in (checkpoint.read_json(path) or {}).items()
        }
        for width in found.values():
            if (
                not all(0 < value < math.inf for value in (width.weights, width.bias))
                or not 0 <= width.words < math.inf
            ):
                raise ValueError("expected positive variances")
        return found
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: expected widths of priors; {type(error).__name__}: {error}; delete it and run adapt --fit again"
        ) from None
