"""The width of a cell's prior, adjusted by the evidence of its own sentences and shrunk to the width of its task.

    τ² of a cell = eᵡ τ² of its task        χ ~ N(0, spread²)        p(χ | y) ∝ p(χ) p(y | X, χ)

The cell takes the mean of χ given its labels. χ is one of a few values, none of them far from zero, and p(y | X, χ)
Laplace's. The spread is small, as scores of held-out cells ask for: evidence takes heads to differ in all directions,
so that it is too sure of the width.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import Design
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.laplace import Problem, laplace
from crossfill.adaptation.likelihood import Categorical
from crossfill.adaptation.widths import Width

POINTS = (-1.5, 0.0, 1.5)
"""χ that are tried, as multiples of the spread."""
MOST_WORDS = 300
"""Words whose evidence is taken, more or less: those of the first sentences in an order that is the same for all."""


def adjusted(width: Width, generated: HeadPrior, examples: Examples, design: Design) -> Width:
    """The widths of a cell with these sentences, from those of its task."""
    if not width.spread:
        return width
    some = _some(examples)
    matrix, likelihood = design(some.features), Categorical(some.labels)
    tried = [point * width.spread for point in POINTS]
    evidences = []
    for log in tried:
        prior = replace(width, weights=width.weights * math.exp(log)).prior(generated, design.lexicon)
        evidences.append(laplace(Problem(prior, likelihood, matrix), roughly=True).evidence)
    return replace(width, weights=width.weights * math.exp(shrunk(tried, evidences, width.spread)))


def shrunk(tried: Sequence[float], evidences: Sequence[float], spread: float) -> float:
    """The mean of χ over some equally distant values: Σ χ w(χ) / Σ w(χ), w(χ) = p(χ) p(y | X, χ)."""
    logs = [evidence - 0.5 * (chi / spread) ** 2 for chi, evidence in zip(tried, evidences, strict=True)]
    shares = [math.exp(log - max(logs)) for log in logs]
    return sum(chi * share for chi, share in zip(tried, shares, strict=True)) / sum(shares)


def _some(examples: Examples) -> Examples:
    chosen, words = [], 0
    for place in examples.shuffled():
        if words >= MOST_WORDS:
            break
        chosen.append(place)
        words += int(examples.lengths[place])
    return examples.take(chosen)
