"""A head fitted to labelled sentences of its cell: the variances of its prior, its problem, and what it predicts."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.adaptation.design import DesignMatrix, lexicon, looked_up
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.laplace import Problem
from crossfill.adaptation.likelihood import Categorical
from crossfill.adaptation.prior import CellVariances, adjusted
from crossfill.model import Classifier, Head
from crossfill.prediction.predict import CellWords, classify

MOST_FOLDS = 10
"""Sentences are left out one at a time; with more of them, in this many groups."""


@dataclass(frozen=True)
class HeadWithCues(Classifier):
    """W x + b + Σ u of the cues of the word that the cell knows."""

    head: Head
    known: Int[Tensor, "known"]
    effects: Float[Tensor, "samples labels known"]
    """u."""

    @classmethod
    def of(cls, parameters: Float[Tensor, "samples labels parameters"], known: Int[Tensor, "known"]) -> "HeadWithCues":
        """The head whose parameters are those of features, bias and known cues, in this order."""
        n_affine = parameters.shape[-1] - len(known)
        return cls(Head(parameters[..., :n_affine]), known.to(parameters.device), parameters[..., n_affine:])

    @property
    def n_samples(self) -> int:
        return self.head.n_samples

    @property
    def n_labels(self) -> int:
        return self.head.n_labels

    @property
    def n_bytes(self) -> int:
        return self.head.n_bytes + self.effects.nbytes

    def logits(
        self, features: Float[Tensor, "words features"], cues: Int[Tensor, "words cues"] | None = None
    ) -> Float[Tensor, "samples words labels"]:
        affine = self.head.logits(features.to(self.head.parameters))
        if cues is None:
            return affine
        words, places = looked_up(cues.to(self.known), self.known)
        return affine.index_add(1, words, self.effects[:, :, places].mT)


@dataclass(frozen=True)
class Fit:
    """Sentences of a cell, and the prior of its head."""

    generated: HeadPrior
    examples: Examples
    variances: CellVariances
    """Of the cell."""
    known: Int[Tensor, "known"]
    """The cues that the cell learns."""

    @classmethod
    def of(cls, generated: HeadPrior, examples: Examples, variances: CellVariances) -> "Fit":
        """Prepare a fit; `variances` are those of the task, which the evidence of the sentences adjusts."""
        known = lexicon(examples.cues, variances.learnt)
        return cls(generated, examples, adjusted(variances, generated, examples, known), known)

    @cached_property
    def problem(self) -> Problem:
        prior = self.variances.prior(self.generated, self.known)
        return Problem(prior, Categorical(self.examples.labels), DesignMatrix.of(self.examples, self.known))

    @cached_property
    def leave_out_logits(self) -> Float[Tensor, "words labels"]:
        """Logits of the words, by heads that were fitted without their sentence."""
        order, n_folds = self.examples.shuffled(), min(len(self.examples), MOST_FOLDS)
        groups = [self.examples.words_of(order[fold::n_folds]) for fold in range(n_folds)]
        return self.problem.leave_out_logits(groups)


NOTHING_KNOWN = torch.zeros(0, dtype=torch.long)
"""The lexicon of a head that knows no cues."""


def predict_with(
    parameters: Float[Tensor, "samples labels parameters"], known: Int[Tensor, "known"], test: Examples
) -> Float[np.ndarray, "words labels"]:
    """Return the mean probabilities of words over draws of a head that knows some cues."""
    head = HeadWithCues.of(parameters.to(test.features.dtype), known)
    return classify([CellWords(test.features, head, test.cues)]).probabilities.numpy()
