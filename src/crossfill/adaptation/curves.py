"""Learning curves: the score of a cell by the number of labelled sentences, adapted and from scratch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from crossfill.adaptation.cell import generated_prior
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import affine, with_ones
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.adaptation.laplace import Mode, Problem
from crossfill.adaptation.likelihood import Categorical
from crossfill.adaptation.widths import Width, default_width
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.measures.metrics import score
from crossfill.model import Model
from crossfill.prediction.rules import Rule

BUDGETS = (0, 1, 2, 5, 10, 20, 40, 80, 160)


@dataclass(frozen=True)
class CurvePoint:
    """Mean scores with a number of labelled sentences."""

    sentences: int
    words: float
    adapted: float
    """Score with the posterior of the cell's head; at 0 sentences, zero-shot."""
    scratch: float
    """Score of a head with the same width of prior, but centred on zero."""


@torch.no_grad()
def learning_curve(
    model: Model,
    cell: Cell,
    labelled: Examples,
    test: Examples,
    width: Width | None = None,
    draws: int = 3,
    budgets: Sequence[int] = BUDGETS,
    report: Callable[[int, str], None] = lambda _done, _note: None,
) -> list[CurvePoint]:
    """Scores on `test` of heads adapted to more and more of the labelled sentences, means over random orders.

    `model` is the model before any adaptation. Sentences that are in `test` are not adapted to.
    """
    known = set(test.hashes)
    labelled = labelled.take([i for i, text in enumerate(labelled.hashes) if text not in known])
    if not len(labelled):
        raise DataError(f"{cell}: expected labelled sentences that are not test sentences, got none")
    body, _ = affine(model.heads.plug_in([cell])[0])
    if body is not None:
        labelled, test = (replace(part, features=body(part.features)) for part in (labelled, test))
    prior = generated_prior(model, cell)
    nothing = HeadPrior(torch.zeros_like(prior.mean), prior.factor[:0], torch.zeros_like(prior.variance))
    width = width or default_width(float((labelled.features.double() ** 2).sum(1).mean()))
    features, names = with_ones(test.features), model.inventory.labels[cell.task]

    def scored(mean: torch.Tensor) -> float:
        probabilities, lengths = (features @ mean.T).softmax(-1).numpy(), test.lengths.numpy()
        return score(test.labels.numpy(), Rule().choose(probabilities, lengths, names), names, lengths)

    usable = [k for k in budgets if k <= len(labelled)]
    rows: dict[int, list[tuple[float, float, float]]] = {k: [] for k in usable}
    for draw in range(draws):
        order = np.random.default_rng(draw).permutation(len(labelled)).tolist()
        near: list[Mode | None] = [None, None]
        for place, k in enumerate(usable):
            report(draw * len(usable) + place, f"{k} sentences")
            if not k:
                rows[k].append((0.0, scored(prior.mean), scored(nothing.mean)))
                continue
            few = labelled.take(order[:k])
            for i, start in enumerate((prior, nothing)):
                wide = start.widened(width.at(k))
                near[i] = Problem(wide, Categorical(few.labels), with_ones(few.features)).mode(near[i])
            means = [scored(mode.mean) for mode in near if mode is not None]
            rows[k].append((float(len(few.labels)), means[0], means[1]))
    return [CurvePoint(k, *np.mean(found, axis=0).tolist()) for k, found in rows.items()]
