"""The curvature of the log-likelihood of a head's parameters, as a Kronecker product.

The Hessian of −ln p(y | X, θ) is Σₙ Λₙ ⊗ xₙ xₙᵀ, with Λₙ that of word n with respect to its logits. Its size is the
square of labels × features, so it is approximated by one Kronecker product, which takes each Λₙ for a multiple of
their mean:

    H = (L / tr L) ⊗ Σₙ tr(Λₙ) xₙ xₙᵀ        L = Σₙ Λₙ

The trace is exact; with two labels all of H is, as every Λₙ is then a multiple of the same matrix. Both factors are
sums over words, so the curvature of two corpora is the sum of their curvatures.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.adaptation.likelihood import Likelihood

_NEGLIGIBLE = 1e-12
"""Eigenvalues below this share of the largest are taken for zero."""


@dataclass(frozen=True)
class Curvature:
    """H = (L / tr L) ⊗ RᵀR, with one row √tr(Λₙ) xₙ in R for each word."""

    labels: Float[Tensor, "labels labels"]
    """L."""
    words: Float[Tensor, "words features"]
    """R; rows are merged once there are more of them than features."""

    @classmethod
    def of(
        cls, likelihood: Likelihood, features: Float[Tensor, "words features"], logits: Float[Tensor, "words labels"]
    ) -> "Curvature":
        """The curvature of the likelihood of words with these features, at these logits."""
        labels, traces = likelihood.hessians(logits)
        return cls(labels, _merged(features * traces.clamp(min=0).sqrt().unsqueeze(1)))

    def __add__(self, other: "Curvature") -> "Curvature":
        """The curvature of both corpora together."""
        return Curvature(self.labels + other.labels, _merged(torch.cat([self.words, other.words])))

    def __mul__(self, factor: float) -> "Curvature":
        """The curvature if every word occurred this many times."""
        return Curvature(self.labels * factor, self.words * factor**0.5)

    __rmul__ = __mul__

    def decompose(self, scale: Float[Tensor, "features"]) -> "Eigen":
        """Eigenvalues and eigenvectors of both factors, with the features multiplied by `scale`."""
        total = self.labels.trace()
        label_values, label_vectors = torch.linalg.eigh(self.labels / total if total > 0 else self.labels)
        rows = self.words * scale
        if len(rows) < rows.shape[1]:  # eigenvectors of RRᵀ, from which those of RᵀR follow
            values, vectors = torch.linalg.eigh(rows @ rows.T)
            kept = _matters(values)
            values, vectors = values[kept], rows.T @ (vectors[:, kept] / values[kept].sqrt())
        else:
            values, vectors = torch.linalg.eigh(rows.T @ rows)
            kept = _matters(values)
            values, vectors = values[kept], vectors[:, kept]
        return Eigen(label_values.clamp(min=0), label_vectors, values, vectors)


@dataclass(frozen=True)
class Eigen:
    """U diag(λ) Uᵀ ⊗ Q diag(a) Qᵀ, positive semidefinite."""

    label_values: Float[Tensor, "labels"]
    label_vectors: Float[Tensor, "labels labels"]
    feature_values: Float[Tensor, "rank"]
    feature_vectors: Float[Tensor, "features rank"]

    @property
    def values(self) -> Float[Tensor, "labels rank"]:
        """λᵢ aⱼ."""
        return self.label_values.unsqueeze(1) * self.feature_values

    def log_det(self) -> Float[Tensor, ""]:
        """ln det(I + H)."""
        return self.values.log1p().sum()

    def power(
        self, matrix: Float[Tensor, "*batch labels features"], exponent: float
    ) -> Float[Tensor, "*batch labels features"]:
        """(I + H)^exponent applied to a matrix; outside the span of Q it is the identity."""
        turned = self.label_vectors.T @ matrix @ self.feature_vectors
        change = ((1 + self.values) ** exponent - 1) * turned
        return matrix + self.label_vectors @ change @ self.feature_vectors.T


def _merged(rows: Float[Tensor, "words features"]) -> Float[Tensor, "fewer features"]:
    """At most as many rows as features, with the same RᵀR."""
    return rows if len(rows) <= rows.shape[1] else torch.linalg.qr(rows, mode="r").R


def _matters(values: Float[Tensor, "rank"]) -> Tensor:
    largest = values.max() if len(values) else 0.0
    return (values > _NEGLIGIBLE * largest) & (values > 0)
