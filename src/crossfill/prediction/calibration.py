"""Calibration on cells: a temperature, offsets for decisions, and thresholds for label sets and abstention.

Split-conformal sets with cells as units: given scores s = 1 − p(y | x) of words that were used for nothing else, and Fⱼ
their distribution in cell j with one more score of 1 for the word that is to come, ŝ is the smallest score with

    (1/J) Σⱼ Fⱼ(ŝ) ≥ 1 − α.

The set {y : 1 − p(y | x) ≤ ŝ} contains the right label of a new word there with probability at least 1 − α.
A cell that is yet to come is another matter: if it is exchangeable with the J cells, the probability is at least
1 − α − 1/(J + 1) (see docs/trust.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Bool, Float
from pydantic import Field

from crossfill.checkpoint import CALIBRATION, read_as
from crossfill.config import Decision
from crossfill.errors import DataError
from crossfill.files import write_json
from crossfill.grid.task import Task
from crossfill.measures.metrics import LabelIds, Probabilities
from crossfill.model import AS_ITS_TASK, CellDecision
from crossfill.prediction.rules import FARTHEST, Preference, Rule, Sample, fit_offsets, pair_shares

LEVELS = 1000
"""Resolution of α and of the share to abstain on: both are rounded down to multiples of 1/LEVELS."""
_TEMPERATURES = (0.05, 20.0)
_Levels = Annotated[
    tuple[Annotated[float, Field(ge=0, le=1.000001)], ...], Field(min_length=LEVELS + 1, max_length=LEVELS + 1)
]
_Offset = Annotated[float, Field(ge=-FARTHEST, le=FARTHEST)]


@dataclass(frozen=True)
class TaskCalibration:
    """The calibration of one task, over all its cells with calibration data; every cell counts the same."""

    n_words: int
    n_sentences: int
    temperature: Annotated[float, Field(gt=0, lt=math.inf)]
    """T that maximises the likelihood of p^(1/T), renormalised; above 1 the model was overconfident."""
    scores: _Levels
    """Thresholds ŝ at 1 − α = 0, 1/LEVELS, …, 1."""
    confidences: _Levels
    """Quantiles of the words' confidence at 0, 1/LEVELS, …, 1."""
    n_cells: int = 1
    offsets: Mapping[Preference, _Offset] = field(default_factory=dict)
    """The offset of the decision rule for each preference; empty where the most probable label is the best decision."""
    pairs: tuple[tuple[Annotated[float, Field(gt=0, le=1)], ...], ...] = ()
    """The share of each pair of labels (`crossfill.prediction.rules.pair_shares`)."""

    @classmethod
    def of(cls, cells: Sequence[Sample], task: Task) -> "TaskCalibration":
        """Calibrate on the words of these cells, which the models that predicted them did not train on."""
        labelled = [(one.probabilities[one.gold >= 0], one.gold[one.gold >= 0]) for one in cells]
        probabilities, gold = (np.concatenate(parts) for parts in zip(*labelled, strict=True))
        pairs = pair_shares(cells, task)
        levels, weights = np.arange(LEVELS + 1) / LEVELS, _weights([len(of_cell) for _, of_cell in labelled])
        confidences = _quantiles(probabilities.max(-1), np.concatenate(weights), levels)
        scores = [np.append(1.0 - given[np.arange(len(right)), right], 1.0) for given, right in labelled]
        thresholds = _quantiles(np.concatenate(scores), np.concatenate(_weights(list(map(len, scores)))), levels)
        return cls(
            len(gold),
            sum(len(sample.lengths) for sample in cells),
            fit_temperature(probabilities, gold, np.concatenate(weights)),
            tuple((np.ceil(thresholds * 1e7) / 1e7).tolist()),  # rounded up: sets may only grow
            tuple((np.floor(confidences * 1e7) / 1e7).tolist()),
            len(cells),
            fit_offsets(cells, task, pairs),
            pairs,
        )

    def sets(self, probabilities: Probabilities, alpha: float) -> Bool[np.ndarray, "words labels"]:
        """Return the label set of each word at level α; the most probable label is always in it."""
        if not 0 < alpha < 1:
            raise DataError(f"expected alpha between 0 and 1, such as 0.1 for sets that hold 90 %; got {alpha}")
        threshold = self.scores[math.ceil((1 - alpha) * LEVELS - 1e-9)]
        chosen = 1.0 - probabilities <= threshold
        chosen[np.arange(len(chosen)), probabilities.argmax(-1)] = True
        return chosen

    def doubtful(self, probabilities: Probabilities, share: float) -> Bool[np.ndarray, "words"]:
        """Mark the words whose confidence would be in the lowest `share` of the calibration words."""
        if not 0 <= share <= 1:
            raise DataError(f"expected a share of words to abstain on from 0 to 1, got {share}")
        return probabilities.max(-1) < self.confidences[math.floor(share * LEVELS + 1e-9)]


