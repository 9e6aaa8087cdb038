"""The inputs of an adapted head's parameters: features, the one of the bias, and a one for each cue known by heart.

Where a method has layers below its affine heads, features here are what the last of them gives.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from crossfill.adaptation.words import N_CUES, Cue, lexicon, looked_up
from crossfill.errors import DataError
from crossfill.methods.baselines.joint_deep import DeepHead
from crossfill.model import Classifier, Head

Body = nn.Sequential
"""The layers below an affine head."""


def affine(classifier: Classifier) -> tuple[Body | None, Head]:
    """The affine head of a classifier, its last layer, and the layers below it if there are any."""
    if isinstance(classifier, DeepHead):
        *below, last = classifier.network
        return nn.Sequential(*below), Head.of(last)
    if isinstance(classifier, Head):
        return None, classifier
    raise DataError(f"expected a method with affine heads, got {type(classifier).__name__}")


def with_parameters(classifier: Classifier, parameters: Float[Tensor, "labels features_and_bias"]) -> Classifier:
    """An affine classifier with other parameters; a deeper one as it is."""
    body, head = affine(classifier)
    return classifier if body is not None else Head(parameters.unsqueeze(0).to(head.parameters))


@dataclass(frozen=True)
class DesignMatrix:
    """X, one row per word: columns that are given, then one for each cue known by heart, zero but for few words."""

    given: Float[Tensor, "words given"]
    words: Int[Tensor, "found"]
    """The words that have a known cue, once for each."""
    places: Int[Tensor, "found"]
    """The places of these cues among those that are known."""
    values: Float[Tensor, "known"]
    """The value of each known cue's column where it is not zero."""

    @classmethod
    def of(cls, given: Float[Tensor, "words given"]) -> "DesignMatrix":
        """A matrix without any cues."""
        nothing = torch.zeros(0, dtype=torch.long)
        return cls(given, nothing, nothing, given.new_zeros(0))

    def __len__(self) -> int:
        return len(self.given)

    def to(self, kind: torch.dtype) -> "DesignMatrix":
        """In another precision."""
        return replace(self, given=self.given.to(kind), values=self.values.to(kind))

    def scaled(self, scale: Float[Tensor, "parameters"]) -> "DesignMatrix":
        """X diag(scale)."""
        n_given = self.given.shape[1]
        return replace(self, given=self.given * scale[:n_given], values=self.values * scale[n_given:])

    def take(self, words: Int[Tensor, "chosen"]) -> "DesignMatrix":
        """Some of the rows."""
        rows = torch.full((len(self),), -1)
        rows[words] = torch.arange(len(words))
        kept = rows[self.words] >= 0
        return DesignMatrix(self.given[words], rows[self.words[kept]], self.places[kept], self.values)

    def dense(self) -> Float[Tensor, "words parameters"]:
        """X as one matrix."""
        known = self.given.new_zeros(len(self), len(self.values))
        known.index_put_((self.words, self.places), self.values[self.places], accumulate=True)
        return torch.cat([self.given, known], 1)

    def times(self, parameters: Float[Tensor, "labels parameters"]) -> Float[Tensor, "words labels"]:
        """X θᵀ."""
        n_given = self.given.shape[1]
        effects = (parameters[:, n_given:] * self.values).T
        return (self.given @ parameters[:, :n_given].T).index_add_(0, self.words, effects[self.places])

    def pull(self, slopes: Float[Tensor, "words labels"]) -> Float[Tensor, "labels parameters"]:
        """Sᵀ X."""
        known = slopes.new_zeros(len(self.values), slopes.shape[1]).index_add_(0, self.places, slopes[self.words])
        return torch.cat([slopes.T @ self.given, known.T * self.values], 1)


@dataclass(frozen=True)
class Design:
    """The inputs of an adapted head's parameters, in this order: features, bias, cues."""

    lexicon: Int[Tensor, "known"]
    """The cues that are known by heart, sorted by their numbers."""

    @classmethod
    def of(cls, features: Float[Tensor, "words features_and_cues"], learnt: Collection[Cue]) -> "Design":
        """The design for these words, which learns cues of these kinds by heart."""
        return cls(lexicon(features[:, -N_CUES:], learnt))

    def __call__(self, features: Float[Tensor, "words features_and_cues"]) -> DesignMatrix:
        """One row per word, in float64."""
        given, cues = features[:, :-N_CUES].double().cpu(), features[:, -N_CUES:].cpu()
        values = given.new_ones(len(self.lexicon))
        return DesignMatrix(functional.pad(given, (0, 1), value=1.0), *looked_up(cues, self.lexicon), values)
