"""Sampling of cells and sentences for training steps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.model import Scope


class Draw(NamedTuple):
    """A mini-batch: some sentences of one cell."""

    cell: Cell
    sentences: np.ndarray
    expected_words: float
    """Mean number of words in such a batch; dividing by it, not by the actual number, keeps the loss unbiased."""


@dataclass(frozen=True)
class CellSize:
    """Numbers of training sentences and words of a seen cell."""

    sentences: int
    words: int


class CellSampler:
    """Draws a cell, uniformly or in proportion to its words, then its next sentences in a shuffled order.

    A draw depends only on the seed, the step and how often each cell was drawn, so `drawn` is the only state.
    """

    def __init__(
        self,
        sizes: Mapping[Cell, CellSize],
        batch_sentences: int,
        cells_per_step: int,
        scheme: Literal["uniform", "proportional"],
        seed: int,
        one_task: bool = False,
    ) -> None:
        empty = [str(cell) for cell, size in sizes.items() if size.words == 0]
        if empty or not sizes:
            found = f"none in {', '.join(empty)}" if empty else "no seen cell"
            raise DataError(f"expected training words in every seen cell, got {found}; leave such cells unseen")
        self.cells: Sequence[Cell] = sorted(sizes)
        self.sizes = sizes
        self.batch_sentences, self.cells_per_step, self.seed = batch_sentences, cells_per_step, seed
        self.one_task = one_task
        weights = np.array([1.0 if scheme == "uniform" else sizes[cell].words for cell in self.cells])
        self.probabilities = weights / weights.sum()
        self.drawn = np.zeros(len(self.cells), dtype=np.int64)
        self._cumulative = np.cumsum(self.probabilities)
        self._row_probability = self._marginals()
        self._orders: dict[int, tuple[int, np.ndarray]] = {}

    @property
    def n_words(self) -> int:
        """N, the training words in seen cells."""
        return sum(size.words for size in self.sizes.values())

    @property
    def n_batches(self) -> int:
        """|K|, the mini-batches in one pass over the seen cells."""
        return sum(-(-size.sentences // self.batch_sentences) for size in self.sizes.values())

    def draw(self, step: int) -> list[Draw]:
        """The batches of this step: cells are drawn independently, or (`one_task`) from one task drawn beforehand."""
        rng = np.random.default_rng([self.seed, step])
        places = rng.random(self.cells_per_step)
        if self.one_task:
            start, end = self._task_range(rng.random())
            places = start + (end - start) * places
        found = np.searchsorted(self._cumulative, places, side="right").clip(max=len(self.cells) - 1)
        return [self._draw_from(int(which)) for which in found]

    def _task_range(self, place: float) -> tuple[float, float]:
        """The range of cumulative probability of the task that contains `place`; cells are sorted by task."""
        which = int(np.searchsorted(self._cumulative, place, side="right").clip(max=len(self.cells) - 1))
        same = [i for i, cell in enumerate(self.cells) if cell.task == self.cells[which].task]
        return float(self._cumulative[same[0] - 1]) if same[0] else 0.0, float(self._cumulative[same[-1]])

    def _draw_from(self, which: int) -> Draw:
        cell, size = self.cells[which], self.sizes[self.cells[which]]
        first = int(self.drawn[which]) * self.batch_sentences
        self.drawn[which] += 1
        places = range(first, first + self.batch_sentences)
        sentences = [int(self._order(which, p // size.sentences)[p % size.sentences]) for p in places]
        return Draw(cell, np.array(sentences), self.batch_sentences * size.words / size.sentences)

    def probability(self, scope: Scope, cell: Cell) -> float:
        """The probability that a draw has this cell's task, its language or both, by scope; 1 for the scope `all`."""
        return self._row_probability[scope, _name(scope, cell)]

    def _order(self, which: int, epoch: int) -> np.ndarray:
        """The shuffled order of a cell's sentences in one of its epochs; the latest one is cached."""
        kept, order = self._orders.get(which, (-1, np.empty(0)))
        if kept != epoch:
            order = np.random.default_rng([self.seed, which, epoch, 1]).permutation(
                self.sizes[self.cells[which]].sentences
            )
            self._orders[which] = (epoch, order)
        return order

    def _marginals(self) -> dict[tuple[Scope, str], float]:
        scopes: tuple[Scope, ...] = ("task", "language", "cell", "all")
        found: dict[tuple[Scope, str], float] = {}
        for cell, probability in zip(self.cells, self.probabilities, strict=True):
            for scope in scopes:
                key = (scope, _name(scope, cell))
                found[key] = found.get(key, 0.0) + float(probability)
        return found


def _name(scope: Scope, cell: Cell) -> str:
    return {"task": cell.task, "language": cell.language, "cell": str(cell), "all": ""}[scope]
