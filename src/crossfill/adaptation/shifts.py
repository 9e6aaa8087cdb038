"""Decisions of adapted cells in tasks that F1 scores: where they lie must not move with what labels are frequent."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor

from crossfill.measures.metrics import TaskKind


def shift_of_none(
    before: Float[Tensor, "labels features_and_bias"], after: Float[Tensor, "labels more"], labels: Sequence[str]
) -> float:
    """The offset that undoes how far the bias of the label that means none moved, against those of the others.

    Sentences of a cell tell how often nothing is there, which makes probabilities right; but F1 was best served by the
    decisions of before, and few sentences do not tell where the best ones lie. `after` may have columns after the bias.
    """
    kind, bias = TaskKind.of(labels), before.shape[1] - 1
    if kind is TaskKind.TAGS:
        return 0.0
    moved = (after[:, bias] - before[:, bias]).tolist()
    none = moved.pop(list(labels).index(kind.absent))
    return float(np.mean(moved) - none)
