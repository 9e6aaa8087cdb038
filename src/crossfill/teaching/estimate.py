"""How good a cell is by its own corrected sentences, and what more of them are worth.

Each sentence is labelled by heads adapted to others only, and by the decision rule that each would have: to the first k
of those outside its group, in the order in which they were accepted. Up to `MOST_GROUPS` sentences are groups of their
own (leave-one-out). The sentences were chosen because they are hard, or because someone wanted them: other text may be
easier.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from crossfill.adaptation.cell import shifted
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import NOTHING_KNOWN, Fit, default_scales, predict_with
from crossfill.adaptation.heads import generated_prior
from crossfill.adaptation.lexicon import Lexicon
from crossfill.grid.cells import Cell
from crossfill.measures.metrics import Labelling
from crossfill.measures.significance import student_quantile
from crossfill.model import Model
from crossfill.prediction.rules import Rule

MOST_GROUPS = 10
FEWEST = 3  # sentences that an interval needs
BUDGETS = (0, 1, 2, 5, 10, 20, 40, 80, 160, 320, 640)
NEXT = 20  # sentences whose worth is estimated
_RESAMPLES = 500


@dataclass(frozen=True)
class Score:
    """An estimated score, from 0 to 1, with a 95 % interval; none with too few sentences."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class EstimatedPoint:
    """The score of a cell that was adapted to some sentences."""

    sentences: int
    score: Score


@dataclass(frozen=True)
class Estimate:
    """What the corrected sentences say of their cell."""

    score: Score
    """With all sentences."""
    curve: tuple[EstimatedPoint, ...]
    """From no sentence (the cell as it was before any) to all but those of one group."""
    worth: Score | None
    """The gain in score that the next `NEXT` sentences promise; none with fewer than two points."""


@torch.no_grad()
def estimate(
    model: Model,
    cell: Cell,
    examples: Examples,
    rule: Rule,
    given_up: Callable[[], bool] = lambda: False,
    lexicon: Lexicon | None = None,
) -> Estimate | None:
    """Estimate a cell's score from its corrected sentences and a lexicon; none if it was given up on the way.

    `model` is the model before any adaptation, `rule` how the task decides in cells that were not adapted.
    """
    task = model.inventory.task(cell.task)
    generated = generated_prior(model, cell)
    variances = default_scales(generated, task).variances(examples)
    n, n_groups = len(examples), min(len(examples), MOST_GROUPS)
    most = n - math.ceil(n / n_groups)
    budgets = [*(k for k in BUDGETS if k < most), most]
    chosen = np.zeros((len(budgets), len(examples.labels)), dtype=np.int64)
    for group in range(n_groups):
        out = list(range(group, n, n_groups))
        others = [i for i in range(n) if i % n_groups != group]
        words, test = examples.words_of(out).numpy(), examples.take(out)
        for place, k in enumerate(budgets):
            if given_up():
                return None
            mean, known, decision = generated.mean, NOTHING_KNOWN, rule
            if k or lexicon is not None:
                fit = Fit.of(generated, examples.take(others[:k]), variances, lexicon)
                mean, known = fit.approximate_mean(), fit.known
                decision = shifted(rule, fit, task)
            probabilities = predict_with(mean.unsqueeze(0), known, test)
            chosen[place, words] = decision.choose(probabilities, test.lengths.numpy(), task)
    gold, lengths = examples.labels.numpy(), examples.lengths.numpy()
    counts = np.stack([Labelling(gold, row, task, lengths).counts() for row in chosen])
    curve = tuple(EstimatedPoint(k, interval(row)) for k, row in zip(budgets, counts, strict=True))
    return Estimate(curve[-1].score, curve, worth(budgets, counts))


def interval(counts: Int[np.ndarray, "sentences 3"]) -> Score:
    """F1 = 2 hits / (gold + predicted) of these sentences, with a 95 % interval.

    The variance is the jackknife's over sentences, of the logit of F1 with half a hit and half a miss added, which
    keeps the interval within 0 and 1; the quantile is Student's.
    """
    hits, items = counts[:, 0].astype(np.float64), counts[:, 1:].sum(1) / 2
    n, whole = len(counts), float(_ratio(hits.sum(), items.sum()))
    if n < FEWEST:
        return Score(whole, None, None)
    logits = _logit(hits.sum() - hits, items.sum() - items)
    centre = float(_logit(hits.sum(), items.sum()))
    spread = math.sqrt((n - 1) / n * float(((logits - logits.mean()) ** 2).sum()))
    # as wide as independent items would make it at least: sentences that are all alike say little of others
    least = math.sqrt(1 / (hits.sum() + 0.5) + 1 / (max(0.0, items.sum() - hits.sum()) + 0.5))
    reach = student_quantile(0.975, n - 1) * max(spread, least)
    low, high = (1 / (1 + math.exp(-value)) for value in (centre - reach, centre + reach))
    return Score(whole, min(low, whole), max(high, whole))


def worth(budgets: Sequence[int], counts: Int[np.ndarray, "budgets sentences 3"]) -> Score | None:
    """The gain from `NEXT` more sentences: score(k) = a + b ln(1 + k), b ≥ 0, fitted to the curve by least squares.

    The interval is that of resampled sentences.
    """
    if len(budgets) < 3:
        return None
    n, sentences = budgets[-1], counts.shape[1]
    times = np.random.default_rng(0).multinomial(sentences, np.full(sentences, 1 / sentences), size=_RESAMPLES)
    times = np.concatenate([np.ones((1, sentences), dtype=times.dtype), times])
    hits, items = counts[..., 0] @ times.T, counts[..., 1:].sum(-1) @ times.T / 2
    scores = _ratio(hits.astype(np.float64), items)  # budgets × resamples
    x = np.log1p(np.array(budgets, dtype=np.float64))
    slopes = ((x - x.mean()) @ scores / ((x - x.mean()) ** 2).sum()).clip(0)
    gains = np.minimum(slopes * math.log((1 + n + NEXT) / (1 + n)), 1 - scores[-1])
    low, high = np.quantile(gains[1:], [0.025, 0.975]).tolist()
    value = float(gains[0])
    return Score(value, min(low, value), max(high, value))


def _ratio(hits: Float[np.ndarray, "..."] | float, items: Float[np.ndarray, "..."] | float) -> np.ndarray:
    return np.asarray(hits) / np.maximum(items, 1)


def _logit(hits: Float[np.ndarray, "..."] | float, items: Float[np.ndarray, "..."] | float) -> np.ndarray:
    return np.log((np.asarray(hits) + 0.5) / (np.maximum(np.asarray(items) - hits, 0) + 0.5))
