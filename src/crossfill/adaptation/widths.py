"""How far the heads of a task's cells lie from what is generated for them: the width τ² of the prior between cells.

    θ of a cell ~ N(generated θ, covariance of its draws + τ² I)

τ² of a task is estimated by empirical Bayes on cells that were held out in turn, with heads from a model that was
trained without the cell. For each of some numbers k of sentences it maximises the mean score on other sentences of
these cells, after an adaptation to k of them. Between these k, ln τ² is interpolated in ln k.

The score is used, and neither the evidence nor the likelihood of other sentences: the evidence prefers a τ² that is too
small for tags, as it also counts how badly the first words were predicted before any label was seen; the likelihood
prefers one that is too large for spans, as it rewards better calibration at the cost of spans (docs/adapt.md).
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from crossfill import checkpoint
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import with_ones
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.laplace import Problem
from crossfill.adaptation.likelihood import Categorical
from crossfill.errors import CheckpointError
from crossfill.files import write_json
from crossfill.measures.metrics import score
from crossfill.prediction.rules import Rule

GRID = tuple(10 ** (k / 2) for k in range(-7, 2))
"""Values of τ² that are tried."""
SENTENCES = (2, 8, 32)
"""k: the numbers of sentences of a held-out cell that are adapted to."""
DEFAULT_MOVE = 1.5
"""Standard deviation of a logit between cells where nothing was estimated; chosen on held-out cells (docs/adapt.md)."""


@dataclass(frozen=True)
class Width:
    """τ² of a task by the number of sentences."""

    between: tuple[float, ...]
    """τ² at each k of `SENTENCES`."""
    cells: int
    """Number of held-out cells that it was estimated on; 0 for the default."""

    def at(self, n_sentences: int) -> float:
        """τ² for this many sentences: interpolated between the nearest k, constant beyond the first and the last."""
        logs = np.interp(math.log(max(1, n_sentences)), np.log(SENTENCES), np.log(self.between))
        return float(np.exp(logs))


def default_width(mean_square: float) -> Width:
    """The width where none was estimated: logits move by `DEFAULT_MOVE`.

    `mean_square` is the mean squared norm of the words' features.
    """
    return Width((DEFAULT_MOVE**2 / max(mean_square, 1e-12),) * len(SENTENCES), 0)


def held_out_scores(
    prior: HeadPrior, examples: Examples, others: Examples, labels: tuple[str, ...]
) -> Float[np.ndarray, "sentences widths"]:
    """The score on `others` of a head adapted to the k first sentences of `examples`, by k and τ²."""
    features, lengths = with_ones(others.features), others.lengths.numpy()
    found = np.zeros((len(SENTENCES), len(GRID)))
    for i, k in enumerate(SENTENCES):
        few = examples.take(range(min(k, len(examples))))
        near = None
        for j, between in enumerate(GRID):
            near = Problem(prior.widened(between), Categorical(few.labels), with_ones(few.features)).mode(near)
            chosen = Rule().choose((features @ near.mean.T).softmax(-1).numpy(), lengths, labels)
            found[i, j] = score(others.labels.numpy(), chosen, labels, lengths)
    return found


def fit_width(cells: Float[np.ndarray, "cells sentences widths"]) -> Width:
    """The width of a task, from the scores of each held-out cell."""
    return Width(tuple(GRID[best] for best in cells.mean(0).argmax(1).tolist()), len(cells))


def save_widths(folder: Path, widths: Mapping[str, Width]) -> None:
    """Write the widths of a model's tasks into its folder."""
    write_json(folder / checkpoint.WIDTHS, {task: asdict(width) for task, width in widths.items()})


def load_widths(folder: Path) -> dict[str, Width]:
    """The widths of a model's tasks; empty if none were estimated."""
    path = folder / checkpoint.WIDTHS
    try:
        found = {
            str(task): Width(tuple(map(float, values["between"])), int(values["cells"]))
            for task, values in (checkpoint.read_json(path) or {}).items()
        }
        for width in found.values():
            if len(width.between) != len(SENTENCES) or not all(0 < value < math.inf for value in width.between):
                raise ValueError(f"expected {len(SENTENCES)} positive numbers")
        return found
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: expected widths of priors; {type(error).__name__}: {error}; delete it"
        ) from None
