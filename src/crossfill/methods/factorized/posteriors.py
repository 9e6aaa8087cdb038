"""Variational posteriors over the task and language vectors: q(t) and q(l), one row per task or language.

The prior of both kinds is N(0, I). `sample` and `kl` touch only the rows asked for, with sparse gradients, so that a
training step costs the same for thirty languages and for thousands. Everything stays in float32 under autocast:
bfloat16 is too coarse for determinants and small variances.
"""

import math
from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from crossfill.config import LatentConfig

Moments = tuple[Float[Tensor, "rows latent"], Float[Tensor, "rows latent"], Float[Tensor, "rows latent rank"]]
VARIANCE_FLOOR = 1e-6
UNIT_RHO = math.log(math.expm1(1.0 - VARIANCE_FLOOR))  # gives a variance of one


class Posterior(nn.Module, ABC):
    """Gaussian posteriors N(m, S), one for each row."""

    independent: bool
    """Whether the rows are independent of each other, so that the KL is a sum over rows."""
    mean: nn.Parameter
    """m, rows × latent."""

    @abstractmethod
    def sample(
        self, index: Int[Tensor, "rows"], n_samples: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "samples rows latent"]:
        """Take re-parametrised draws of the rows in `index`."""

    @abstractmethod
    def kl(self, index: Int[Tensor, "rows"]) -> Float[Tensor, "groups"]:
        """Compute KL(q ‖ N(0, I)) of each row in `index`, or one value for all rows if they are not independent."""

    @abstractmethod
    def moments(self, index: Int[Tensor, "rows"]) -> Moments:
        """Return m, δ² and B of the rows in `index`; B has no columns if the covariance is diagonal."""

    @abstractmethod
    def reset_to_prior(self, index: Int[Tensor, "rows"]) -> None:
        """Set these rows to the prior, for tasks and languages without a seen cell."""


class DiagonalPosterior(Posterior):
    """S = diag(δ²), δ² = softplus(ρ): PF-d."""

    independent = True

    def __init__(self, n_rows: int, config: LatentConfig) -> None:
        super().__init__()
        self.mean = _normal(n_rows, config.size, config.mean_scale)
        self.rho = _uniform(n_rows, config.size, config.rho_range)

    def sample(
        self, index: Int[Tensor, "rows"], n_samples: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "samples rows latent"]:
        """Draw m + δ ⊙ ε, ε ~ N(0, I)."""
        with torch.autocast(self.mean.device.type, enabled=False):
            mean, scale = _rows(self.mean, index), _variance(_rows(self.rho, index)).sqrt()
            epsilon = _noise((n_samples, *mean.shape), mean, generator)
            return mean + scale * epsilon

    def kl(self, index: Int[Tensor, "rows"]) -> Float[Tensor, "groups"]:
        """Compute ½ [Σᵢ (mᵢ² + δᵢ²) − h − Σᵢ ln δᵢ²], eq. (klnormal) of the paper."""
        with torch.autocast(self.mean.device.type, enabled=False):
            mean, variance = _rows(self.mean, index), _variance(_rows(self.rho, index))
            return 0.5 * (mean**2 + variance - 1 - variance.log()).sum(-1)

    @torch.no_grad()
    def moments(self, index: Int[Tensor, "rows"]) -> Moments:
        mean = _rows(self.mean, index)
        return mean, _variance(_rows(self.rho, index)), mean.new_zeros(*mean.shape, 0)

    @torch.no_grad()
    def reset_to_prior(self, index: Int[Tensor, "rows"]) -> None:
        self.mean[index] = 0.0
        self.rho[index] = UNIT_RHO


