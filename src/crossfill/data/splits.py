"""Splits where a corpus comes without them, caps, and sentences that stand on both sides."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from crossfill.grid import Grid, Splits
from crossfill.sentence import Corpus


def eighty_ten_ten(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus, Corpus]:
    """Train, dev and test of a corpus that comes in one piece, at random as the paper parts WikiANN; order is kept."""
    order = _shuffled(len(corpus), seed)
    first, second = len(order) * 8 // 10, len(order) * 9 // 10
    train, dev, test = (corpus.take(sorted(part)) for part in (order[:first], order[first:second], order[second:]))
    return train, dev, test


def capped(corpus: Corpus, most: int | None, seed: int) -> Corpus:
    """At most this many sentences, at random; order is kept."""
    if most is None or len(corpus) <= most:
        return corpus
    return corpus.take(sorted(_shuffled(len(corpus), seed)[:most]))


def capped_grid(grid: Grid, max_dev: int | None, max_test: int | None, seed: int) -> Grid:
    """The grid with at most this many dev and test sentences in each corpus, at random; order is kept."""
    return Grid(
        {
            cell: tuple(
                replace(s, dev=capped(s.dev, max_dev, seed), test=capped(s.test, max_test, seed)) for s in grid[cell]
            )
            for cell in grid.cells
        }
    )


def without_leaks(splits: Splits) -> tuple[Splits, int]:
    """The splits without the training sentences that recur, word for word, in dev or test; and how many those were."""
    held_out = {text for corpus in (splits.dev, splits.test) for text in texts(corpus)}
    kept, dropped = {}, 0
    for name in ("train", "surplus"):
        corpus: Corpus = getattr(splits, name)
        clean = [i for i, text in enumerate(texts(corpus)) if text not in held_out]
        if len(clean) < len(corpus):
            dropped += len(corpus) - len(clean)
            kept[name] = corpus.take(clean)
    return replace(splits, **kept), dropped


def texts(corpus: Corpus) -> Iterator[str]:
    """Each sentence as one string that tells its words apart."""
    words, offsets = list(corpus.words), corpus.offsets.tolist()
    return ("\n".join(words[start:end]) for start, end in pairwise(offsets))


def _shuffled(n: int, seed: int) -> list[int]:
    order = list(range(n))
    random.Random(seed).shuffle(order)  # noqa: S311 - a seeded experiment, not a secret
    return order
