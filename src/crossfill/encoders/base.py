"""Interface of encoders: a corpus is prepared once, then any of its sentences give one vector per word."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.config import SentencePooling
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Unit


class Inputs(ABC):
    """A corpus prepared for an encoder."""

    lengths: Int[Tensor, "sentences"]
    """Words per sentence."""

    @abstractmethod
    def take(self, sentences: Int[Tensor, "chosen"]) -> "Inputs":
        """Take the inputs of these sentences, in this order."""

    @abstractmethod
    def followed_by(self, others: "Sequence[Inputs]") -> "Inputs":
        """Concatenate these inputs with others of the same encoder."""


Kind = TypeVar("Kind", bound=Inputs)


def expect(inputs: Inputs, kind: type[Kind]) -> Kind:
    """Check that inputs are of the kind that this encoder prepares, and return them."""
    if not isinstance(inputs, kind):
        raise DataError(f"expected {kind.__name__}, got {type(inputs).__name__}: inputs of another encoder")
    return inputs


class Encoder(nn.Module, ABC):
    """A multilingual network that computes the features of words."""

    n_features: int
    """Size of a word's vector."""
    sentences: SentencePooling = "mean"
    """How the vectors of words become those of sentences (`pool`)."""
    query: nn.Parameter | None
    """What attention looks for in a sentence; none with other poolings."""
    is_centred: bool = False
    """Whether features of a word are those of the language that its sentence is prepared or `recentred` as."""

    def __init__(self) -> None:
        super().__init__()
        self.register_parameter("query", None)

    def pool(
        self, words: Float[Tensor, "words features"], lengths: Int[Tensor, "sentences"], unit: Unit
    ) -> Float[Tensor, "items width"]:
        """Make the vectors of sentences or pairs from those of their words; words stay as they are."""
        return pool(words, lengths, unit, self.sentences, self.query)

    @abstractmethod
    def prepare(self, corpus: Corpus, language: str = "") -> Inputs:
        """Prepare a corpus of a language for `forward`: all work that does not depend on trainable weights."""

    @abstractmethod
    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        """Compute one vector for each word of these sentences, one sentence after the other."""

    def centre_on(self, texts: Mapping[str, Sequence[Corpus]]) -> None:
        """Estimate each language's mean features from its unlabelled text, if features are centred."""

    def centroids(self) -> dict[str, Float[np.ndarray, "features"]]:
        """Return the mean vector of each language's words; empty if features are not centred."""
        return {}

    def recentred(self, inputs: Inputs, language: str) -> Inputs:  # noqa: ARG002
        """Centre the same sentences as another language's, without another pass through the network."""
        return inputs

    def with_language(self, language: str, text: Corpus) -> "Encoder":  # noqa: ARG002
        """Return an encoder that knows one more language by this text of it; all others stay as they are."""
        return self


def ranges(starts: Int[Tensor, "n"], lengths: Int[Tensor, "n"]) -> Int[Tensor, "total"]:
    """List the positions start, start + 1, …, start + length − 1 of every range, one range after the other.

    >>> ranges(torch.tensor([5, 0]), torch.tensor([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = lengths.cumsum(0)
    total = int(ends[-1]) if len(ends) else 0
    shift = torch.repeat_interleave(starts - (ends - lengths), lengths, output_size=total)
    return torch.arange(total) + shift


def pool(
    words: Float[Tensor, "words features"],
    lengths: Int[Tensor, "sentences"],
    unit: Unit,
    sentences: SentencePooling = "mean",
    query: Float[Tensor, "features"] | None = None,
) -> Float[Tensor, "items width"]:
    """Make the vector of each item; a pair is two sentences, one after the other.

    A sentence's vector u is the mean of its words', that of its last word, or with attention Σ aᵢ xᵢ, where
    a = softmax(x · q) over its words and the query q is learnt; zero if it has none. That of a pair of sentences is
    u ⊕ v ⊕ |u − v| ⊕ (u ⊙ v).
    """
    if unit is Unit.WORD:
        return words
    lengths = lengths.to(words.device)
    vectors = words.new_zeros(len(lengths), words.shape[1])
    if sentences == "last":
        vectors[lengths > 0] = words[(lengths.cumsum(0) - 1)[lengths > 0]]
    else:
        rows = torch.repeat_interleave(lengths, output_size=len(words))
        shares = _shares(words, rows, lengths, query) if sentences == "attention" else 1 / lengths[rows].to(words)
        vectors = vectors.index_add(0, rows, words * shares.unsqueeze(1))
    if unit is Unit.SENTENCE:
        return vectors
    u, v = vectors[0::2], vectors[1::2]
    return torch.cat([u, v, (u - v).abs(), u * v], dim=1)


def _shares(
    words: Float[Tensor, "words features"],
    rows: Int[Tensor, "words"],
    lengths: Int[Tensor, "sentences"],
    query: Float[Tensor, "features"] | None,
) -> Float[Tensor, "words"]:
    """Compute softmax(x · q) over the words of each sentence."""
    if query is None:
        raise ValueError("attention: expected a query, got none")
    scores = words @ query.to(words)
    highest = scores.detach().new_full((len(lengths),), -torch.inf)
    highest = highest.scatter_reduce(0, rows, scores.detach(), "amax")
    weights = (scores - highest[rows]).exp()
    return weights / weights.new_zeros(len(lengths)).index_add(0, rows, weights)[rows]


def sentences_of(items: Int[Tensor, "items"], unit: Unit) -> Int[Tensor, "sentences"]:
    """List the sentences that make up these items, in the encoder's inputs."""
    return items if unit is not Unit.PAIR else torch.stack([2 * items, 2 * items + 1], dim=1).flatten()
