"""A small encoder with no download: hashed character n-grams, then convolutions over words, trained from scratch."""

import zlib
from array import array
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from crossfill.config import EncoderConfig
from crossfill.encoders.base import Encoder, Inputs, expect
from crossfill.grid.sentence import Corpus

LONGEST_NGRAM = 4
CACHED_WORDS, LONGEST_CACHED = 200_000, 64
"""Number of words whose n-grams are cached, and the most characters of such a word."""


@dataclass(frozen=True)
class CompactInputs(Inputs):
    """The hashed n-grams of a corpus, word by word."""

    ngrams: Int[Tensor, "ngrams"]
    ngrams_per_word: Int[Tensor, "words"]
    lengths: Int[Tensor, "sentences"]

    def rows(self) -> dict[str, Int[Tensor, "sentences"] | None]:
        words = torch.repeat_interleave(self.lengths)
        ngrams = torch.zeros_like(self.lengths).index_add(0, words, self.ngrams_per_word)
        return {"ngrams": ngrams, "ngrams_per_word": self.lengths, "lengths": None}


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
        # very long words are not cached: a client could fill the memory of a server with these
        words = [(_cached_ngrams if len(w) <= LONGEST_CACHED else _ngrams)(w, self.buckets) for w in corpus.words]
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


def _ngrams(word: str, buckets: int) -> array:
    """Hash the character n-grams of `<word>`, markers included, and the whole word."""
    marked = f"<{word}>"
    ngrams = {marked[i : i + n] for n in range(1, LONGEST_NGRAM + 1) for i in range(len(marked) - n + 1)} | {marked}
    return array("L", sorted(zlib.crc32(ngram.encode("utf-8", "surrogatepass")) % buckets for ngram in ngrams))


_cached_ngrams = lru_cache(maxsize=CACHED_WORDS)(_ngrams)
