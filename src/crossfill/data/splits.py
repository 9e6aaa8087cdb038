"""Random splits, and limits on their size."""

import random
from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from itertools import pairwise

from crossfill.grid.cells import Grid
from crossfill.grid.sentence import Corpus


def eighty_ten_ten(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus, Corpus]:
    """Split a corpus at random into train, dev and test, as the paper does with WikiANN; order is kept.

    Sentences are drawn by a hash of their text, so that the same text is split in the same way in every task.
    """
    drawn = [fraction(f"{seed} {first}") for first, *_ in all_letters(corpus)]
    order = sorted(range(len(corpus)), key=drawn.__getitem__)
    first, second = len(order) * 8 // 10, len(order) * 9 // 10
    train, dev, test = (corpus.take(sorted(part)) for part in (order[:first], order[first:second], order[second:]))
    return train, dev, test


def capped(corpus: Corpus, most: int | None, seed: int) -> Corpus:
    """Keep at most this many sentences, chosen at random; order is kept."""
    if most is None or len(corpus) <= most:
        return corpus
    order = list(range(len(corpus)))
    random.Random(seed).shuffle(order)  # noqa: S311 - a seeded experiment, not a secret
    return corpus.take(sorted(order[:most]))


def capped_grid(grid: Grid, max_dev: int | None, max_test: int | None, seed: int) -> Grid:
    """Keep at most this many dev and test sentences in each corpus, chosen at random; order is kept."""
    return grid.map(lambda s: replace(s, dev=capped(s.dev, max_dev, seed), test=capped(s.test, max_test, seed)))


def all_letters(corpus: Corpus) -> Iterator[tuple[str, ...]]:
    """Yield each sentence, or the two of each pair, as strings without spaces: the same for any cut into words."""
    text = corpus.text()
    words, offsets = list(text.words), text.offsets.tolist()
    parts = ("".join(words[start:end]) for start, end in pairwise(offsets))
    return zip(*[parts] * corpus.unit.n_sentences, strict=True)


def fraction(text: str) -> float:
    """Return a number from 0 to 1 that depends on the text alone."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
