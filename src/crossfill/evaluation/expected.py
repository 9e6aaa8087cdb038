"""Expected scores of cells that have no labels, from seen cells that were held out in turn.

A model that was trained without a seen cell scores sᵢ there and doubts dᵢ: the share of words that it expects to get
wrong, 1 − mean confidence, which needs no labels. Over the n held-out cells of a task a line is fitted,

    s = a + b d + ε,    ε ~ N(0, σ²),

or a constant (b = 0) where that predicts left-out cells better. A new cell of doubt d is expected to score a + b d, and
with probability `LEVEL` it lies within

    ± t √(1 + 1/n + (d − d̄)² / Σ (dᵢ − d̄)²) σ̂,

t the quantile of Student's distribution with n − 2 degrees of freedom (for the constant n − 1, and without the last
term). Held-out cells are predicted by models that had fewer cells to train on, so expectations are a little low.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from crossfill.checkpoint import EXPECTED, read_json
from crossfill.errors import CheckpointError
from crossfill.files import write_json
from crossfill.grid.cells import Cell
from crossfill.measures.significance import student_quantile

LEVEL = 0.8
"""Probability that a score lies within its interval."""
FEWEST_CELLS = 4
"""Held-out cells of a task without which nothing is expected of its other cells."""
FEWEST_FOR_A_LINE = 6


@dataclass(frozen=True)
class HeldOutScore:
    """How a model that was trained without a seen cell does there."""

    cell: Cell
    score: float
    doubt: float
    """Share of words that the model expects to get wrong."""


@dataclass(frozen=True)
class ExpectedScore:
    """What a cell without labels is expected to score, from 0 to 1."""

    cell: Cell
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
        """A line or a constant, whichever predicts left-out cells better."""
        n = len(scores)
        mean, away = float(doubts.mean()), scores - scores.mean()
        constant = cls(
            n, mean, float(scores.mean()), 0.0, float("inf"), float(np.sqrt((away**2).sum() / (n - 1))), n - 1
        )
        centred = doubts - mean
        squares = float((centred**2).sum())
        if n < FEWEST_FOR_A_LINE or squares < 1e-12:
            return constant
        slope = float((centred * away).sum() / squares)
        residuals = away - slope * centred
        left_out = residuals / (1 - 1 / n - centred**2 / squares)
        if (left_out**2).sum() >= ((away * n / (n - 1)) ** 2).sum():
            return constant
        scale = float(np.sqrt((residuals**2).sum() / (n - 2)))
        return cls(n, mean, float(scores.mean()), slope, squares, scale, n - 2)

    def expect(self, doubt: float, level: float = LEVEL) -> tuple[float, float, float]:
        """The expected score of a cell of this doubt, and the bounds of its interval, within 0 and 1."""
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
        """What a cell is expected to score; none if too few cells of its task could be held out, or it has no text."""
        return next((score for score in self.expected if score.cell == cell), None)


def expect_scores(held_out: Sequence[HeldOutScore], doubts: Mapping[Cell, float]) -> list[ExpectedScore]:
    """Expected scores of cells by their doubts, for tasks of which enough cells were held out."""
    points: dict[str, list[HeldOutScore]] = defaultdict(list)
    for point in held_out:
        points[point.cell.task].append(point)
    relations = {
        task: Relation.fit(np.array([p.doubt for p in of_task]), np.array([p.score for p in of_task]))
        for task, of_task in points.items()
        if len(of_task) >= FEWEST_CELLS
    }
    expected = []
    for cell, doubt in doubts.items():
        if cell.task in relations:
            score, low, high = relations[cell.task].expect(doubt)
            expected.append(ExpectedScore(cell, score, low, high, doubt))
    return expected


def save_expected(folder: Path, expectations: Expectations) -> None:
    """Write expected scores into a model folder."""
    values = asdict(expectations)
    for entry in (*values["held_out"], *values["expected"]):
        entry["cell"] = f"{entry['cell']['task']}/{entry['cell']['language']}"
    write_json(folder / EXPECTED, values)


def load_expected(folder: Path) -> Expectations | None:
    """The expected scores in a model folder, if there are any."""
    path = folder / EXPECTED
    content = read_json(path)
    if content is None:
        return None

    def cells(name: str) -> list[dict[str, Any]]:
        return [values | {"cell": Cell.parse(values["cell"])} for values in content[name]]

    try:
        return Expectations(
            tuple(HeldOutScore(**values) for values in cells("held_out")),
            tuple(ExpectedScore(**values) for values in cells("expected")),
            float(content["level"]),
            content.get("tried"),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise CheckpointError(f"{path}: expected the expected scores of a model; {reason}; delete it") from None
