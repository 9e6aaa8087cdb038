"""From the vectors of words to those of what a task labels: words as they are, sentences, or pairs of sentences."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.config import SentencePooling
from crossfill.grid.task import Unit


def pool(
    words: Float[Tensor, "words features"],
    lengths: Int[Tensor, "sentences"],
    unit: Unit,
    sentences: SentencePooling = "mean",
    query: Float[Tensor, "features"] | None = None,
) -> Float[Tensor, "items width"]:
    """The vector of each item; a pair is two sentences, one after the other.

    A sentence's vector u is the mean of its words', that of its last word, or with attention Σ aᵢ xᵢ, where
    a = softmax(x · q) over its words and the query q is learnt; zero if it has none. That of a pair of sentences is
    u ⊕ v ⊕ |u − v| ⊕ (u ⊙ v).
    """
    if unit is Unit.WORD:
        return words
    lengths = lengths.to(words.device)
    found = words.new_zeros(len(lengths), words.shape[1])
    if sentences == "last":
        found[lengths > 0] = words[(lengths.cumsum(0) - 1)[lengths > 0]]
    else:
        rows = torch.repeat_interleave(lengths, output_size=len(words))
        shares = _shares(words, rows, lengths, query) if sentences == "attention" else 1 / lengths[rows].to(words)
        found = found.index_add(0, rows, words * shares.unsqueeze(1))
    if unit is Unit.SENTENCE:
        return found
    u, v = found[0::2], found[1::2]
    return torch.cat([u, v, (u - v).abs(), u * v], dim=1)


def _shares(
    words: Float[Tensor, "words features"],
    rows: Int[Tensor, "words"],
    lengths: Int[Tensor, "sentences"],
    query: Float[Tensor, "features"] | None,
) -> Float[Tensor, "words"]:
    """softmax(x · q) over the words of each sentence."""
    if query is None:
        raise ValueError("attention: expected a query, got none")
    scores = words @ query.to(words)
    highest = scores.detach().new_full((len(lengths),), -torch.inf)
    highest = highest.scatter_reduce(0, rows, scores.detach(), "amax")
    weights = (scores - highest[rows]).exp()
    return weights / weights.new_zeros(len(lengths)).index_add(0, rows, weights)[rows]


def sentences_of(items: Int[Tensor, "items"], unit: Unit) -> Int[Tensor, "sentences"]:
    """The sentences that make up these items, in the encoder's inputs."""
    return items if unit is not Unit.PAIR else torch.stack([2 * items, 2 * items + 1], dim=1).flatten()
