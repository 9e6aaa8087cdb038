"""The calibration of an adapted cell: its temperature, and the offset of its decisions.

Both come from predictions for these sentences, each by a head that was fitted without it, and are shrunk to those of
the task, so that few sentences change little.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from crossfill.adaptation.fit import Fit
from crossfill.grid.task import Task
from crossfill.measures.metrics import score
from crossfill.prediction.calibration import TaskCalibration
from crossfill.prediction.rules import Rule, Sample

SPREAD = 0.2
"""Standard deviation of the logarithm of a cell's temperature around that of its task."""
CAUTION = 2.0
"""The weight of s² for a shift s of decisions. Chosen on held-out cells (docs/adapt.md)."""
_LOGS = np.linspace(math.log(0.25), math.log(4), 200)
_SHIFTS = np.linspace(-2, 2, 21)


class CellCalibration(NamedTuple):
    """Temperature and decisions of a cell, relative to those of its task."""

    temperature: float = 1.0
    """A factor."""
    shift: float = 0.0
    """Added to the offset of the decision rule (`crossfill.prediction.rules`)."""


def calibrate_cell(fit: Fit, task: Task, calibration: TaskCalibration | None = None) -> CellCalibration:
    """Calibrate a cell on its sentences left out in turn; `calibration` is that of its task."""
    known = calibration is not None
    of_task, offset = (calibration.temperature, calibration.offsets.get("f1", 0.0)) if known else (1.0, 0.0)
    temperature = shrunk_temperature(fit.leave_out_logits.log_softmax(-1).numpy(), fit.examples.labels.numpy(), of_task)
    return CellCalibration(temperature / of_task, offset_shift(fit, task, offset))


def shifted(rule: Rule, fit: Fit, task: Task) -> Rule:
    """Shift a task's rule to that of a cell with these sentences; argmax stays as it is."""
    return replace(rule, offset=rule.offset + offset_shift(fit, task, rule.offset)) if rule.valid else rule


def offset_shift(fit: Fit, task: Task, offset: float) -> float:
    """The shift of a cell's decisions against the offset of its task; 0 where every word counts."""
    if task.absent is None:
        return 0.0
    probabilities, examples = fit.leave_out_logits.softmax(-1).numpy(), fit.examples
    return shrunk_shift(Sample(probabilities, examples.labels.numpy(), examples.lengths.numpy()), task, offset)


def shrunk_temperature(logs: Float[np.ndarray, "words labels"], gold: np.ndarray, of_task: float) -> float:
    """The T that maximises Σ ln (p^(1/T)(yᵢ) / Z) + ln N(ln T; ln T_task, SPREAD²)."""
    values = []
    for log in _LOGS:
        scaled = logs / math.exp(log)
        top = scaled.max(-1)
        total = top + np.log(np.exp(scaled - top[:, None]).sum(-1))
        likelihood = float((scaled[np.arange(len(gold)), gold] - total).sum())
        values.append(likelihood - 0.5 * ((log - math.log(of_task)) / SPREAD) ** 2)
    return float(round(math.exp(_LOGS[int(np.argmax(values))]), 4))


def shrunk_shift(left_out: Sample, task: Task, of_task: float) -> float:
    """The s that maximises n F1(offset of the task + s) − 2 s², for n sentences.

    The task's offset suits heads of cells that were never seen; a cell with sentences of its own needs another.
    """

    def f1(shift: float) -> float:
        chosen = Rule(of_task + shift).choose(left_out.probabilities, left_out.lengths, task)
        return score(left_out.gold, chosen, task, left_out.lengths)

    n = len(left_out.lengths)
    best = max(_SHIFTS.tolist(), key=lambda shift: (n * f1(shift) - CAUTION * shift**2, -abs(shift)))
    return round(best, 6)
