"""Interface of encoders: a corpus is prepared once, then any of its sentences give one vector per word."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.config import Config, SentencePooling
from crossfill.errors import DataError, EncoderError
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Unit

if TYPE_CHECKING:
    from crossfill.encoders.frozen import StoredVectors
    from crossfill.encoders.huggingface import Source, WordEncoder
    from crossfill.encoders.surface import Surface


Kind = TypeVar("Kind", bound="Inputs")


class Inputs(ABC):
    """A corpus prepared for an encoder: tensors whose rows belong to sentences, one sentence after the other."""

    lengths: Int[Tensor, "sentences"]
    """Words per sentence."""

    @abstractmethod
    def rows(self) -> Mapping[str, Int[Tensor, "sentences"] | None]:
        """Name all tensors, each with the number of its rows in every sentence; none: one row each."""

    def take(self: Kind, sentences: Int[Tensor, "chosen"]) -> Kind:
        """Take the inputs of these sentences, in this order."""

        def rows_of(tensor: Tensor, counts: Int[Tensor, "sentences"] | None) -> Tensor:
            if counts is None:
                return tensor[sentences]
            return tensor[ranges((counts.cumsum(0) - counts)[sentences], counts[sentences])]

        return self._with({name: rows_of(getattr(self, name), counts) for name, counts in self.rows().items()})

    def followed_by(self: Kind, others: "Sequence[Inputs]") -> Kind:
        """Concatenate these inputs with others of the same encoder."""
        parts = [self, *(expect(other, type(self)) for other in others)]
        return self._with({name: torch.cat([getattr(part, name) for part in parts]) for name in self.rows()})

    def _with(self: Kind, tensors: Mapping[str, Tensor]) -> Kind:
        changed = copy.copy(self)  # what was checked before is not checked again
        vars(changed).update(tensors)
        return changed


def expect(inputs: Inputs, kind: type[Kind]) -> Kind:
    """Check that inputs are of the kind that this encoder prepares, and return them."""
    if not isinstance(inputs, kind):
        raise DataError(f"expected {kind.__name__}, got {type(inputs).__name__}: inputs of another encoder")
    return inputs


class EncoderParts(NamedTuple):
    """What an encoder computes in a language: (s − mean) / scale, s by `words`, and the surface of words beside it."""

    words: "WordEncoder"
    mean: Float[Tensor, "states"]
    scale: Float[Tensor, "states"]
    surface: "Surface | None" = None


class Encoder(nn.Module, ABC):
    """A multilingual network that computes the features of words."""

    n_features: int
    """Size of a word's vector."""
    query: nn.Parameter | None
    """What attention looks for in a sentence; none where its vector is the mean of its words'."""
    is_centred: bool = False
    """Whether features of a word are those of the language that its sentence is prepared or `recentred` as."""
    source: "Source | None" = None
    """The pretrained model that it is made of, if any."""
    stored: "StoredVectors | None" = None
    """The vectors that it reads from a cache, if its network stays frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.register_parameter("query", None)

    def with_pooling(self, sentences: SentencePooling) -> "Encoder":
        """Make vectors of sentences this way from now on; attention starts as the mean."""
        self.query = nn.Parameter(torch.zeros(self.n_features)) if sentences == "attention" else None
        return self

    def pool(
        self, words: Float[Tensor, "words features"], lengths: Int[Tensor, "sentences"], unit: Unit
    ) -> Float[Tensor, "items width"]:
        """Make the vectors of sentences or pairs from those of their words; words stay as they are."""
        return pool(words, lengths, unit, self.query)

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

    def parts(self, language: str) -> EncoderParts:  # noqa: ARG002
        """Take the encoder apart for a language, so that other software can compute what it does."""
        raise EncoderError(f"expected an encoder over a pretrained network, got {type(self).__name__}")


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


def build_encoder(
    config: Config, languages: Sequence[str], cache: Path | bool = True, quiet: bool = True, weights: bool = True
) -> Encoder:
    """Build the encoder that the config names, reproducibly for a given seed.

    `cache` is the folder for its features, or whether to use the default one. Without `weights`, a trainable encoder is
    built without pretrained weights, for those of a trained model to be loaded into.
    """
    torch.manual_seed(config.training.seed)
    settings = config.encoder
    if settings.surface and (settings.name == "compact" or settings.pretrained.mode != "frozen"):
        raise EncoderError("encoder.surface: expected a frozen pretrained encoder; set encoder.pretrained.mode=frozen")
    if settings.name == "compact":
        from crossfill.encoders.compact import CompactEncoder

        encoder: Encoder = CompactEncoder(settings)
    elif settings.pretrained.mode == "frozen":
        from crossfill.encoders.frozen import FrozenEncoder

        encoder = FrozenEncoder(settings, languages, cache, quiet)
    else:
        from crossfill.encoders.huggingface import FinetunedEncoder

        encoder = FinetunedEncoder(settings, weights)
    return encoder.with_pooling(settings.sentences)


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
    query: Float[Tensor, "features"] | None = None,
) -> Float[Tensor, "items width"]:
    """Make the vector of each item; a pair is two sentences, one after the other.

    A sentence's vector u is the mean of its words' or, with the query q of attention, Σ aᵢ xᵢ, a = softmax(x · q) over
    its words; zero if it has none. That of a pair of sentences is u ⊕ v ⊕ |u − v| ⊕ (u ⊙ v).
    """
    if unit is Unit.WORD:
        return words
    lengths = lengths.to(words.device)
    rows = torch.repeat_interleave(lengths, output_size=len(words))
    shares = 1 / lengths[rows].to(words) if query is None else _softmax(words @ query.to(words), rows, len(lengths))
    vectors = words.new_zeros(len(lengths), words.shape[1]).index_add(0, rows, words * shares.unsqueeze(1))
    if unit is Unit.SENTENCE:
        return vectors
    u, v = vectors[0::2], vectors[1::2]
    return torch.cat([u, v, (u - v).abs(), u * v], dim=1)


def _softmax(
    scores: Float[Tensor, "words"], sentence_of: Int[Tensor, "words"], n_sentences: int
) -> Float[Tensor, "words"]:
    """Compute the softmax of scores over the words of each sentence."""
    highest = scores.detach().new_full((n_sentences,), -torch.inf)
    highest = highest.scatter_reduce(0, sentence_of, scores.detach(), "amax")
    weights = (scores - highest[sentence_of]).exp()
    return weights / weights.new_zeros(n_sentences).index_add(0, sentence_of, weights)[sentence_of]


def sentences_of(items: Int[Tensor, "items"], unit: Unit) -> Int[Tensor, "sentences"]:
    """List the sentences that make up these items, in the encoder's inputs."""
    return items if unit is not Unit.PAIR else torch.stack([2 * items, 2 * items + 1], dim=1).flatten()
