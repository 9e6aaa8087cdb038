"""The prior of a cell's head: how far the heads of a task's cells lie from what is generated for them.

    θ of a cell ~ N(generated θ, diag(τ², …, τ², β², ω², …, ω²))

τ² is the variance of a weight, β² that of the bias, ω² that of the effect of a cue that the cell has learnt, one for
words, one for endings, and so on. They depend on the kind of task alone.

In tasks with spans, sentences without any say little of how the cell marks them, while they draw every word towards
"none". So the head moves only part of the way from the generated one to the mode of its posterior, n / (n + DOUBT) with
n labelled words in spans.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.adaptation.design import DesignMatrix, learnt_cues, looked_up
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.gaussian import HeadPosterior, HeadPrior
from crossfill.adaptation.laplace import Categorical, PosteriorProblem
from crossfill.adaptation.lexicon import Lexicon
from crossfill.encoders.cues import Cue, kinds
from crossfill.grid.task import Task, TaskKind
from crossfill.model import Classifier, Head
from crossfill.prediction.predict import CellWords, classify

DOUBT = 6.0
"""Words in spans that make half of the way. Chosen on languages that report nothing, as how far they score: without it,
five sentences without a name can take away all names of a cell (docs/adapt.md)."""


@dataclass(frozen=True)
class CellVariances:
    """Variances between the cells of a task."""

    weights: float
    """τ²."""
    bias: float
    """β²."""
    cues: tuple[float, ...] = (0.0,) * len(Cue)
    """ω² of each kind of cue, in the order of `Cue`; with 0 a cell learns none of the kind."""
    share: float = 1.0
    """Share of the posterior's covariance that draws of the head have."""
    none_label: int | None = None
    """The column of the label that means none, in tasks with spans."""

    @property
    def learnt(self) -> tuple[Cue, ...]:
        """The kinds of cues that a cell learns."""
        return tuple(cue for cue, variance in zip(Cue, self.cues, strict=True) if variance > 0)

    def without_cues(self) -> "CellVariances":
        """The variances of a head that learns no cues."""
        return replace(self, cues=(0.0,) * len(Cue))

    def prior(self, generated: HeadPrior, known: Int[Tensor, "known"]) -> HeadPrior:
        """The prior of a cell's head, with a column for each of the cues that it knows."""
        return generated.widened(self.weights, self.bias).with_columns(torch.tensor(self.cues)[kinds(known)])


class Scales(NamedTuple):
    """Standard deviations between cells."""

    logit: float
    """Of a logit by its weights."""
    bias: float
    cues: tuple[float, ...]
    """Of the effect of a word, and of its endings, its beginnings, its shape and its neighbours."""
    share: float = 0.05
    """Share of the posterior's covariance that draws have, as a factor: a cold posterior (docs/adapt.md).

    The prior is equally wide in all directions, of which few sentences inform few, while cells differ in few: draws
    with the whole covariance are too noisy, and averaged prediction less likely than that of the mean.
    """
    none_label: int | None = None

    def variances(self, examples: Examples) -> CellVariances:
        """The variances for words with these features: τ² makes a logit of one of them vary by `logit`."""
        mean_square = float((examples.features.double() ** 2).sum(1).mean())
        weights = self.logit**2 / max(mean_square, 1e-12)
        cues = tuple(scale**2 for scale in self.cues)
        return CellVariances(weights, self.bias**2, cues, share=self.share, none_label=self.none_label)


DEFAULT_SCALES = {
    TaskKind.TAGS: Scales(3.0, 1.5, (3.0, 2.0, 2.0, 1.4, 1.5)),
    TaskKind.VALUES: Scales(3.0, 0.05, (4.0, 2.0, 2.0, 1.4, 1.5)),
    TaskKind.SPANS: Scales(2.4, 0.05, (2.0, 0.5, 0.5, 1.4, 1.5), share=0.01),
}
"""By kind of task. Those of tags and spans were chosen on held-out cells (docs/adapt.md); values have the bias of spans
and cues of tags."""
SCALES_FROM_SCRATCH = Scales(4.0, 2.0, (4.0, 2.0, 2.0, 1.4, 1.5))
"""The same where nothing is known, and the prior is centred on zero."""


