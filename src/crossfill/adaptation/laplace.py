"""The posterior of a head given labelled words: its mode by Newton's method, its covariance and evidence by Laplace.

    θ̂ = argmin −ln p(y | X, θ) + ½ (θ − m)ᵀ S⁻¹ (θ − m)
    ln p(y | X) ≈ ln p(y | X, θ̂) − ½ (θ̂ − m)ᵀ S⁻¹ (θ̂ − m) − ½ ln det(I + S H)

The objective is convex. It is minimised over the whitened parameters of θ = m + F z + E diag(v)^½, in which the prior
term is ½ |z|² + ½ |E|², by Newton's method. Its linear systems are solved by conjugate gradients, with the Kronecker
form of the curvature as the preconditioner. Everything is in float64.
"""

from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.adaptation.curvature import Curvature, Eigen
from crossfill.adaptation.gaussian import HeadPosterior, HeadPrior
from crossfill.adaptation.likelihood import Likelihood

TOLERANCE = 1e-8
"""Newton's method stops at a step that promises less than this decrease of the objective, as a share of it."""
_STEPS, _INNER = 60, 200


class Whitened(NamedTuple):
    """The parameters (z, E) of θ = m + F z + E diag(v)^½, or a direction among them."""

    shared: Float[Tensor, "rank"]
    own: Float[Tensor, "labels size"]
    """E; where there are fewer words than features, in coordinates of the words' span, outside of which it is zero."""

    def plus(self, other: "Whitened", factor: float | Tensor = 1.0) -> "Whitened":
        """The point, moved along a direction."""
        return Whitened(self.shared + factor * other.shared, self.own + factor * other.own)

    def dot(self, other: "Whitened") -> Float[Tensor, ""]:
        """The inner product."""
        return self.shared @ other.shared + (self.own * other.own).sum()


class Mode(NamedTuple):
    """The mode of a head's posterior."""

    mean: Float[Tensor, "labels features"]
    """θ̂."""
    shared: Float[Tensor, "rank"]
    """z."""
    logits: Float[Tensor, "words labels"]
    loss: float
    """−ln p(y | X, θ̂)."""
    penalty: float
    """½ (θ̂ − m)ᵀ S⁻¹ (θ̂ − m)."""


