"""Gaussians over the parameters of a head: its prior before a cell's own sentences, its posterior after them.

    prior         θ ~ N(m, S)       S = I ⊗ diag(v)
    posterior     θ ~ N(θ̂, (S⁻¹ + H)⁻¹)

θ is a matrix labels × features, of which one is the constant 1 of the bias. H is the curvature of the log-likelihood.
The Hessian of −ln p(y | X, θ) is Σₙ Λₙ ⊗ xₙ xₙᵀ, with Λₙ that of word n with respect to its logits. Its size is the
square of labels × features, so it is approximated by one Kronecker product, which takes each Λₙ for a multiple of their
mean:

    H = (L / tr L) ⊗ Σₙ tr(Λₙ) xₙ xₙᵀ        L = Σₙ Λₙ

The trace is exact. In the second factor the columns of cues, which are many and mostly zero, count as independent of
all others. With two labels and no cues H is exact, as every Λₙ is then a multiple of the same matrix.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from crossfill.adaptation.design import DesignMatrix

_NEGLIGIBLE = 1e-12
"""Eigenvalues below this share of the largest are taken for zero."""


@dataclass(frozen=True)
class HeadPrior:
    """N(m, I ⊗ diag(v))."""

    mean: Float[Tensor, "labels features"]
    variance: Float[Tensor, "features"]

    @classmethod
    def at(cls, mean: Float[Tensor, "labels features"]) -> "HeadPrior":
        """Centred on a head, of width zero."""
        return cls(mean, mean.new_zeros(mean.shape[1]))

    def widened(self, between: float, bias: float | None = None) -> "HeadPrior":
        """The prior with this much more variance for every parameter: how far cells lie from what is generated.

        The last column, the bias, may have a variance of its own.
        """
        more = torch.full_like(self.variance, between)
        more[-1] = between if bias is None else bias
        return replace(self, variance=self.variance + more)

    def with_columns(self, variances: Float[Tensor, "more"]) -> "HeadPrior":
        """The prior with further columns of these variances, centred on zero."""
        added = variances.to(self.variance)
        return HeadPrior(functional.pad(self.mean, (0, len(variances))), torch.cat([self.variance, added]))


@dataclass(frozen=True)
class Curvature:
    """I + H by eigenvalues λ of L / tr L, a of the given columns of X and c of those of cues, which have no others."""

    label_values: Float[Tensor, "labels"]
    label_vectors: Float[Tensor, "labels labels"]
    feature_values: Float[Tensor, "rank"]
    feature_vectors: Float[Tensor, "given rank"]
    cue_values: Float[Tensor, "known"]

    @classmethod
    def of(
        cls, matrix: DesignMatrix, labels: Float[Tensor, "labels labels"], traces: Float[Tensor, "words"]
    ) -> "Curvature":
        """Make the curvature of words from L and tr Λₙ (`Likelihood.hessians`)."""
        total, traces = labels.trace(), traces.clamp(min=0)
        label_values, label_vectors = torch.linalg.eigh(labels / total if total > 0 else labels)
        rows = matrix.given * traces.sqrt().unsqueeze(1)
        few = len(rows) < rows.shape[1]
        values, vectors = torch.linalg.eigh(rows @ rows.T if few else rows.T @ rows)
        large = values > max(_NEGLIGIBLE * float(values[-1:].sum()), 0.0)
        values, vectors = values[large], vectors[:, large]
        if few:  # eigenvectors of RRᵀ, from which those of RᵀR follow
            vectors = rows.T @ (vectors / values.sqrt())
        cues = torch.zeros_like(matrix.values).index_add_(0, matrix.places, traces[matrix.words]) * matrix.values**2
        return cls(label_values.clamp(min=0), label_vectors, values, vectors, cues)

    def power(
        self, matrix: Float[Tensor, "*batch labels parameters"], exponent: float
    ) -> Float[Tensor, "*batch labels parameters"]:
        """(I + H)^exponent applied to a matrix; outside the span of the eigenvectors it is the identity."""
        n_given = len(self.feature_vectors)
        turned = self.label_vectors.T @ matrix
        of_features, of_cues = (
            (1 + torch.outer(self.label_values, values)) ** exponent - 1
            for values in (self.feature_values, self.cue_values)
        )
        given = of_features * (turned[..., :n_given] @ self.feature_vectors) @ self.feature_vectors.T
        return matrix + self.label_vectors @ torch.cat([given, of_cues * turned[..., n_given:]], -1)


@dataclass(frozen=True)
class HeadPosterior:
    """N(θ̂, diag(v)^½ (I + H̃)⁻¹ diag(v)^½), with H̃ the curvature of X diag(v)^½."""

    mean: Float[Tensor, "labels features"]
    """θ̂, the maximum a posteriori."""
    scale: Float[Tensor, "features"]
    """√v."""
    curvature: Curvature
    """I + H̃."""
    share: float = 1.0
    """Share of the covariance that draws have."""

    def sample(
        self, n_samples: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "samples labels features"]:
        """θ̂ + √share diag(v)^½ (I + H̃)^−½ ε, ε ~ N(0, I)."""
        shape, kind = (n_samples, *self.mean.shape), self.mean.dtype
        epsilon = torch.randn(shape, dtype=kind, device=self.mean.device, generator=generator)
        return self.mean + self.share**0.5 * self.scale * self.curvature.power(epsilon, -0.5)
