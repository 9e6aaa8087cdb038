"""The design matrix of an adapted head: features, the one of the bias, and a one for each cue that the cell knows."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from crossfill.adaptation.examples import Examples
from crossfill.encoders.cues import Cue, kinds

MOST, ONCE = 1024, (Cue.WORD, Cue.SHAPE)
"""Of each kind of cue, at most MOST are learnt: those of the kinds in ONCE, and of others those that occur twice."""


def learnt_cues(cues: Int[Tensor, "words cues"], learnt: Collection[Cue] = tuple(Cue)) -> Int[Tensor, "known"]:
    """Return the cues of these kinds that a cell learns from its words, in rising order."""
    distinct, counts = cues[cues >= 0].unique(return_counts=True)
    of_kind, chosen = kinds(distinct), []
    for kind in learnt:
        frequent = ((of_kind == int(kind)) & (counts >= (1 if kind in ONCE else 2))).nonzero().squeeze(1)
        chosen.append(frequent[counts[frequent].argsort(descending=True, stable=True)[:MOST]])
    return distinct[torch.cat(chosen)].sort().values if chosen else distinct[:0]


def looked_up(
    cues: Int[Tensor, "words cues"], known: Int[Tensor, "known"]
) -> tuple[Int[Tensor, "found"], Int[Tensor, "found"]]:
    """Find the cues that are known: the positions of their words, and their places among those."""
    if not len(known):
        return known.new_zeros(0), known.new_zeros(0)
    place = torch.searchsorted(known, cues).clamp(max=len(known) - 1)
    words, columns = (known[place] == cues).nonzero(as_tuple=True)
    return words, place[words, columns]


@dataclass(frozen=True)
class DesignMatrix:
    """X, one row per word: columns that are given, then one for each known cue, zero but for few words."""

    given: Float[Tensor, "words given"]
    words: Int[Tensor, "found"]
    """The words that have a known cue, once for each."""
    places: Int[Tensor, "found"]
    """The places of these cues among those that are known."""
    values: Float[Tensor, "known"]
    """The value of each known cue's column where it is not zero."""

    @classmethod
    def of(cls, examples: Examples, known: Int[Tensor, "known"]) -> "DesignMatrix":
        """The matrix of a cell that knows these cues, in float64."""
        given = functional.pad(examples.features.double(), (0, 1), value=1.0)
        return cls(given, *looked_up(examples.cues, known), given.new_ones(len(known)))

    @classmethod
    def plain(cls, given: Float[Tensor, "words given"]) -> "DesignMatrix":
        """A matrix without any cues."""
        nothing = torch.zeros(0, dtype=torch.long)
        return cls(given, nothing, nothing, given.new_zeros(0))

    def __len__(self) -> int:
        return len(self.given)

    def to(self, kind: torch.dtype) -> "DesignMatrix":
        """Convert to another precision."""
        return replace(self, given=self.given.to(kind), values=self.values.to(kind))

    def scaled(self, scale: Float[Tensor, "parameters"]) -> "DesignMatrix":
        """X diag(scale)."""
        n_given = self.given.shape[1]
        return replace(self, given=self.given * scale[:n_given], values=self.values * scale[n_given:])

    def take(self, words: Int[Tensor, "chosen"]) -> "DesignMatrix":
        """Some of the rows."""
        rows = torch.full((len(self),), -1)
        rows[words] = torch.arange(len(words))
        chosen = rows[self.words] >= 0
        return DesignMatrix(self.given[words], rows[self.words[chosen]], self.places[chosen], self.values)

    def times(self, parameters: Float[Tensor, "labels parameters"]) -> Float[Tensor, "words labels"]:
        """X θᵀ."""
        n_given = self.given.shape[1]
        effects = (parameters[:, n_given:] * self.values).T
        return (self.given @ parameters[:, :n_given].T).index_add_(0, self.words, effects[self.places])

    def transpose_product(self, gradients: Float[Tensor, "words labels"]) -> Float[Tensor, "labels parameters"]:
        """Gᵀ X."""
        of_cues = gradients.new_zeros(len(self.values), gradients.shape[1])
        of_cues.index_add_(0, self.places, gradients[self.words])
        return torch.cat([gradients.T @ self.given, of_cues.T * self.values], 1)
