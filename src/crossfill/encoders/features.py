"""Precomputed features in place of an encoder, and dropout on features."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.encoders.base import Encoder, Inputs, expect
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus


@dataclass(frozen=True)
class FeatureInputs(Inputs):
    """The vectors of a corpus, word by word."""

    features: Float[Tensor, "words features"]
    lengths: Int[Tensor, "sentences"]

    def __post_init__(self) -> None:
        if len(self.features) != int(self.lengths.sum()):
            raise DataError(f"expected {int(self.lengths.sum())} word vectors, got {len(self.features)}")
        finite = torch.isfinite(self.features).all(dim=-1)
        if not finite.all():
            word = int((~finite).nonzero()[0])
            sentence = int((self.lengths.cumsum(0) <= word).sum())
            raise DataError(
                f"expected finite features, got NaN or infinity in {int((~finite).sum())} of {len(finite)} words, "
                f"first in sentence {sentence + 1}; encode the corpus again"
            )

    def rows(self) -> dict[str, Int[Tensor, "sentences"] | None]:
        return {"features": self.lengths, "lengths": None}


class FeatureEncoder(Encoder):
    """Returns precomputed features; its inputs are `FeatureInputs`, since it cannot read a corpus."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.n_features = n_features

    def prepare(self, corpus: Corpus, language: str = "") -> Inputs:  # noqa: ARG002
        raise DataError(f"expected given features for this corpus of {len(corpus)} sentences, got text")

    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        return expect(inputs, FeatureInputs).features


class Dropout(nn.Module):
    """Sets features to zero at random and scales the rest to keep the mean; one random byte decides for each feature.

    The share is therefore rounded to a multiple of 1/256. One random 64-bit integer serves eight features, which is
    several times as fast as `nn.Dropout` on a CPU.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.dropped = min(255, round(256 * share))
        """Share of features set to zero, in units of 1/256."""

    def forward(self, features: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch features"]:
        if not self.training or not self.dropped:
            return features
        n_words = -(-features.numel() // 8)
        limits = torch.iinfo(torch.int64)
        words = torch.empty(n_words, dtype=torch.int64, device=features.device).random_(limits.min, None)
        passes = words.view(torch.uint8)[: features.numel()].view(features.shape) >= self.dropped
        return features * passes * (256 / (256 - self.dropped))
