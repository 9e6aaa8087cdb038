"""Given features in place of an encoder."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from crossfill.encoders.base import Encoder, Inputs, expect
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus


@dataclass(frozen=True)
class FeatureInputs(Inputs):
    """The vectors of a corpus, word by word."""

    features: Float[Tensor, "words features"]
    lengths: Int[Tensor, "sentences"]

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
