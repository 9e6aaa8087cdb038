"""How far the heads of a task's cells lie from what is generated for them: the width τ² of the prior between cells.

    θ of a cell ~ N(generated θ, covariance of its draws + τ² I)

τ² of a task is estimated by empirical Bayes on cells that were held out in turn: it maximises the sum over these cells
of the evidence ln p(y | X, τ²), with heads from a model that was trained without the cell. The spread of a cell's own
τ² around it, in natural logarithms, is estimated too. When a cell is adapted, its τ² maximises the evidence of its
sentences plus this prior of τ²:

    ln τ² ~ N(ln τ²_task, spread²)
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from torch import Tensor

from crossfill import checkpoint
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.laplace import Laplace, Problem, laplace
from crossfill.adaptation.likelihood import Likelihood
from crossfill.errors import CheckpointError
from crossfill.files import write_json

GRID = tuple(10 ** (k / 4) for k in range(-28, 5))
"""Values of τ² that the evidence of held-out cells is computed at."""
MOST_SPREAD = math.log(4)
_TRIES = 6


@dataclass(frozen=True)
class Width:
    """The prior of a task's τ²."""

    between: float
    """The most probable τ²."""
    spread: float
    """Standard deviation of ln τ² over cells."""
    cells: int
    """Number of held-out cells that it was estimated on; 0 for the default."""

    def log_prior(self, between: float) -> float:
        """ln p(τ²), up to a constant."""
        return -0.5 * (math.log(between / self.between) / self.spread) ** 2 if self.spread else 0.0


def default_width(mean_square: float) -> Width:
    """The width where none was estimated: one at which a logit moves by about `DEFAULT_MOVE`.

    `mean_square` is the mean squared norm of the words' features.
    """
    return Width(DEFAULT_MOVE**2 / max(mean_square, 1e-12), MOST_SPREAD, 0)


DEFAULT_MOVE = 1.0
"""Standard deviation of a logit between cells, where nothing is known."""


def fit_width(evidences: Float[np.ndarray, "cells widths"]) -> Width:
    """The width of a task, from the evidence of held-out cells at each τ² of `GRID`."""
    logs = np.log(np.array(GRID))
    total = evidences.sum(0)
    best = logs[int(total.argmax())]
    own = logs[evidences.argmax(1)]
    spread = min(MOST_SPREAD, max(float(np.sqrt(np.mean((own - best) ** 2))), math.log(GRID[1] / GRID[0])))
    return Width(float(np.exp(best)), spread, len(evidences))


def adjusted(
    prior: HeadPrior, likelihood: Likelihood, features: Float[Tensor, "words features"], width: Width
) -> tuple[float, Laplace]:
    """The τ² of a cell, and its posterior: evidence plus prior of τ² is maximised in one dimension.

    Three points around the task's τ², then the tops of parabolas through the best three.
    """
    found: dict[float, tuple[float, Laplace]] = {}

    def try_at(log: float) -> float:
        if log not in found:
            near = min(found, key=lambda other: abs(other - log), default=None)
            between = math.exp(log)
            problem = Problem(prior.widened(between), likelihood, features)
            made = laplace(problem, None if near is None else found[near][1].mode)
            found[log] = made.evidence + width.log_prior(between), made
        return found[log][0]

    centre, step = math.log(width.between), width.spread
    if step and len(features):
        for log in (centre, centre - step, centre + step):
            try_at(log)
        while len(found) < _TRIES:
            log = _top([(log, value) for log, (value, _) in sorted(found.items())], centre, 3 * step)
            if min(abs(log - known) for known in found) < 0.1 * step:
                break
            try_at(log)
    else:
        try_at(centre)
    best = max(found, key=lambda log: found[log][0])
    return math.exp(best), found[best][1]


def _top(points: Sequence[tuple[float, float]], centre: float, reach: float) -> float:
    """The top of the parabola through the best point and its neighbours, or a step beyond the best point at an end."""
    best = max(range(len(points)), key=lambda i: points[i][1])
    if best in (0, len(points) - 1):
        beyond = points[best][0] + (points[best][0] - points[1 if best == 0 else -2][0])
        return min(max(beyond, centre - reach), centre + reach)
    (a, fa), (b, fb), (c, fc) = points[best - 1 : best + 2]
    bend = (b - a) * (fb - fc) - (b - c) * (fb - fa)
    return b - 0.5 * ((b - a) ** 2 * (fb - fc) - (b - c) ** 2 * (fb - fa)) / bend if bend else b


def save_widths(folder: Path, widths: Mapping[str, Width]) -> None:
    """Write the widths of a model's tasks into its folder."""
    write_json(folder / checkpoint.WIDTHS, {task: asdict(width) for task, width in widths.items()})


def load_widths(folder: Path) -> dict[str, Width]:
    """The widths of a model's tasks; empty if none were estimated."""
    path = folder / checkpoint.WIDTHS
    try:
        found = {
            str(task): Width(float(values["between"]), float(values["spread"]), int(values["cells"]))
            for task, values in (checkpoint.read_json(path) or {}).items()
        }
        if not all(0 < w.between < math.inf and 0 <= w.spread < math.inf for w in found.values()):
            raise ValueError("expected positive numbers")
        return found
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: expected widths of priors; {type(error).__name__}: {error}; delete it"
        ) from None
