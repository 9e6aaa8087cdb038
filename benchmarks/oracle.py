"""An oracle that knows each language's settings: what factorization could reach if it inferred languages perfectly."""

from collections.abc import Collection, Mapping

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.config import Config
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.factorized.factorized_heads import FactorizedHeads
from crossfill.methods.factorized.posteriors import Posterior


class KnownLatents(Posterior):
    """Latents that are given: without variance, and with a KL divergence of 0."""

    independent = True

    def __init__(self, vectors: Float[Tensor, "rows latent"]) -> None:
        super().__init__()
        self.mean = nn.Parameter(vectors, requires_grad=False)

    def sample(
        self, index: Int[Tensor, "rows"], n_samples: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "samples rows latent"]:
        return self.mean[index].expand(n_samples, -1, -1)

    def kl(self, index: Int[Tensor, "rows"]) -> Float[Tensor, "groups"]:
        return torch.zeros(len(index))

    def moments(
        self, index: Int[Tensor, "rows"]
    ) -> tuple[Float[Tensor, "rows latent"], Float[Tensor, "rows latent"], Float[Tensor, "rows latent rank"]]:
        mean = self.mean[index]
        return mean, torch.zeros_like(mean), mean.new_zeros(*mean.shape, 0)

    def reset_to_prior(self, index: Int[Tensor, "rows"]) -> None:
        raise DataError(f"given vectors are not reset; got {len(index)} rows")


def oracle_heads(
    inventory: Inventory,
    seen: Collection[Cell],
    n_features: int,
    config: Config,
    typology: Mapping[str, Float[np.ndarray, "settings"]],
) -> FactorizedHeads:
    """Heads generated from the true settings of a language in place of an inferred vector."""
    heads = FactorizedHeads(inventory, seen, n_features, config)
    settings = torch.tensor(np.stack([typology[language] for language in inventory.languages]), dtype=torch.float32)
    if settings.shape[1] > config.latents.size:
        raise DataError(f"expected latents.size of at least {settings.shape[1]} settings, got {config.latents.size}")
    heads.languages = KnownLatents(torch.nn.functional.pad(settings, (0, config.latents.size - settings.shape[1])))
    return heads
