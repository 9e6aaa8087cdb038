"""The posterior of a head given labelled words: its mode by L-BFGS, its covariance by Laplace.

    θ̂ = argmin −ln p(y | X, θ) + ½ (θ − m)ᵀ S⁻¹ (θ − m)

The objective is convex. It is minimised over the whitened parameters of θ = m + E diag(v)^½, in which the prior term is
½ |E|²: approximately in single precision, then from there in double precision.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from crossfill.adaptation.design import DesignMatrix
from crossfill.adaptation.gaussian import Curvature, HeadPosterior, HeadPrior

Slope = Callable[[Float[Tensor, "size"]], tuple[float, Float[Tensor, "size"]]]
"""The value and the gradient of a function at a point."""
MEMORY = 30
"""Pairs of steps and changes of the gradient that the curvature is taken from."""


def descend(
    slope: Slope, start: Float[Tensor, "size"], first: Float[Tensor, "size"], steps: int, tolerance: float
) -> Float[Tensor, "size"]:
    """A point near the minimum, from a start and a first step that points downhill.

    It stops when a step promises less than `tolerance` of decrease, as a share of the value.
    """
    point, (value, gradient) = start, slope(start)
    step, pairs = first, deque[tuple[Tensor, Tensor, float]](maxlen=MEMORY)
    for _ in range(steps):
        promise = -float(gradient @ step)
        if not promise > tolerance * (1 + abs(value)):
            break
        size, (found, new) = 1.0, slope(point + step)
        while found > value - 1e-4 * size * promise and size > 1e-4:
            # the minimum of the parabola through both values and the slope, within bounds
            size *= min(0.5, max(0.1, 0.5 * size * promise / (found - value + size * promise)))
            found, new = slope(point + size * step)
        if found >= value:
            break
        moved, changed = size * step, new - gradient
        along = float(moved @ changed)
        if along > 0:
            pairs.append((moved, changed, along))
        point, value, gradient = point + moved, found, new
        step = -_inverse_hessian_product(gradient, pairs)
    return point


def _inverse_hessian_product(
    gradient: Float[Tensor, "size"], pairs: deque[tuple[Tensor, Tensor, float]]
) -> Float[Tensor, "size"]:
    """The gradient times an estimate of the inverse Hessian: the two loops of L-BFGS."""
    found, shares = gradient.clone(), []
    for moved, changed, along in reversed(pairs):
        share = float(moved @ found) / along
        shares.append(share)
        found.add_(changed, alpha=-share)
    if pairs:
        _, changed, along = pairs[-1]
        found.mul_(along / float(changed @ changed))
    for (moved, changed, along), share in zip(pairs, reversed(shares), strict=True):
        found.add_(moved, alpha=share - float(changed @ found) / along)
    return found


class Likelihood(ABC):
    """−ln p(y | s) of all words as a function of their logits s, convex in s."""

    @abstractmethod
    def loss(self, logits: Float[Tensor, "words labels"]) -> Float[Tensor, ""]:
        """−Σₙ ln p(yₙ | sₙ)."""

    @abstractmethod
    def gradient(self, logits: Float[Tensor, "words labels"]) -> Float[Tensor, "words labels"]:
        """The gradient of the loss with respect to the logits."""

    @abstractmethod
    def hessian_product(
        self, logits: Float[Tensor, "words labels"], direction: Float[Tensor, "words labels"]
    ) -> Float[Tensor, "words labels"]:
        """Λₙ dₙ of each word: the product of the loss's Hessian Λₙ with respect to sₙ and a direction."""

    @abstractmethod
    def hessians(
        self, logits: Float[Tensor, "words labels"]
    ) -> tuple[Float[Tensor, "labels labels"], Float[Tensor, "words"]]:
        """Σₙ Λₙ, and tr Λₙ of each word."""


