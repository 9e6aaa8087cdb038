"""Random splits, and limits on their size."""

import random
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from itertools import islice, pairwise

from crossfill.grid.cells import Grid
from crossfill.grid.sentence import Corpus


def eighty_ten_ten(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus, Corpus]:
    """Split a corpus at random into train, dev and test, as the paper does with WikiANN; order is kept.

    Sentences are drawn by a hash of their text, so that the same text is split in the same way in every task.
    """
    drawn = [fraction(f"{seed} {text}") for text in letters(corpus)]
    order = sorted(range(len(corpus)), key=drawn.__getitem__)
    first, second = len(order) * 8 // 10, len(order) * 9 // 10
    train, dev, test = (corpus.take(sorted(part)) for part in (order[:first], order[first:second], order[second:]))
    return train, dev, test


def capped(corpus: Corpus, most: int | None, seed: int) -> Corpus:
    """Keep at most this many sentences, chosen at random; order is kept."""
    if most is None or len(corpus) <= most:
        return corpus
    return corpus.take(sorted(_shuffled(len(corpus), seed)[:most]))


def capped_grid(grid: Grid, max_dev: int | None, max_test: int | None, seed: int) -> Grid:
    """Keep at most this many dev and test sentences in each corpus, chosen at random; order is kept."""
    return grid.map(lambda s: replace(s, dev=capped(s.dev, max_dev, seed), test=capped(s.test, max_test, seed)))


def texts(corpus: Corpus) -> Iterator[str]:
    """Each sentence as one string, with its words separated by line ends; of a pair the first sentence."""
    text = corpus.text()
    words, offsets = list(text.words), text.offsets.tolist()
    found = ("\n".join(words[start:end]) for start, end in pairwise(offsets))
    return islice(found, None, None, corpus.unit.n_sentences)


def letters(corpus: Corpus) -> Iterator[str]:
    """Yield each sentence as one string without its spaces: the same for any cut into words; of a pair the first."""
    return (parts[0] for parts in all_letters(corpus))


def all_letters(corpus: Corpus) -> Iterator[tuple[str, ...]]:
    """Yield the letters of each sentence, or of the two of each pair."""
    text = corpus.text()
    words, offsets = list(text.words), text.offsets.tolist()
    parts = ("".join(words[start:end]) for start, end in pairwise(offsets))
    return zip(*[parts] * corpus.unit.n_sentences, strict=True)


def fraction(text: str) -> float:
    """Return a number from 0 to 1 that depends on the text alone."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _shuffled(n: int, seed: int) -> list[int]:
    order = list(range(n))
    random.Random(seed).shuffle(order)  # noqa: S311 - a seeded experiment, not a secret
    return order
