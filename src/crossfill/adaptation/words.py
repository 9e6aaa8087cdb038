"""Which word it is, beside the features of a word: what lets an adapted head learn by heart.

A frequent word of a handful of sentences comes again in other text, mostly with the same label, and its features vary
with its neighbours. So do the last letters of words, and the words beside a word. The encoder of an adapted model adds
columns to its features for these *cues* of a word: numbers that stand for its form, upper and lower case alike, for its
last letters, and for the words before and after it. Heads of all other cells ignore them.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from crossfill.encoders.base import CentredEncoder, Encoder, Inputs, expect, ranges
from crossfill.grid.sentence import Column, Corpus
from crossfill.grid.task import Unit
from crossfill.model import Model


class Cue(IntEnum):
    """A kind of cue."""

    WORD = 0
    """The word itself."""
    ENDING = 1
    """Its last one, two or three letters, if it has more."""
    NEIGHBOUR = 2
    """The word before it, and the word after it."""


ENDINGS = (1, 2, 3)
"""Numbers of last letters."""
N_CUES = 1 + len(ENDINGS) + 2
"""Columns: the word, its endings, the word before it, the word after it."""
NONE = -1.0
"""The number where a word has no such cue."""
MOST, LEAST = 1024, {Cue.WORD: 1, Cue.ENDING: 2, Cue.NEIGHBOUR: 2}
"""A cell learns the most frequent cues of each kind by heart, at most so many, that occur in its sentences so often."""
_FIRST = (0, 2**23, 2**23 + 2**22, 2**24)
"""Where the numbers of each kind of cue begin. Below the last, numbers are whole in single precision, and there are so
many of them that cues hardly ever share one."""


def cue_numbers(words: Column, lengths: Int[np.ndarray, "sentences"]) -> Float[Tensor, "words cues"]:
    """The numbers of the cues of each word, the same for upper and lower case, in sentences of these lengths."""
    forms, of_word = [word.lower() for word in words.vocabulary], words.codes

    def numbered(kind: Cue, texts: Sequence[str]) -> Float[np.ndarray, "forms"]:
        first, end = _FIRST[kind : kind + 2]
        hashes = [zlib.crc32(text.encode("utf-8", "surrogatepass")) % (end - first) + first for text in texts]
        return np.array(hashes, dtype=np.float32)

    found = np.full((len(of_word), N_CUES), NONE, dtype=np.float32)
    found[:, 0] = numbered(Cue.WORD, forms)[of_word]
    for column, n in enumerate(ENDINGS, start=1):
        longer = np.array([len(form) > n for form in forms], dtype=bool)
        found[:, column] = np.where(longer, numbered(Cue.ENDING, [form[-n:] for form in forms]), NONE)[of_word]
    before, after = (numbered(Cue.NEIGHBOUR, [f"{side} {form}" for form in forms])[of_word] for side in "<>")
    follows = np.ones(len(of_word), dtype=bool)
    follows[(np.cumsum(lengths) - lengths)[lengths > 0]] = False  # the first word of a sentence follows none
    places = np.flatnonzero(follows)
    found[places, -2], found[places - 1, -1] = before[places - 1], after[places]
    return torch.from_numpy(found)


def kinds(known: Int[Tensor, "known"]) -> Int[Tensor, "known"]:
    """The kind of each cue of a lexicon."""
    return torch.bucketize(known, torch.tensor(_FIRST[1:-1], device=known.device), right=True)


def lexicon(numbers: Float[Tensor, "words cues"], learnt: Collection[Cue] = tuple(Cue)) -> Int[Tensor, "known"]:
    """The cues of these kinds that are learnt by heart, sorted by their numbers; whole sentences have none."""
    found, counts = numbers[numbers >= 0].long().unique(return_counts=True)
    of_kind, kept = kinds(found), []
    for kind in learnt:
        own = ((of_kind == int(kind)) & (counts >= LEAST[kind])).nonzero().squeeze(1)
        kept.append(own[counts[own].argsort(descending=True, stable=True)[:MOST]])
    return found[torch.cat(kept)].sort().values if kept else found[:0]


def looked_up(
    numbers: Float[Tensor, "words cues"], known: Int[Tensor, "known"]
) -> tuple[Int[Tensor, "found"], Int[Tensor, "found"]]:
    """The cues that are in a lexicon: the positions of their words, and their places in the lexicon."""
    if not len(known):
        return known.new_zeros(0), known.new_zeros(0)
    asked = numbers.long()
    place = torch.searchsorted(known, asked).clamp(max=len(known) - 1)
    words, columns = (known[place] == asked).nonzero(as_tuple=True)
    return words, place[words, columns]


@dataclass(frozen=True)
class WordedInputs(Inputs):
    """A corpus prepared for an encoder, and the cues of its words."""

    inner: Inputs
    numbers: Float[Tensor, "words cues"]

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
    """The features of another encoder, and the cues of each word as the last columns."""

    def __init__(self, inner: Encoder) -> None:
        super().__init__()
        self.inner, self.sentences = inner, inner.sentences
        self.n_features, self.n_extra = inner.n_features + N_CUES, N_CUES

    def pool(
        self, words: Float[Tensor, "words features"], lengths: Int[Tensor, "sentences"], unit: Unit
    ) -> Float[Tensor, "items width"]:
        """As the other encoder does; sentences and pairs are no words, and have no cues."""
        if unit is Unit.WORD:
            return words
        return functional.pad(self.inner.pool(words[:, :-N_CUES], lengths, unit), (0, N_CUES), value=NONE)

    def prepare(self, corpus: Corpus, language: str = "") -> WordedInputs:
        cues = cue_numbers(corpus.words, np.diff(corpus.offsets))
        return WordedInputs(self.inner.prepare(corpus, language), cues)

    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        inputs = expect(inputs, WordedInputs)
        features = self.inner(inputs.inner)
        kind = features.dtype if features.dtype.itemsize >= 4 else torch.float32  # numbers have to stay whole
        return torch.cat([features.to(kind), inputs.numbers.to(features.device, kind)], 1)

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
    """The model with the cues of each word beside its features; one that has them already as it is."""
    if isinstance(model.encoder, WordedEncoder):
        return model
    return Model(WordedEncoder(model.encoder), model.heads, model.inventory, model.seen).train(model.training)
