"""Calibration on dev data of seen cells: a temperature, and thresholds for label sets and abstention.

Split-conformal sets: given scores sᵢ = 1 − p(yᵢ | xᵢ) of n words that were used for nothing else, and ŝ the
⌈(n + 1)(1 − α)⌉-th smallest of them, the set {y : 1 − p(y | x) ≤ ŝ} contains the right label of a new word that is
exchangeable with them with probability at least 1 − α (see docs/calibrate.md).
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from crossfill.checkpoint import CALIBRATION, read_json
from crossfill.errors import CheckpointError, DataError
from crossfill.files import write_json

LEVELS = 1000
"""Resolution of α and of the share to abstain on: both are rounded down to multiples of 1/LEVELS."""
_TEMPERATURES = (0.05, 20.0)


@dataclass(frozen=True)
class TaskCalibration:
    """The calibration of one task, over all its seen cells with calibration data."""

    n_words: int
    n_sentences: int
    temperature: float
    """T that maximises the likelihood of p^(1/T), renormalised; above 1 the model was overconfident."""
    scores: tuple[float, ...]
    """Thresholds ŝ at 1 − α = 0, 1/LEVELS, …, 1."""
    confidences: tuple[float, ...]
    """Quantiles of the words' confidence at 0, 1/LEVELS, …, 1."""

    @classmethod
    def of(
        cls, probabilities: Float[np.ndarray, "words labels"], gold: Int[np.ndarray, "words"], n_sentences: int
    ) -> "TaskCalibration":
        """Calibrate on these words, none of which may have been used to train or select the model."""
        scores = 1.0 - probabilities[np.arange(len(gold)), gold].astype(np.float64)
        n, levels = len(gold), np.arange(LEVELS + 1) / LEVELS
        place = np.ceil((n + 1) * levels - 1e-9).astype(np.int64)
        ordered = np.concatenate([[0.0], np.sort(scores), [1.0]])  # beyond the last score every label is in the set
        confidences = np.quantile(probabilities.max(-1), levels)
        return cls(
            n,
            n_sentences,
            fit_temperature(probabilities, gold),
            tuple((np.ceil(ordered[np.minimum(place, n + 1)] * 1e7) / 1e7).tolist()),  # rounded up: sets may only grow
            tuple((np.floor(confidences * 1e7) / 1e7).tolist()),
        )

    def sets(self, probabilities: Float[np.ndarray, "words labels"], alpha: float) -> Bool[np.ndarray, "words labels"]:
        """The label set of each word at level α; the most probable label is always in it."""
        if not 0 < alpha < 1:
            raise DataError(f"expected alpha between 0 and 1, such as 0.1 for sets that hold 90 %; got {alpha}")
        threshold = self.scores[math.ceil((1 - alpha) * LEVELS - 1e-9)]
        chosen = 1.0 - probabilities <= threshold
        chosen[np.arange(len(chosen)), probabilities.argmax(-1)] = True
        return chosen

    def doubtful(self, probabilities: Float[np.ndarray, "words labels"], share: float) -> Bool[np.ndarray, "words"]:
        """The words whose confidence would be in the lowest `share` of the calibration words."""
        if not 0 <= share <= 1:
            raise DataError(f"expected a share of words to abstain on from 0 to 1, got {share}")
        return probabilities.max(-1) < self.confidences[math.floor(share * LEVELS + 1e-9)]


@dataclass(frozen=True)
class Calibration:
    """The calibration of a model's plug-in and averaged predictions, by task."""

    plug_in: Mapping[str, TaskCalibration]
    averaged: Mapping[str, TaskCalibration]

    def of(self, task: str, n_samples: int) -> TaskCalibration | None:
        """The calibration of a task; None if none of its seen cells had calibration data."""
        return (self.averaged if n_samples else self.plug_in).get(task)


def fit_temperature(probabilities: Float[np.ndarray, "words labels"], gold: Int[np.ndarray, "words"]) -> float:
    """The T that minimises −Σ ln (p^(1/T)(yᵢ) / Z), found by bisecting the slope, as it is convex in 1/T."""
    logs = np.log(np.maximum(probabilities.astype(np.float64), 1e-30))
    right = logs[np.arange(len(gold)), gold].mean() if len(gold) else 0.0
    low, high = 1 / _TEMPERATURES[1], 1 / _TEMPERATURES[0]
    for _ in range(60):
        middle = (low + high) / 2
        tempered = _softmax(logs * middle)
        if (tempered * logs).sum(-1).mean() > right:
            high = middle
        else:
            low = middle
    return float(round(2 / (low + high), 6)) if len(gold) else 1.0


def tempered(probabilities: Float[np.ndarray, "words labels"], temperature: float) -> Float[np.ndarray, "words labels"]:
    """p^(1/T), renormalised."""
    return _softmax(np.log(np.maximum(probabilities, 1e-30)) / temperature).astype(probabilities.dtype)


def save_calibration(folder: Path, calibration: Calibration) -> None:
    """Write the calibration of a model into its folder."""
    write_json(folder / CALIBRATION, {"levels": LEVELS, **asdict(calibration)}, indent=None)


def load_calibration(folder: Path) -> Calibration | None:
    """The calibration in a model folder, if there is one."""
    path = folder / CALIBRATION
    found = read_json(path)
    if found is None:
        return None
    try:
        if found["levels"] != LEVELS:
            raise ValueError(f"expected {LEVELS} levels, got {found['levels']}")
        parts = [{str(t): _task(v) for t, v in found[kind].items()} for kind in ("plug_in", "averaged")]
        return Calibration(*parts)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise CheckpointError(
            f"{path}: expected the calibration of a model; {reason}; delete it or train again"
        ) from None


def _task(values: Mapping[str, Any]) -> TaskCalibration:
    columns = {name: tuple(map(float, values[name])) for name in ("scores", "confidences")}
    for name, column in columns.items():
        if len(column) != LEVELS + 1 or not all(0 <= value <= 1.000001 for value in column):
            raise ValueError(f"{name}: expected {LEVELS + 1} numbers from 0 to 1")
    temperature = float(values["temperature"])
    if not 0 < temperature < math.inf:
        raise ValueError(f"expected a temperature above 0, got {temperature}")
    return TaskCalibration(int(values["n_words"]), int(values["n_sentences"]), temperature, **columns)


def _softmax(logits: Float[np.ndarray, "words labels"]) -> Float[np.ndarray, "words labels"]:
    weights = np.exp(logits - logits.max(-1, keepdims=True, initial=-np.inf))
    return weights / weights.sum(-1, keepdims=True)
