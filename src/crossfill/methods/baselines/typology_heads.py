"""Heads that are given a vector for each language, by its typology and by the centroid of its text."""

from abc import ABC
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.grid.cells import Inventory
from crossfill.methods.anchors import language_anchors
from crossfill.methods.method import Plan
from crossfill.model import HeadSource, Model


class TypologyVectorHeads(HeadSource, ABC):
    """Heads with a given vector v for each language: what PF takes for the centres of its priors, and no more."""

    vectors: Float[Tensor, "languages size"]

    def __init__(self, inventory: Inventory, size: int) -> None:
        super().__init__()
        self.inventory = inventory
        self.register_buffer("vectors", torch.zeros(len(inventory.languages), size))

    @torch.no_grad()
    def describe(self, vectors: Mapping[str, Float[np.ndarray, "size"]]) -> None:
        """Set the vectors of these languages; they are saved with the weights."""
        for language, vector in vectors.items():
            self.vectors[self.inventory.language_index(language)] = torch.from_numpy(vector)

    def vector(self, language: str) -> Float[Tensor, "size"]:
        """The vector of a language."""
        return self.vectors[self.inventory.language_index(language)]


def describe(heads: TypologyVectorHeads, encoder: Encoder, config: Config) -> None:
    """Give these heads the vectors of all languages: those that `latents.prior: similar` centres priors on."""
    heads.describe(language_anchors(heads.inventory.languages, encoder, config))


def prepare(model: Model, plan: Plan, config: Config) -> None:
    """Look up the vectors of all languages."""
    if not isinstance(model.heads, TypologyVectorHeads):
        raise TypeError(f"expected heads with vectors of languages, got {type(model.heads).__name__}")
    describe(model.heads, model.encoder, config)