@dataclass(frozen=True)
class Categorical(Likelihood):
    """−Σ_y t_y ln softmax(s)_y, with Λ = w (diag(p) − p pᵀ) and w = Σ_y t_y.

    The targets t of a labelled word are one for its label. A word without a label has none at all: it leaves the
    likelihood.
    """

    targets: Float[Tensor, "words labels"]

    @classmethod
    def of(cls, labels: Int[Tensor, "words"], n_labels: int) -> "Categorical":
        """The likelihood of these labels, −1 for none."""
        return cls(functional.one_hot(labels.clamp(min=0), n_labels) * (labels >= 0).double()[:, None])

    def loss(self, logits: Float[Tensor, "words labels"]) -> Float[Tensor, ""]:
        return -(self.targets.to(logits) * logits.log_softmax(-1)).sum()

    def gradient(self, logits: Float[Tensor, "words labels"]) -> Float[Tensor, "words labels"]:
        """w p − t."""
        targets = self.targets.to(logits)
        return targets.sum(-1, keepdim=True) * logits.softmax(-1) - targets

    def hessian_product(
        self, logits: Float[Tensor, "words labels"], direction: Float[Tensor, "words labels"]
    ) -> Float[Tensor, "words labels"]:
        p, weights = logits.softmax(-1), self.targets.to(logits).sum(-1, keepdim=True)
        return weights * p * (direction - (p * direction).sum(-1, keepdim=True))

    def hessians(
        self, logits: Float[Tensor, "words labels"]
    ) -> tuple[Float[Tensor, "labels labels"], Float[Tensor, "words"]]:
        p, weights = logits.softmax(-1), self.targets.to(logits).sum(-1)
        return (weights @ p).diag() - p.T @ (weights[:, None] * p), weights * (1 - (p**2).sum(-1))


TOLERANCE, APPROXIMATE_TOLERANCE = 1e-11, 1e-5
"""A descent stops at a step that promises less than this decrease of the objective, as a share of it."""
_STEPS, _APPROXIMATE_STEPS = 500, 50


class Mode(NamedTuple):
    """The mode of a head's posterior."""

    mean: Float[Tensor, "labels features"]
    """θ̂."""
    logits: Float[Tensor, "words labels"]


class PosteriorProblem:
    """A prior of a head, and words with a likelihood: what the posterior follows from."""

    def __init__(self, prior: HeadPrior, likelihood: Likelihood, matrix: DesignMatrix) -> None:
        self.prior, self.likelihood, self.matrix = prior, likelihood, matrix

    @cached_property
    def mode(self) -> Mode:
        """θ̂, as exactly as double precision has it."""
        objective = NegativeLogPosterior.of(self, torch.float64)
        return self._mode(objective, objective.minimise(_STEPS, TOLERANCE, self._approximate.double()))

    def approximate_mode(self) -> Mode:
        """θ̂ to about two digits, several times faster."""
        return self._mode(self._objective, self._approximate)

    def posterior(self) -> HeadPosterior:
        """The Gaussian at the mode, with the curvature there."""
        mode, scale = self.mode, self.prior.variance.sqrt()
        curvature = Curvature.of(self.matrix.scaled(scale), *self.likelihood.hessians(mode.logits))
        return HeadPosterior(mode.mean, scale, curvature)

    def leave_out_logits(self, groups: Iterable[Tensor]) -> Float[Tensor, "words labels"]:
        """The logits of words by a Newton step from the mode to that without their group; as they are in no group.

            s + (I − A Λ)⁻¹ A ∇

        ∇ is the gradient of the group's loss, A the posterior covariance of its logits, from which its own curvature Λ
        is taken (Woodbury). Λ counts by its diagonal, so that A is a block for each label, and cues as independent.
        """
        logits, matrix = self.approximate_mode().logits.float(), self._objective.matrix
        given, units = matrix.given, torch.eye(logits.shape[1])
        curvature = torch.stack(
            [self.likelihood.hessian_product(logits, unit.expand_as(logits)) @ unit for unit in units]
        )
        identity = torch.eye(given.shape[1])
        inverse = torch.stack([torch.linalg.inv((given.T * weights) @ given + identity) for weights in curvature])
        of_cues = torch.zeros(len(units), len(matrix.values)).index_add_(1, matrix.places, curvature[:, matrix.words])
        gradients = self.likelihood.gradient(logits).T.unsqueeze(2)
        changes = torch.zeros_like(gradients)
        for group in groups:
            rows, gradient, weights = matrix.take(group), gradients[:, group], curvature[:, group].unsqueeze(1)
            known, columns = rows.places.unique(return_inverse=True)
            cues = torch.zeros(len(group), len(known)).index_put_((rows.words, columns), rows.values[rows.places])
            others = (of_cues[:, None, known] * rows.values[known] ** 2 - weights @ cues**2).clamp(min=0)
            covariance = rows.given @ inverse @ rows.given.T
            step = torch.linalg.solve(torch.eye(len(group)) - covariance * weights, covariance @ gradient)
            changes[:, group] = step + cues / (1 + others) @ (cues.T @ gradient)
        return (logits + changes.squeeze(2).T).double()

    @cached_property
    def _objective(self) -> "NegativeLogPosterior":
        return NegativeLogPosterior.of(self, torch.float32)

    @cached_property
    def _approximate(self) -> Float[Tensor, "size"]:
        return self._objective.minimise(_APPROXIMATE_STEPS, APPROXIMATE_TOLERANCE)

    def _mode(self, objective: "NegativeLogPosterior", point: Float[Tensor, "size"]) -> Mode:
        effects = point.double().view(self.prior.mean.shape)
        return Mode(self.prior.mean + effects * self.prior.variance.sqrt(), objective.logits(point).double())


