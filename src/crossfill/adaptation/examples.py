"""Labelled sentences of a cell as adaptations keep them: features, cues and labels of words, not their text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.adaptation.features import Body
from crossfill.adaptation.words import N_CUES, with_words
from crossfill.encoders.base import ranges
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus
from crossfill.model import Model
from crossfill.prediction.predict import encode
from crossfill.training.labelled import prepare


@dataclass(frozen=True)
class Examples:
    """Labelled sentences; none occurs twice."""

    features: Float[Tensor, "words features_and_cues"]
    """The encoder's features, and the cues of the word (`crossfill.adaptation.words`)."""
    labels: Int[Tensor, "words"]
    lengths: Int[Tensor, "sentences"]
    hashes: tuple[str, ...]
    """A hash of the words of each sentence."""

    def __len__(self) -> int:
        return len(self.hashes)

    @classmethod
    def of(cls, model: Model, cell: Cell, corpus: Corpus) -> "Examples":
        """The labelled sentences of a corpus, encoded; of a sentence that occurs twice, the last counts."""
        if not corpus.n_words:
            raise DataError(f"{cell}: expected labelled sentences to adapt to, got none; is the file empty?")
        worded = with_words(model)
        data = prepare(worded.encoder, worded.inventory, cell, corpus)
        features = encode(worded, data.inputs, cell.task).float().cpu()
        kept = [i for i, length in enumerate(data.lengths.tolist()) if length]
        found = cls(features, data.labels, data.lengths, sentence_hashes(corpus)).take(kept)
        return found.take(_last(found.hashes))

    def __add__(self, other: "Examples") -> "Examples":
        """Both; where both have a sentence, with the labels of the other."""
        new = set(other.hashes)
        kept = self.take([i for i, text in enumerate(self.hashes) if text not in new])
        return Examples(
            torch.cat([kept.features, other.features]),
            torch.cat([kept.labels, other.labels]),
            torch.cat([kept.lengths, other.lengths]),
            kept.hashes + other.hashes,
        )

    @torch.no_grad()
    def through(self, body: Body | None) -> "Examples":
        """The same with features as an affine head sees them: after the layers below it, if there are any."""
        if body is None:
            return self
        seen = body(self.features[:, :-N_CUES].to(next(body.parameters())))
        return replace(self, features=torch.cat([seen.to(self.features), self.features[:, -N_CUES:]], 1))

    def take(self, sentences: Sequence[int]) -> "Examples":
        """Some of the sentences, in this order."""
        chosen = torch.tensor(list(sentences), dtype=torch.long)
        words = self.words_of(sentences)
        hashes = tuple(self.hashes[i] for i in sentences)
        return Examples(self.features[words], self.labels[words], self.lengths[chosen], hashes)

    def shuffled(self) -> list[int]:
        """The sentences in an order that looks random, and does not depend on the one they come in."""
        return sorted(range(len(self)), key=lambda i: self.hashes[i])

    def words_of(self, sentences: Sequence[int]) -> Int[Tensor, "chosen"]:
        """The positions of the words of these sentences."""
        chosen = torch.tensor(list(sentences), dtype=torch.long)
        return ranges((self.lengths.cumsum(0) - self.lengths)[chosen], self.lengths[chosen])


def joined(parts: Iterable[Examples]) -> Examples:
    """Examples, one after the other; of a sentence that occurs twice, the last counts."""
    given = list(parts)
    found = Examples(
        torch.cat([part.features for part in given]),
        torch.cat([part.labels for part in given]),
        torch.cat([part.lengths for part in given]),
        tuple(text for part in given for text in part.hashes),
    )
    last = _last(found.hashes)
    return found if len(last) == len(found) else found.take(last)


def sentence_hashes(corpus: Corpus) -> tuple[str, ...]:
    """A hash of the words of each sentence, by which sentences that were adapted to are recognised in test data."""
    words = list(corpus.words)
    return tuple(
        blake2b("\n".join(words[start:end]).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        for start, end in pairwise(corpus.offsets.tolist())
    )


def _last(hashes: Sequence[str]) -> list[int]:
    return sorted({text: i for i, text in enumerate(hashes)}.values())
