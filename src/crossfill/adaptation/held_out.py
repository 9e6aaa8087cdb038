"""Widths of a task by empirical Bayes: from seen cells that were held out in turn.

Heads come from a model that was trained without the cell. One after the other, each width takes the value with the
best mean score on other sentences of these cells, after adaptations to some numbers k of their sentences. So does the
spread of cells around the task, which says how much the evidence of a cell's own sentences counts.

The score is used, and neither the evidence nor the likelihood of other sentences: what cells are tagged for is scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import Design
from crossfill.adaptation.fit import Fit
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.widths import SPREAD, Width, default_width, mean_square
from crossfill.measures.metrics import score
from crossfill.prediction.rules import Rule

SENTENCES = (2, 8, 32)
"""k: the numbers of sentences of a held-out cell that are adapted to."""
FACTORS = (1 / 9, 1 / 3, 1.0, 3.0, 9.0)
"""Multiples of the default widths that are tried."""
SPREADS = (0.0, SPREAD, 1.0)
"""Spreads that are tried."""


@dataclass(frozen=True)
class HeldOutCell:
    """A seen cell that a model was trained without: the head generated for it, and sentences of its own."""

    generated: HeadPrior
    examples: Examples
    """Sentences to adapt to, in order, as the affine head sees them."""
    others: Examples
    """Sentences to score."""
    labels: tuple[str, ...]

    def default(self) -> Width:
        return default_width(mean_square(self.examples), self.labels)

    @torch.no_grad()
    def score(self, width: Width, sentences: Sequence[int] | None = None) -> float:
        """The mean score on other sentences after adaptations to the first k sentences, over k."""
        lengths, gold = self.others.lengths.numpy(), self.others.labels.numpy()
        found = []
        for k in SENTENCES if sentences is None else sentences:
            few = self.examples.take(range(min(k, len(self.examples))))
            fit = Fit.of(self.generated, few, width)
            mean = fit.problem.rough_mode().mean
            probabilities = fit.design(self.others.features).times(mean).softmax(-1).numpy()
            found.append(score(gold, Rule().choose(probabilities, lengths, self.labels), self.labels, lengths))
        return float(np.mean(found))

    @torch.no_grad()
    def before(self) -> tuple[float, float]:
        """The score of the generated head, and the share of words that it expects to get wrong."""
        design = Design.of(self.others.features, ())
        probabilities = design(self.others.features).times(self.generated.mean).softmax(-1).numpy()
        lengths = self.others.lengths.numpy()
        chosen = Rule().choose(probabilities, lengths, self.labels)
        found = score(self.others.labels.numpy(), chosen, self.labels, lengths)
        return found, float(1 - probabilities.max(-1).mean())


def fit_width(cells: Sequence[HeldOutCell]) -> Width:
    """The widths of a task from its held-out cells: one after the other, the spread last, each at its best score."""
    defaults = [cell.default() for cell in cells]
    best = replace(defaults[0], weights=float(np.median([own.weights for own in defaults])), spread=0.0)

    def score(width: Width) -> float:
        return float(np.mean([cell.score(width) for cell in cells]))

    for name in ("weights", "bias", "words", "endings", "neighbours"):
        tried = [replace(best, **{name: getattr(best, name) * factor}) for factor in FACTORS]
        best = max(tried, key=score)
    best = max([replace(best, spread=spread) for spread in SPREADS], key=score)
    return replace(best, cells=len(cells))
