"""What a frozen encoder is given: cached vectors, the language of each sentence, and the surface of its words."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from crossfill.encoders.base import Inputs, expect
from crossfill.encoders.features import FeatureInputs
from crossfill.encoders.surface import SurfaceInputs


@dataclass(frozen=True)
class FrozenInputs(Inputs):
    """The cached vectors of a corpus, the language that each sentence is centred as, and the surface of its words."""

    given: FeatureInputs
    languages: Int[Tensor, "sentences"]
    surface: SurfaceInputs | None = None

    @property
    def lengths(self) -> Int[Tensor, "sentences"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.given.lengths

    def take(self, sentences: Int[Tensor, "chosen"]) -> "FrozenInputs":
        surface = None if self.surface is None else self.surface.take(sentences)
        return FrozenInputs(self.given.take(sentences), self.languages[sentences], surface)

    def followed_by(self, others: Sequence[Inputs]) -> "FrozenInputs":
        parts = [expect(other, FrozenInputs) for other in others]
        given = self.given.followed_by([part.given for part in parts])
        surfaces = [part.surface for part in parts if part.surface is not None]
        surface = None if self.surface is None else self.surface.followed_by(surfaces)
        return FrozenInputs(given, torch.cat([self.languages, *(part.languages for part in parts)]), surface)
