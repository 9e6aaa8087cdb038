"""Features that are given: a frozen encoder whose vectors were computed before."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.encoders.base import Encoder, Inputs, expect, ranges
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus


@dataclass(frozen=True)
class FeatureInputs(Inputs):
    """The vectors of a corpus, word after word."""

    features: Float[Tensor, "words features"]
    lengths: Int[Tensor, "sentences"]
    checked: bool = False
    """Whether the features are known to be finite, so that batches of them need not be looked through again."""

    def __post_init__(self) -> None:
        if self.checked:
            return
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

    def take(self, sentences: Int[Tensor, "chosen"]) -> "FeatureInputs":
        starts = self.lengths.cumsum(0) - self.lengths
        words = ranges(starts[sentences], self.lengths[sentences])
        return FeatureInputs(self.features[words], self.lengths[sentences], checked=True)

    def followed_by(self, others: Sequence[Inputs]) -> "FeatureInputs":
        parts = [self, *(expect(other, FeatureInputs) for other in others)]
        features, lengths = torch.cat([p.features for p in parts]), torch.cat([p.lengths for p in parts])
        return FeatureInputs(features, lengths, checked=True)


class FeatureEncoder(Encoder):
    """Passes given features through. `FeatureInputs` stand in for a corpus."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.n_features = n_features

    def prepare(self, corpus: Corpus, language: str = "") -> Inputs:  # noqa: ARG002
        raise DataError(f"expected given features for this corpus of {len(corpus)} sentences, got text")

    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        return expect(inputs, FeatureInputs).features