def default_scales(generated: HeadPrior, task: Task) -> Scales:
    """The scales between cells of a task, by its labels; a head of zeros knows nothing yet."""
    if not bool(generated.mean.any()):
        return SCALES_FROM_SCRATCH
    kind = TaskKind.of(task.labels)
    none_label = task.labels.index("O") if kind is TaskKind.SPANS else None
    return DEFAULT_SCALES[kind]._replace(none_label=none_label)


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
    """Between the cells of the task."""
    known: Int[Tensor, "known"]
    """The cues that the cell learns."""
    lexicon: Lexicon | None = None

    @classmethod
    def of(
        cls, generated: HeadPrior, examples: Examples, variances: CellVariances, lexicon: Lexicon | None = None
    ) -> "Fit":
        """Prepare a fit; `variances` are those of the task."""
        known = learnt_cues((examples if lexicon is None else lexicon.after(examples)).cues, variances.learnt)
        if lexicon is not None:
            known = torch.cat([known, lexicon.words]).unique()
        return cls(generated, examples, variances, known, lexicon)

    @cached_property
    def problem(self) -> PosteriorProblem:
        prior = self.variances.prior(self.generated, self.known)
        likelihood = Categorical.of(self.examples.labels, len(prior.mean))
        if self.lexicon is None:
            return PosteriorProblem(prior, likelihood, DesignMatrix.of(self.examples, self.known))
        centre = torch.cat([self.generated.mean, self.lexicon.centre(self.known)], 1)
        likelihood = Categorical(torch.cat([likelihood.targets, self.lexicon.targets(self.generated.mean)]))
        matrix = DesignMatrix.of(self.lexicon.after(self.examples), self.known)
        return PosteriorProblem(replace(prior, mean=centre), likelihood, matrix)

    @cached_property
    def trust(self) -> float:
        """How far the head moves from the generated one to the mode, from 0 to 1."""
        if self.variances.none_label is None:
            return 1.0
        n = int(((self.examples.labels >= 0) & (self.examples.labels != self.variances.none_label)).sum())
        return n / (n + DOUBT)

    def posterior(self) -> HeadPosterior:
        """The posterior of the cell's head."""
        posterior = self.problem.posterior()
        return replace(posterior, mean=self._moved(posterior.mean), share=self.variances.share)

    def approximate_mean(self) -> Float[Tensor, "labels parameters"]:
        """The mean of the posterior to about two digits, several times faster."""
        return self._moved(self.problem.approximate_mode().mean)

    @cached_property
    def leave_out_logits(self) -> Float[Tensor, "words labels"]:
        """Logits of the words, by the head without their sentence."""
        groups = torch.arange(len(self.examples.labels)).split(self.examples.lengths.tolist())
        centre = self.problem.matrix.times(self.problem.prior.mean)
        moved = centre + self.trust * (self.problem.leave_out_logits(groups) - centre)
        return moved[: len(self.examples.labels)]

    @property
    def generated_logits(self) -> Float[Tensor, "words labels"]:
        """Logits of the words by the head that knows none of the sentences."""
        return self.problem.matrix.times(self.problem.prior.mean)[: len(self.examples.labels)]

    def _moved(self, mode: Float[Tensor, "labels parameters"]) -> Float[Tensor, "labels parameters"]:
        return self.problem.prior.mean + self.trust * (mode - self.problem.prior.mean)


NOTHING_KNOWN = torch.zeros(0, dtype=torch.long)
"""The cues of a head that knows none."""


def predict_with(
    parameters: Float[Tensor, "samples labels parameters"], known: Int[Tensor, "known"], test: Examples
) -> Float[np.ndarray, "words labels"]:
    """Return the mean probabilities of words over draws of a head that knows some cues."""
    head = HeadWithCues.of(parameters.to(test.features.dtype), known)
    return classify([CellWords(test.features, head, test.cues)]).probabilities.numpy()