@dataclass(frozen=True)
class NegativeLogPosterior:
    """−ln p(y | X, θ) + ½ |E|² as a function of one vector, the rows of E."""

    likelihood: Likelihood
    matrix: DesignMatrix
    """X diag(v)^½."""
    base: Float[Tensor, "words labels"]
    """Logits at the prior's mean."""

    @classmethod
    def of(cls, problem: PosteriorProblem, kind: torch.dtype) -> "NegativeLogPosterior":
        """The objective of a problem, in some precision."""
        prior, matrix = problem.prior, problem.matrix.to(kind)
        return cls(problem.likelihood, matrix.scaled(prior.variance.sqrt().to(kind)), matrix.times(prior.mean.to(kind)))

    def logits(self, point: Float[Tensor, "size"]) -> Float[Tensor, "words labels"]:
        """X θᵀ."""
        return self.base + self.change(point)

    def change(self, direction: Float[Tensor, "size"]) -> Float[Tensor, "words labels"]:
        """The change of the logits along a direction."""
        return self.matrix.times(direction.view(self.base.shape[1], -1))

    def __call__(self, point: Float[Tensor, "size"]) -> tuple[float, Float[Tensor, "size"]]:
        """The value and the gradient."""
        logits = self.logits(point)
        value = self.likelihood.loss(logits) + 0.5 * (point @ point)
        return float(value), point + self._transpose_product(self.likelihood.gradient(logits))

    def minimise(
        self, steps: int, tolerance: float, start: Float[Tensor, "size"] | None = None
    ) -> Float[Tensor, "size"]:
        """The minimum, sought from the prior's mean or another start; the first step is Newton's along the gradient."""
        n_columns = self.matrix.given.shape[1] + len(self.matrix.values)
        point = self.base.new_zeros(self.base.shape[1] * n_columns) if start is None else start
        logits = self.logits(point)
        downhill = -point - self._transpose_product(self.likelihood.gradient(logits))
        curved = downhill + self._transpose_product(self.likelihood.hessian_product(logits, self.change(downhill)))
        first = downhill * (downhill @ downhill / (downhill @ curved).clamp(min=1e-30))
        return descend(self, point, first, steps, tolerance)

    def _transpose_product(self, gradients: Float[Tensor, "words labels"]) -> Float[Tensor, "size"]:
        """The gradient with respect to E, from that with respect to the logits."""
        return self.matrix.transpose_product(gradients).flatten()