class Problem:
    """A prior of a head, and words with a likelihood: what the posterior follows from."""

    def __init__(self, prior: HeadPrior, likelihood: Likelihood, features: Float[Tensor, "words features"]) -> None:
        self.prior, self.likelihood, self.features = prior, likelihood, features
        self.scale = prior.variance.sqrt()
        self.base, self.along = prior.logits(features)

    @cached_property
    def _spanned(self) -> tuple[Float[Tensor, "words size"], Float[Tensor, "features size"] | None]:
        return _in_span(self.features * self.scale)

    @property
    def scaled(self) -> Float[Tensor, "words size"]:
        """Features times √v, in coordinates of the words' span where there are fewer words than features."""
        return self._spanned[0]

    @property
    def span(self) -> Float[Tensor, "features size"] | None:
        """An orthonormal basis of the words' span, if that is what coordinates are in."""
        return self._spanned[1]

    def start(self, near: Mode | None = None) -> Whitened:
        """The prior's mean, or the mode of a similar problem with the same F."""
        if near is None:
            return Whitened(self.base.new_zeros(len(self.along)), self.base.new_zeros(self.base.shape[1], self._size))
        own = (near.mean - self.prior.mean - self._along(near.shared)) / self.scale
        return Whitened(near.shared, own if self.span is None else own @ self.span)

    def logits(self, point: Whitened) -> Float[Tensor, "words labels"]:
        """X θᵀ."""
        return self.base + self.change(point)

    def change(self, direction: Whitened) -> Float[Tensor, "words labels"]:
        """The change of the logits along a direction."""
        return self.scaled @ direction.own.T + torch.einsum("r,rnl->nl", direction.shared, self.along)

    def pull(self, slopes: Float[Tensor, "words labels"]) -> Whitened:
        """The gradient with respect to (z, E), from that with respect to the logits."""
        return Whitened(torch.einsum("rnl,nl->r", self.along, slopes), slopes.T @ self.scaled)

    def objective(self, point: Whitened) -> Float[Tensor, ""]:
        """−ln p(y | X, θ) + ½ (|z|² + |E|²)."""
        return self.likelihood.loss(self.logits(point)) + 0.5 * point.dot(point)

    def mode(self, near: Mode | None = None) -> Mode:
        """θ̂, sought from the prior's mean, or from the mode of a similar problem."""
        point = self.start(near)
        logits = self.logits(point)
        value = self.likelihood.loss(logits) + 0.5 * point.dot(point)
        eigen = self._eigen(logits)
        for _ in range(_STEPS):
            gradient = point.plus(self.pull(self.likelihood.slope(logits)))
            step, promise = self._newton_step(gradient, logits, eigen)
            size = 1.0
            while (found := self.objective(ahead := point.plus(step, size))) > value - 0.25 * size * promise:
                size /= 2
                if size < 1e-6:
                    break
            if size >= 1e-6:
                point, value, logits = ahead, found, self.logits(ahead)
            if promise <= TOLERANCE * (1 + value.abs()) or size < 1e-6:
                break
        penalty = 0.5 * point.dot(point)
        own = point.own if self.span is None else point.own @ self.span.T
        mean = self.prior.mean + self._along(point.shared) + own * self.scale
        return Mode(mean, point.shared, logits, float(value - penalty), float(penalty))

    def rough_mean(self, steps: int = 50) -> Float[Tensor, "labels features"]:
        """θ̂ to about two digits, several times faster: some steps of L-BFGS in single precision."""
        words, base, along = (given.float() for given in (self.features * self.scale, self.base, self.along))
        labels = base.shape[1]
        own = torch.zeros(labels, words.shape[1], dtype=words.dtype, requires_grad=True)
        shared = torch.zeros(len(along), dtype=words.dtype, requires_grad=True)
        optimiser = torch.optim.LBFGS([own, shared], max_iter=steps, history_size=8, line_search_fn="strong_wolfe")

        def objective() -> Float[Tensor, ""]:
            optimiser.zero_grad()
            logits = base + words @ own.T + torch.einsum("r,rnl->nl", shared, along)
            value = self.likelihood.loss(logits) + 0.5 * (own**2).sum() + 0.5 * shared @ shared
            value.backward()
            return value

        with torch.enable_grad():
            optimiser.step(objective)
        found = Whitened(shared.detach().double(), own.detach().double())
        return self.prior.mean + self._along(found.shared) + found.own * self.scale

    @property
    def _size(self) -> int:
        return self.scaled.shape[1]

    def _along(self, shared: Float[Tensor, "rank"]) -> Float[Tensor, "labels features"]:
        """F z."""
        return torch.einsum("r,rlf->lf", shared, self.prior.factor)

    def _eigen(self, logits: Float[Tensor, "words labels"]) -> Eigen:
        curvature = Curvature.of(self.likelihood, self.scaled, logits)
        return curvature.decompose(self.scaled.new_ones(self._size))

    def _newton_step(
        self, gradient: Whitened, logits: Float[Tensor, "words labels"], eigen: Eigen
    ) -> tuple[Whitened, Float[Tensor, ""]]:
        """The step −(I + JᵀΛJ)⁻¹ g, by preconditioned conjugate gradients, and half its product with −g."""
        step = Whitened(torch.zeros_like(gradient.shared), torch.zeros_like(gradient.own))
        rest = Whitened(-gradient.shared, -gradient.own)
        eased = Whitened(rest.shared, eigen.power(rest.own, -1.0))
        direction, size = eased, rest.dot(eased)
        enough = size * min(1e-2, float(size) ** 0.5) ** 2
        for _ in range(_INNER):
            if size <= max(enough, 1e-300):
                break
            bent = direction.plus(self.pull(self.likelihood.bend(logits, self.change(direction))))
            length = size / direction.dot(bent)
            step, rest = step.plus(direction, length), rest.plus(bent, -length)
            eased = Whitened(rest.shared, eigen.power(rest.own, -1.0))
            size, before = rest.dot(eased), size
            direction = eased.plus(direction, size / before)
        return step, -0.5 * step.dot(gradient)


def _in_span(
    words: Float[Tensor, "words features"],
) -> tuple[Float[Tensor, "words size"], Float[Tensor, "features size"] | None]:
    """Fewer words than features: coordinates C and an orthonormal basis Q, words = C Qᵀ. Else the words as they are."""
    if len(words) >= words.shape[1]:
        return words, None
    basis, coordinates = torch.linalg.qr(words.T)
    return coordinates.T, basis


class Laplace(NamedTuple):
    """A posterior, and how probable the labels were."""

    posterior: HeadPosterior
    evidence: float
    """ln p(y | X)."""
    mode: Mode


def laplace(problem: Problem, near: Mode | None = None) -> Laplace:
    """The Gaussian at the mode with the curvature there, and the evidence."""
    mode = problem.mode(near)
    curvature = Curvature.of(problem.likelihood, problem.features, mode.logits)
    posterior, log_det = HeadPosterior.of(mode.mean, problem.prior, curvature)
    return Laplace(posterior, -mode.loss - mode.penalty - 0.5 * log_det, mode)
