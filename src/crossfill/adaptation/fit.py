"""A head fitted to sentences of its cell: the width of its prior, and its problem."""

from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Float
from torch import Tensor

from crossfill.adaptation.evidence import adjusted
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import Design
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.laplace import Problem
from crossfill.adaptation.likelihood import Categorical
from crossfill.adaptation.widths import Width

MOST_FOLDS = 10
"""Sentences are left out one at a time; with more of them, in this many groups."""


@dataclass(frozen=True)
class Fit:
    """Sentences of a cell, and the prior of its head."""

    generated: HeadPrior
    examples: Examples
    """As the affine head sees them (`Examples.through`)."""
    width: Width
    """Of the cell."""
    design: Design

    @classmethod
    def of(cls, generated: HeadPrior, examples: Examples, width: Width) -> "Fit":
        """`width` is that of the task; the evidence of the sentences adjusts it."""
        design = Design.of(examples.features, width.learnt)
        return cls(generated, examples, adjusted(width, generated, examples, design), design)

    @cached_property
    def problem(self) -> Problem:
        prior = self.width.prior(self.generated, self.design.lexicon)
        return Problem(prior, Categorical(self.examples.labels), self.design(self.examples.features))

    @cached_property
    def left_out(self) -> Float[Tensor, "words labels"]:
        """Logits of the words, by heads that were fitted without their sentence."""
        order, n_folds = self.examples.shuffled(), min(len(self.examples), MOST_FOLDS)
        return self.problem.left_out([self.examples.words_of(order[fold::n_folds]) for fold in range(n_folds)])
