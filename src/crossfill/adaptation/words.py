"""Which word it is, beside the features of a word: what lets an adapted head learn words by heart.

A frequent word of a handful of sentences comes again in other text, mostly with the same label, and its features vary
with its neighbours. So the encoder of an adapted model adds a column to its features, a number that stands for the
word's form, upper and lower case alike. Heads of all other cells ignore it.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from crossfill.encoders.base import CentredEncoder, Encoder, Inputs, expect, ranges
from crossfill.grid.sentence import Column, Corpus
from crossfill.grid.unit import Unit
from crossfill.model import Model

MOST_WORDS = 1024
"""Words that a cell learns by heart, at most: the most frequent ones of its sentences."""
_LARGEST = 2**24
"""Numbers below this are whole in single precision, and so many that words hardly ever share one."""


def word_numbers(words: Column) -> Float[Tensor, "words"]:
    """The number of each word, the same for upper and lower case."""
    of_form = [zlib.crc32(word.lower().encode("utf-8", "surrogatepass")) % _LARGEST for word in words.vocabulary]
    return torch.from_numpy(np.array(of_form, dtype=np.float32)[words.codes])


def lexicon(numbers: Float[Tensor, "words"]) -> Int[Tensor, "known"]:
    """The most frequent words, sorted by their numbers; whole sentences have none."""
    found, counts = numbers[numbers >= 0].long().unique(return_counts=True)
    frequent = counts.argsort(descending=True, stable=True)[:MOST_WORDS]
    return found[frequent].sort().values


def looked_up(
    numbers: Float[Tensor, "words"], known: Int[Tensor, "known"]
) -> tuple[Int[Tensor, "found"], Int[Tensor, "found"]]:
    """The words that are in a lexicon, as positions among the words, and their places in the lexicon."""
    if not len(known):
        return known.new_zeros(0), known.new_zeros(0)
    asked = numbers.long()
    place = torch.searchsorted(known, asked).clamp(max=len(known) - 1)
    found = (known[place] == asked).nonzero().squeeze(1)
    return found, place[found]


@dataclass(frozen=True)
class WordedInputs(Inputs):
    """A corpus prepared for an encoder, and the numbers of its words."""

    inner: Inputs
    numbers: Float[Tensor, "words"]

    @property
    def lengths(self) -> Int[Tensor, "sentences"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.lengths

    def take(self, sentences: Int[Tensor, "chosen"]) -> "WordedInputs":
        words = ranges((self.lengths.cumsum(0) - self.lengths)[sentences], self.lengths[sentences])
        return WordedInputs(self.inner.take(sentences), self.numbers[words])

    def followed_by(self, others: Sequence[Inputs]) -> "WordedInputs":
        parts = [expect(other, WordedInputs) for other in others]
        inner = self.inner.followed_by([part.inner for part in parts])
        return WordedInputs(inner, torch.cat([self.numbers, *(part.numbers for part in parts)]))


class WordedEncoder(CentredEncoder):
    """The features of another encoder, and the number of each word as the last column."""

    def __init__(self, inner: Encoder) -> None:
        super().__init__()
        self.inner, self.sentences = inner, inner.sentences
        self.n_features, self.n_extra = inner.n_features + 1, 1

    def pool(
        self, words: Float[Tensor, "words features"], lengths: Int[Tensor, "sentences"], unit: Unit
    ) -> Float[Tensor, "items width"]:
        """As the other encoder does; sentences and pairs are no words, so that their number is −1."""
        if unit is Unit.WORD:
            return words
        return functional.pad(self.inner.pool(words[:, :-1], lengths, unit), (0, 1), value=-1.0)

    def prepare(self, corpus: Corpus, language: str = "") -> WordedInputs:
        return WordedInputs(self.inner.prepare(corpus, language), word_numbers(corpus.words))

    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        inputs = expect(inputs, WordedInputs)
        features = self.inner(inputs.inner)
        kind = features.dtype if features.dtype.itemsize >= 4 else torch.float32  # numbers have to stay whole
        return torch.cat([features.to(kind), inputs.numbers.to(features.device, kind).unsqueeze(1)], 1)

    def centre_on(self, texts: Mapping[str, Sequence[Corpus]]) -> None:
        if isinstance(self.inner, CentredEncoder):
            self.inner.centre_on(texts)

    def centroids(self) -> dict[str, Float[np.ndarray, "features"]]:
        return self.inner.centroids() if isinstance(self.inner, CentredEncoder) else {}

    def recentred(self, inputs: Inputs, language: str) -> Inputs:
        inputs = expect(inputs, WordedInputs)
        if not isinstance(self.inner, CentredEncoder):
            return inputs
        return WordedInputs(self.inner.recentred(inputs.inner, language), inputs.numbers)


def with_words(model: Model) -> Model:
    """The model with the number of each word beside its features; one that has it already as it is."""
    if isinstance(model.encoder, WordedEncoder):
        return model
    return Model(WordedEncoder(model.encoder), model.heads, model.inventory, model.seen).train(model.training)
