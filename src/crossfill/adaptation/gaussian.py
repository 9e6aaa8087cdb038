"""Gaussians over the parameters of a head: its prior before a cell's own sentences, its posterior after them.

    prior         θ ~ N(m, S)       S = F Fᵀ + I ⊗ diag(v)
    posterior     θ ~ N(θ̂, (S⁻¹ + H)⁻¹)

θ is a matrix labels × features, of which one is the constant 1 of the bias. F comes from draws of the head and
has few columns. Let P = I ⊗ diag(v)⁻¹ + H, a sum of Kronecker products, and G = diag(v)⁻¹ F (I + Fᵀ diag(v)⁻¹ F)^−½:

    S⁻¹ + H = P − G Gᵀ
    (S⁻¹ + H)⁻¹ = P⁻¹ + B Bᵀ        B = P⁻¹ G (I − Gᵀ P⁻¹ G)^−½

so that a posterior has the same shape as a prior, and draws of it cost a product with P^−½ and one with B.

H is the curvature of the log-likelihood. The Hessian of −ln p(y | X, θ) is Σₙ Λₙ ⊗ xₙ xₙᵀ, with Λₙ that of word n with
respect to its logits. Its size is the square of labels × features, so it is approximated by one Kronecker product,
which takes each Λₙ for a multiple of their mean:

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
from crossfill.model import Head

RANK = 16
"""Most columns of F."""
_NEGLIGIBLE = 1e-12
"""Eigenvalues below this share of the largest are taken for zero."""


@dataclass(frozen=True)
class HeadPrior:
    """N(m, F Fᵀ + I ⊗ diag(v))."""

    mean: Float[Tensor, "labels features"]
    factor: Float[Tensor, "rank labels features"]
    variance: Float[Tensor, "features"]

    @classmethod
    def at(cls, mean: Float[Tensor, "labels features"]) -> "HeadPrior":
        """Centred on a head, of width zero."""
        return cls(mean, mean.new_zeros(0, *mean.shape), mean.new_zeros(mean.shape[1]))

    @classmethod
    def of(cls, plug_in: Head, draws: Head | None = None) -> "HeadPrior":
        """Centred on the plug-in head, with the covariance of the draws; without draws, of width zero.

        Draws are few (n) and parameters many (p), so that independent noise alone gives every principal component of
        the draws about the same variance: the median, at most (1 + √(n/p))² of it. Components beyond that make F, less
        the median; the variance that F leaves unexplained is v, its mean over labels.
        """
        mean = plug_in.parameters[0].double()
        if draws is None or draws.n_samples < 3:
            return cls.at(mean)
        apart = draws.parameters.double()
        apart = (apart - apart.mean(0)) / (draws.n_samples - 1) ** 0.5
        flat = apart.flatten(1)
        values, vectors = torch.linalg.eigh(flat @ flat.T)
        values, vectors = values[1:].flip(0), vectors[:, 1:].flip(1)  # one is zero, as the mean was subtracted
        noise = values.median()
        clear = values[:RANK] > noise * (1 + (draws.n_samples / flat.shape[1]) ** 0.5) ** 2 * (1 + 1e-9)
        weights = vectors[:, :RANK][:, clear] * (1 - noise / values[:RANK][clear]).sqrt()
        factor = torch.einsum("dr,dlf->rlf", weights, apart)
        rest = ((apart**2).sum(0) - (factor**2).sum(0)).clamp(min=0)
        return cls(mean, factor, rest.mean(0))

    def widened(self, between: float, bias: float | None = None) -> "HeadPrior":
        """The prior with this much more variance for every parameter: how far cells lie from what is generated.

        The last column, the bias, may have a variance of its own.
        """
        more = torch.full_like(self.variance, between)
        more[-1] = between if bias is None else bias
        return replace(self, variance=self.variance + more)

    def with_columns(self, variances: Float[Tensor, "more"]) -> "HeadPrior":
        """The prior with further columns of these variances, centred on zero."""
        pad = (0, len(variances))
        added = variances.to(self.variance)
        return HeadPrior(
            functional.pad(self.mean, pad), functional.pad(self.factor, pad), torch.cat([self.variance, added])
        )

    def capacitance(self) -> Float[Tensor, "rank rank"]:
        """I + Fᵀ diag(v)⁻¹ F."""
        flat = (self.factor / self.variance.sqrt()).flatten(1)
        return torch.eye(len(flat), dtype=flat.dtype) + flat @ flat.T


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

    def log_det(self) -> Float[Tensor, ""]:
        """ln det(I + H)."""
        return torch.outer(self.label_values, torch.cat([self.feature_values, self.cue_values])).log1p().sum()

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
    """N(θ̂, P⁻¹ + B Bᵀ), with P = diag(v)^−½ (I + H̃) diag(v)^−½ and H̃ the curvature of X diag(v)^½."""

    mean: Float[Tensor, "labels features"]
    """θ̂, the maximum a posteriori."""
    factor: Float[Tensor, "rank labels features"]
    """B."""
    scale: Float[Tensor, "features"]
    """√v."""
    curvature: Curvature
    """I + H̃."""
    share: float = 1.0
    """Share of the covariance that draws have."""

    @classmethod
    def of(
        cls, mean: Float[Tensor, "labels features"], prior: HeadPrior, curvature: Curvature
    ) -> tuple["HeadPosterior", float]:
        """The posterior at the mode θ̂, and ln det(I + S H)."""
        scale = prior.variance.sqrt()
        root = torch.linalg.cholesky(prior.capacitance())
        given = torch.einsum("qr,rlf->qlf", torch.linalg.inv(root), prior.factor / scale)  # √v G
        partly = curvature.power(given, -1.0)  # √v⁻¹ P⁻¹ G
        gap = torch.eye(len(root), dtype=root.dtype) - given.flatten(1) @ partly.flatten(1).T
        closing = torch.linalg.cholesky((gap + gap.T) / 2)
        factor = torch.einsum("qr,rlf->qlf", torch.linalg.inv(closing), partly) * scale
        log_det = curvature.log_det() + 2 * root.diagonal().log().sum() + 2 * closing.diagonal().log().sum()
        return cls(mean, factor, scale, curvature), float(log_det)

    def sample(
        self, n_samples: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "samples labels features"]:
        """θ̂ + √share (P^−½ ε + B ζ), ε and ζ ~ N(0, I)."""
        shape, kind = (n_samples, *self.mean.shape), self.mean.dtype
        epsilon = torch.randn(shape, dtype=kind, device=self.mean.device, generator=generator)
        zeta = torch.randn(n_samples, len(self.factor), dtype=kind, device=self.mean.device, generator=generator)
        apart = self.scale * self.curvature.power(epsilon, -0.5) + torch.einsum("sr,rlf->slf", zeta, self.factor)
        return self.mean + self.share**0.5 * apart