@dataclass(frozen=True)
class Calibration:
    """The calibration of a model's plug-in and averaged predictions, by task."""

    plug_in: Mapping[str, TaskCalibration]
    averaged: Mapping[str, TaskCalibration]

    def of(self, task: str, n_samples: int) -> TaskCalibration | None:
        """Return the calibration of a task; None if none of its seen cells had calibration data."""
        return (self.averaged if n_samples else self.plug_in).get(task)


def rule_for(
    calibration: TaskCalibration | None, decision: Decision, prefer: Preference = "f1", cell: CellDecision = AS_ITS_TASK
) -> Rule:
    """Make the decision rule of a task with this calibration, if it has one, for a cell."""
    if decision == "argmax":
        return Rule(valid=False)
    if calibration is None or decision == "valid":
        return Rule(cell.shift)
    offset = calibration.offsets.get(prefer, 0.0) + cell.shift
    return Rule(offset, pairs=calibration.pairs, counts=cell.pairs)


def fit_temperature(
    probabilities: Probabilities, gold: LabelIds, weights: Float[np.ndarray, "words"] | None = None
) -> float:
    """Find the T that minimises −Σ wᵢ ln (p^(1/T)(yᵢ) / Z), found by bisecting the slope, as it is convex in 1/T."""
    logs = np.log(np.maximum(probabilities.astype(np.float64), 1e-30))
    share = np.full(len(gold), 1 / max(1, len(gold))) if weights is None else weights
    right = float(share @ logs[np.arange(len(gold)), gold])
    low, high = 1 / _TEMPERATURES[1], 1 / _TEMPERATURES[0]
    for _ in range(60):
        middle = (low + high) / 2
        tempered = _softmax(logs * middle)
        if float(share @ (tempered * logs).sum(-1)) > right:
            high = middle
        else:
            low = middle
    return float(round(2 / (low + high), 6)) if len(gold) else 1.0


def tempered(probabilities: Probabilities, temperature: float) -> Probabilities:
    """Compute p^(1/T), renormalised."""
    return _softmax(np.log(np.maximum(probabilities, 1e-30)) / temperature).astype(probabilities.dtype)


def save_calibration(folder: Path, calibration: Calibration) -> None:
    """Write the calibration of a model into its folder."""
    write_json(folder / CALIBRATION, asdict(calibration), indent=None)


def load_calibration(folder: Path) -> Calibration | None:
    """Read the calibration in a model folder, if there is one."""
    return read_as(folder / CALIBRATION, Calibration, "the calibration of a model")


def _weights(sizes: Sequence[int]) -> list[Float[np.ndarray, "words"]]:
    """Weigh each word of each cell: cells count the same, and so do the words of a cell."""
    return [np.full(size, 1 / (len(sizes) * size)) for size in sizes]


def _quantiles(
    values: Float[np.ndarray, "n"], weights: Float[np.ndarray, "n"], levels: Float[np.ndarray, "levels"]
) -> Float[np.ndarray, "levels"]:
    """Find for each level the smallest value up to which there is that much weight; 0 for the level 0."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    places = np.minimum(np.searchsorted(reached, levels - 1e-9), len(values) - 1)
    return np.where(levels > 0, values[order][places], 0.0)


def _softmax(logits: Probabilities) -> Probabilities:
    weights = np.exp(logits - logits.max(-1, keepdims=True, initial=-np.inf))
    return weights / weights.sum(-1, keepdims=True)
