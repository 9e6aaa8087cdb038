"""Expected scores of cells that have no labels, from seen cells that were held out in turn.

A model that was trained without a seen cell scores sᵢ there and doubts dᵢ: the share of words that it expects to get
wrong, 1 − mean confidence. Over the n held-out cells of a task a line is fitted,

    s = a + b d + ε,    ε ~ N(0, σ²),

or a constant (b = 0) where that predicts left-out cells better. A new cell of doubt d is expected to score a + b d, and
with probability `LEVEL` it lies within

    ± t √(1 + 1/n + (d − d̄)² / Σ (dᵢ − d̄)²) σ̂,

t the quantile of Student's distribution with n − 2 degrees of freedom (for the constant n − 1, and without the last
term). Held-out cells are predicted by models that had fewer cells to train on, so expectations are a little low.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from pydantic import TypeAdapter

from crossfill.checkpoint import EXPECTED, read_as
from crossfill.evaluation.results import grouped
from crossfill.files import write_json
from crossfill.grid.cells import Cell, CellName
from crossfill.measures.significance import student_quantile

LEVEL = 0.8
"""Probability that a score lies within its interval."""
FEWEST_CELLS = 4
"""Held-out cells of a task without which nothing is expected of its other cells."""
FEWEST_FOR_A_LINE = 6


@dataclass(frozen=True)
class HeldOutScore:
    """How a model that was trained without a seen cell does there."""

    cell: CellName
    score: float
    doubt: float
    """Share of words that the model expects to get wrong."""


@dataclass(frozen=True)
class ExpectedScore:
    """What a cell without labels is expected to score, from 0 to 1."""

    cell: CellName
    score: float
    low: float
    high: float
    doubt: float


def expect_score(
    doubts: Float[np.ndarray, "cells"], scores: Float[np.ndarray, "cells"], doubt: float, level: float = LEVEL
) -> tuple[float, float, float]:
    """Return the expected score of a cell of this doubt, and the bounds of its interval, within 0 and 1.

    Fits a line or a constant to the held-out cells, whichever predicts left-out ones better.
    """
    n, away, centred = len(scores), scores - scores.mean(), doubts - doubts.mean()
    squares, slope, residuals, freedom = np.inf, 0.0, away, n - 1
    if n >= FEWEST_FOR_A_LINE and (centred**2).sum() >= 1e-12:
        line = float((centred * away).sum() / (centred**2).sum())
        of_line = away - line * centred
        left_out = of_line / (1 - 1 / n - centred**2 / (centred**2).sum())
        if (left_out**2).sum() < ((away * n / (n - 1)) ** 2).sum():
            squares, slope, residuals, freedom = (centred**2).sum(), line, of_line, n - 2
    score = scores.mean() + slope * (doubt - doubts.mean())
    scale = np.sqrt((residuals**2).sum() / freedom)
    width = scale * np.sqrt(1 + 1 / n + (doubt - doubts.mean()) ** 2 / squares)
    width *= student_quantile((1 + level) / 2, freedom)
    low, middle, high = np.clip([score - width, score, score + width], 0.0, 1.0).tolist()
    return middle, low, high


@dataclass(frozen=True)
class Expectations:
    """Expected scores of the cells that a model fills, and what they rest on."""

    held_out: tuple[HeldOutScore, ...]
    expected: tuple[ExpectedScore, ...]
    level: float = LEVEL
    tried: Mapping[str, Mapping[str, float]] | None = None
    """Mean scores of held-out cells by method and task, where several methods were tried."""

    def of(self, cell: Cell) -> ExpectedScore | None:
        """Find what a cell is expected to score; none if too few cells of its task were held out, or it has no text."""
        return next((score for score in self.expected if score.cell == cell), None)

    def unscored(self, scored: Collection[Cell]) -> list[ExpectedScore]:
        """Return the expected scores of all other cells than these."""
        return [one for one in self.expected if one.cell not in scored]


def expect_scores(held_out: Sequence[HeldOutScore], doubts: Mapping[Cell, float]) -> list[ExpectedScore]:
    """Compute expected scores of cells by their doubts, for tasks of which enough cells were held out."""
    of_tasks = grouped(held_out, lambda point: point.cell.task)
    expected = []
    for cell, doubt in doubts.items():
        if len(points := of_tasks.get(cell.task, ())) >= FEWEST_CELLS:
            known = np.array([(point.doubt, point.score) for point in points])
            score, low, high = expect_score(known[:, 0], known[:, 1], doubt)
            expected.append(ExpectedScore(cell, score, low, high, doubt))
    return expected


def save_expected(folder: Path, expectations: Expectations) -> None:
    """Write expected scores into a model folder."""
    write_json(folder / EXPECTED, TypeAdapter(Expectations).dump_python(expectations, mode="json"))


def load_expected(folder: Path) -> Expectations | None:
    """Read the expected scores in a model folder, if there are any."""
    return read_as(folder / EXPECTED, Expectations, "the expected scores of a model")