class LowRankPosterior(Posterior):
    """S = diag(δ²) + B Bᵀ with k columns in B: PF-lr. Rows are independent or (`joint`) correlated by a shared ζ."""

    def __init__(self, n_rows: int, config: LatentConfig) -> None:
        super().__init__()
        self.independent = not config.joint
        self.rank = config.rank
        self.mean = _normal(n_rows, config.size, config.mean_scale)
        self.rho = _uniform(n_rows, config.size, config.rho_range)
        self.factor = _uniform(n_rows, config.size * config.rank, config.factor_range)

    def sample(
        self, index: Int[Tensor, "rows"], n_samples: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "samples rows latent"]:
        """Draw m + δ ⊙ ε + B ζ, ε and ζ ~ N(0, I)."""
        with torch.autocast(self.mean.device.type, enabled=False):
            mean, scale = _rows(self.mean, index), _variance(_rows(self.rho, index)).sqrt()
            factor = self._factor(index)
            epsilon = _noise((n_samples, *mean.shape), mean, generator)
            n_zetas = len(index) if self.independent else 1
            zeta = _noise((n_samples, n_zetas, self.rank), mean, generator)
            return mean + scale * epsilon + (factor @ zeta.unsqueeze(-1)).squeeze(-1)

    def kl(self, index: Int[Tensor, "rows"]) -> Float[Tensor, "groups"]:
        """Compute ½ [Σᵢ (mᵢ² + δᵢ² + Σⱼ bᵢⱼ²) − h − ln det S], ln det S = ln det(I + Bᵀ diag(δ⁻²) B) + Σᵢ ln δᵢ²."""
        with torch.autocast(self.mean.device.type, enabled=False):
            if not self.independent:
                index = torch.arange(len(self.mean), device=self.mean.device)
            mean, variance, factor = _rows(self.mean, index), _variance(_rows(self.rho, index)), self._factor(index)
            if not self.independent:  # one Gaussian over all rows: one long vector, one tall B
                mean, variance, factor = mean.reshape(1, -1), variance.reshape(1, -1), factor.reshape(1, -1, self.rank)
            identity = torch.eye(self.rank, dtype=mean.dtype, device=mean.device)
            capacitance = identity + factor.mT @ (factor / variance.unsqueeze(-1))
            half_log_det = torch.linalg.cholesky(capacitance).diagonal(dim1=-2, dim2=-1).log().sum(-1)
            trace = (variance + (factor**2).sum(-1)).sum(-1)
            return 0.5 * ((mean**2).sum(-1) + trace - mean.shape[-1] - variance.log().sum(-1)) - half_log_det

    @torch.no_grad()
    def moments(self, index: Int[Tensor, "rows"]) -> Moments:
        return _rows(self.mean, index), _variance(_rows(self.rho, index)), self._factor(index)

    @torch.no_grad()
    def reset_to_prior(self, index: Int[Tensor, "rows"]) -> None:
        self.mean[index] = 0.0
        self.rho[index] = UNIT_RHO
        self.factor[index] = 0.0

    def _factor(self, index: Int[Tensor, "rows"]) -> Float[Tensor, "rows latent rank"]:
        return _rows(self.factor, index).unflatten(-1, (-1, self.rank))


def _noise(shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw from N(0, 1)."""
    return torch.randn(shape, dtype=like.dtype, device=like.device, generator=generator)


def _normal(n_rows: int, size: int, scale: float) -> nn.Parameter:
    return nn.Parameter(torch.randn(n_rows, size) * scale)


def _uniform(n_rows: int, size: int, bounds: tuple[float, float]) -> nn.Parameter:
    return nn.Parameter(torch.empty(n_rows, size).uniform_(*bounds))


def _variance(rho: Tensor) -> Tensor:
    """Compute δ² = softplus(ρ) + floor. The floor is added, not clamped, so that the gradient never vanishes."""
    return functional.softplus(rho) + VARIANCE_FLOOR


def _rows(parameter: Tensor, index: Int[Tensor, "rows"]) -> Float[Tensor, "rows columns"]:
    return functional.embedding(index.to(parameter.device), parameter, sparse=True)
