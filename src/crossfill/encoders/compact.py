"""A small encoder with no download: hashed character n-grams, then convolutions over words, trained from scratch."""

import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from crossfill.config import EncoderConfig
from crossfill.encoders.base import Encoder, Inputs, expect, ranges
from crossfill.grid.sentence import Corpus

LONGEST_NGRAM = 4
WORDS_KEPT, LONGEST_KEPT = 200_000, 64
"""Number of words whose n-grams are cached, and the most characters that such a word may have."""


@dataclass(frozen=True)
class CompactInputs(Inputs):
    """The hashed n-grams of a corpus, word by word."""

    ngrams: Int[Tensor, "ngrams"]
    ngrams_per_word: Int[Tensor, "words"]
    lengths: Int[Tensor, "sentences"]

    def take(self, sentences: Int[Tensor, "chosen"]) -> "CompactInputs":
        first_words = self.lengths.cumsum(0) - self.lengths
        words = ranges(first_words[sentences], self.lengths[sentences])
        first_ngrams = self.ngrams_per_word.cumsum(0) - self.ngrams_per_word
        ngrams = ranges(first_ngrams[words], self.ngrams_per_word[words])
        return CompactInputs(self.ngrams[ngrams], self.ngrams_per_word[words], self.lengths[sentences])

    def followed_by(self, others: Sequence[Inputs]) -> "CompactInputs":
        parts = [self, *(expect(other, CompactInputs) for other in others)]
        return CompactInputs(
            torch.cat([part.ngrams for part in parts]),
            torch.cat([part.ngrams_per_word for part in parts]),
            torch.cat([part.lengths for part in parts]),
        )


class CompactEncoder(Encoder):
    """x = mean of a word's n-gram vectors, then residual convolutions over the sentence, each reaching twice as far."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.n_features = config.hidden
        self.buckets = config.buckets
        self.ngrams = nn.EmbeddingBag(config.buckets, config.hidden, mode="mean", include_last_offset=True)
        self.convolutions = nn.ModuleList(nn.Linear(3 * config.hidden, config.hidden) for _ in range(config.layers))
        self.norms = nn.ModuleList(nn.LayerNorm(config.hidden) for _ in range(config.layers + 1))
        self.dropout = nn.Dropout(config.dropout)

    def prepare(self, corpus: Corpus, language: str = "") -> CompactInputs:  # noqa: ARG002
        words = [_hashed_ngrams(word, self.buckets) for word in corpus.words]
        return CompactInputs(
            torch.tensor([ngram for word in words for ngram in word], dtype=torch.long),
            torch.tensor([len(word) for word in words], dtype=torch.long),
            torch.from_numpy(corpus.lengths),
        )

    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        inputs = expect(inputs, CompactInputs)
        device = self.ngrams.weight.device
        bounds = functional.pad(inputs.ngrams_per_word.cumsum(0), (1, 0)).to(device)
        words = self.dropout(self.norms[0](self.ngrams(inputs.ngrams.to(device), bounds)))
        sentences = torch.repeat_interleave(inputs.lengths, output_size=len(words)).to(device)
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms[1:], strict=True)):
            before, after = (neighbours(words, sentences, distance) for distance in (-(2**i), 2**i))
            update = functional.gelu(convolution(torch.cat([before, words, after], dim=-1)))
            words = norm(words + self.dropout(update))
        return words


def neighbours(
    words: Float[Tensor, "words features"], sentences: Int[Tensor, "words"], distance: int
) -> Float[Tensor, "words features"]:
    """Find the vector of the word at this distance from each word; zero if that is outside the sentence."""
    moved = words.roll(-distance, dims=0)
    places = torch.arange(len(words), device=words.device) + distance
    inside = (sentences.roll(-distance) == sentences) & (places >= 0) & (places < len(words))
    return moved * inside.unsqueeze(-1)


def _hashed_ngrams(word: str, buckets: int) -> array:
    """Hash the character n-grams of `<word>`, markers included, and the whole word.

    They are cached, except for very long words: a client could fill the memory of a server with these.
    """
    return (_kept_ngrams if len(word) <= LONGEST_KEPT else _ngrams)(word, buckets)


def _ngrams(word: str, buckets: int) -> array:
    marked = f"<{word}>"
    ngrams = {marked[i : i + n] for n in range(1, LONGEST_NGRAM + 1) for i in range(len(marked) - n + 1)} | {marked}
    return array("L", sorted(zlib.crc32(ngram.encode("utf-8", "surrogatepass")) % buckets for ngram in ngrams))


_kept_ngrams = lru_cache(maxsize=WORDS_KEPT)(_ngrams)
