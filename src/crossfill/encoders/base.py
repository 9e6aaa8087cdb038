"""Interface of encoders: a corpus is prepared once, then any of its sentences give one vector per word."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.config import SentencePooling
from crossfill.encoders.pooling import pool
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Unit


class Inputs(ABC):
    """A corpus prepared for an encoder."""

    lengths: Int[Tensor, "sentences"]
    """Words per sentence."""

    @abstractmethod
    def take(self, sentences: Int[Tensor, "chosen"]) -> "Inputs":
        """The inputs of these sentences, in this order."""

    @abstractmethod
    def followed_by(self, others: "Sequence[Inputs]") -> "Inputs":
        """Concatenate these inputs with others of the same encoder."""


Kind = TypeVar("Kind", bound=Inputs)


def expect(inputs: Inputs, kind: type[Kind]) -> Kind:
    """The inputs, after a check that they are of the kind that this encoder prepares."""
    if not isinstance(inputs, kind):
        raise DataError(f"expected {kind.__name__}, got {type(inputs).__name__}: inputs of another encoder")
    return inputs


class Encoder(nn.Module, ABC):
    """A multilingual network that computes the features of words."""

    n_features: int
    """Size of a word's vector."""
    n_extra: int = 0
    """Columns at its end that say which word it is, not what it is like."""
    sentences: SentencePooling = "mean"
    """How the vectors of words become those of sentences (`encoders.pooling`)."""
    query: nn.Parameter | None
    """What attention looks for in a sentence; none with other poolings."""

    def __init__(self) -> None:
        super().__init__()
        self.register_parameter("query", None)

    def pool(
        self, words: Float[Tensor, "words features"], lengths: Int[Tensor, "sentences"], unit: Unit
    ) -> Float[Tensor, "items width"]:
        """The vectors of sentences or pairs from those of their words; words stay as they are."""
        return pool(words, lengths, unit, self.sentences, self.query)

    @abstractmethod
    def prepare(self, corpus: Corpus, language: str = "") -> Inputs:
        """Prepare a corpus of a language for `forward`: all work that does not depend on trainable weights."""

    @abstractmethod
    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        """One vector for each word of these sentences, one sentence after the other."""


class CentredEncoder(Encoder, ABC):
    """An encoder that can centre the features of each language, which brings languages closer together."""

    @abstractmethod
    def centre_on(self, texts: Mapping[str, Sequence[Corpus]]) -> None:
        """Estimate each language's mean features from its unlabelled text."""

    @abstractmethod
    def centroids(self) -> dict[str, Float[np.ndarray, "features"]]:
        """The mean vector of each language's words; empty if features are not centred."""

    @abstractmethod
    def recentred(self, inputs: Inputs, language: str) -> Inputs:
        """The same sentences, centred as another language's, without another pass through the network."""


def ranges(starts: Int[Tensor, "n"], lengths: Int[Tensor, "n"]) -> Int[Tensor, "total"]:
    """The positions start, start + 1, …, start + length − 1 of every range, one range after the other.

    >>> ranges(torch.tensor([5, 0]), torch.tensor([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = lengths.cumsum(0)
    total = int(ends[-1]) if len(ends) else 0
    shift = torch.repeat_interleave(starts - (ends - lengths), lengths, output_size=total)
    return torch.arange(total) + shift
