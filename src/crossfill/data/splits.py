"""Random splits, and limits on their size."""

import random
from dataclasses import replace

from crossfill.grid.cells import Grid
from crossfill.grid.sentence import Corpus
from crossfill.grid.text_keys import fraction, letters


def eighty_ten_ten(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus, Corpus]:
    """Split a corpus at random into train, dev and test, as the paper does with WikiANN; order is kept.

    Sentences are drawn by a hash of their text, so that the same text is split in the same way in every task.
    """
    drawn = [fraction(f"{seed} {first}") for first, *_ in letters(corpus)]
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
