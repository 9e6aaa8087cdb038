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


@dataclass(frozen=True)
class Relation:
    """The relation of doubt to score over the held-out cells of a task."""

    n: int
    mean_doubt: float
    mean_score: float
    slope: float
    squares: float
    """Σ (dᵢ − d̄)²; infinite for a constant."""
    scale: float
    """σ̂, the residual standard deviation."""
    freedom: int

    @classmethod
    def fit(cls, doubts: Float[np.ndarray, "cells"], scores: Float[np.ndarray, "cells"]) -> "Relation":
        """Fit a line or a constant, whichever predicts left-out cells better."""
        n, means, away = len(scores), (float(doubts.mean()), float(scores.mean())), scores - scores.mean()
        constant = cls(n, *means, 0.0, float("inf"), float(np.sqrt((away**2).sum() / (n - 1))), n - 1)
        centred = doubts - means[0]
        squares = float((centred**2).sum())
        if n < FEWEST_FOR_A_LINE or squares < 1e-12:
            return constant
        slope = float((centred * away).sum() / squares)
        residuals = away - slope * centred
        left_out = residuals / (1 - 1 / n - centred**2 / squares)
        if (left_out**2).sum() >= ((away * n / (n - 1)) ** 2).sum():
            return constant
        scale = float(np.sqrt((residuals**2).sum() / (n - 2)))
        return cls(n, *means, slope, squares, scale, n - 2)

    def expect(self, doubt: float, level: float = LEVEL) -> tuple[float, float, float]:
        """Return the expected score of a cell of this doubt, and the bounds of its interval, within 0 and 1."""
        away = doubt - self.mean_doubt
        score = self.mean_score + self.slope * away
        width = self.scale * np.sqrt(1 + 1 / self.n + away**2 / self.squares)
        width *= student_quantile((1 + level) / 2, self.freedom)
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
    relations = {
        task: Relation.fit(np.array([point.doubt for point in points]), np.array([point.score for point in points]))
        for task, points in grouped(held_out, lambda point: point.cell.task).items()
        if len(points) >= FEWEST_CELLS
    }
    expected = []
    for cell, doubt in doubts.items():
        if cell.task in relations:
            score, low, high = relations[cell.task].expect(doubt)
            expected.append(ExpectedScore(cell, score, low, high, doubt))
    return expected


def save_expected(folder: Path, expectations: Expectations) -> None:
    """Write expected scores into a model folder."""
    write_json(folder / EXPECTED, TypeAdapter(Expectations).dump_python(expectations, mode="json"))


def load_expected(folder: Path) -> Expectations | None:
    """Read the expected scores in a model folder, if there are any."""
    return read_as(folder / EXPECTED, Expectations, "the expected scores of a model")
