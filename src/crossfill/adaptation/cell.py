"""An adapted cell: the posterior of its head given its own labelled sentences, its temperature, and its decisions.

Temperature and the offset of decisions come from predictions for these sentences, each by the head
without it (by influence), and are shrunk to those of the task, so that few sentences change little.
"""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import CellVariances, Fit, default_scales
from crossfill.adaptation.gaussian import HeadPosterior, HeadPrior
from crossfill.adaptation.lexicon import Lexicon
from crossfill.grid.cells import Cell
from crossfill.grid.task import Task, TaskKind, Unit
from crossfill.measures.metrics import Labelling, score
from crossfill.model import CellDecision
from crossfill.prediction.calibration import TaskCalibration, rule_for
from crossfill.prediction.rules import PairTable, Rule, Sample, count_pairs

SPREAD = 0.2
"""Standard deviation of the logarithm of a cell's temperature around that of its task."""
CAUTION = 6.0
"""The weight of s² for a shift s of decisions. Chosen with `fit.DOUBT`, on languages that report nothing."""
_LOGS = np.linspace(math.log(0.25), math.log(4), 200)
_SHIFTS = np.linspace(-2, 2, 21)


class CellCalibration(NamedTuple):
    """Temperature and decisions of a cell, relative to those of its task."""

    temperature: float = 1.0
    """A factor."""
    shift: float = 0.0
    """Added to the offset of the decision rule (`crossfill.prediction.rules`)."""


class Gain(NamedTuple):
    """Scores of the sentences that a cell was adapted to, from 0 to 1."""

    before: float
    """By the head that knows none of them."""
    after: float
    """By heads that know the others only."""
    error: float
    """Standard error of the gain, by the jackknife over sentences."""

    @property
    def is_loss(self) -> bool:
        """Whether the cell lost more than its standard error."""
        return self.before - self.after > self.error


def gain_of(fit: Fit, task: Task, rule: Rule, shift: float) -> Gain:
    """Compare the heads of a cell with the one that was generated for it, on its sentences left out in turn."""
    gold, lengths, counts = fit.examples.labels.numpy(), fit.examples.lengths.numpy(), []
    for logits, offset in ((fit.generated_logits, 0.0), (fit.leave_out_logits, shift)):
        moved = replace(rule, offset=rule.offset + offset)
        chosen = moved.choose(logits.softmax(-1).numpy(), lengths, task)
        counts.append(Labelling(gold, chosen, task, lengths).counts())
    every, n = np.stack(counts), len(lengths)  # before and after × sentences × hits, gold, predicted
    totals = np.concatenate([every.sum(1, keepdims=True), every.sum(1, keepdims=True) - every], 1)
    scores = 2 * totals[..., 0] / np.maximum(1, totals[..., 1:].sum(-1))
    gains = scores[1, 1:] - scores[0, 1:]  # without each sentence
    error = math.sqrt((n - 1) / n * float(((gains - gains.mean()) ** 2).sum()))
    return Gain(float(scores[0, 0]), float(scores[1, 0]), error)


def calibrate_cell(fit: Fit, task: Task, calibration: TaskCalibration | None = None) -> CellCalibration:
    """Calibrate a cell on its sentences left out in turn; `calibration` is that of its task."""
    of_task = 1.0 if calibration is None else calibration.temperature
    if not _judges(fit.examples, task):
        return CellCalibration()
    labels, logs = fit.examples.labels, fit.leave_out_logits.log_softmax(-1)
    temperature = shrunk_temperature(logs[labels >= 0].numpy(), labels[labels >= 0].numpy(), of_task)
    return CellCalibration(temperature / of_task, offset_shift(fit, task, rule_for(calibration, "metric")))


def offset_shift(fit: Fit, task: Task, rule: Rule) -> float:
    """The shift of a cell's decisions against the rule of its task; 0 where every word counts."""
    if task.absent is None or not _judges(fit.examples, task):
        return 0.0
    probabilities, examples = fit.leave_out_logits.softmax(-1).numpy(), fit.examples
    return shrunk_shift(Sample(probabilities, examples.labels.numpy(), examples.lengths.numpy()), task, rule)


def shifted(rule: Rule, fit: Fit, task: Task) -> Rule:
    """Change a task's rule to that of a cell with these sentences; argmax stays as it is."""
    if not rule.valid:
        return rule
    return replace(rule, offset=rule.offset + offset_shift(fit, task, rule), counts=label_pairs(fit.examples, task))


def _judges(examples: Examples, task: Task) -> bool:
    """Whether labelled words can show errors of both kinds: marked names alone do not say what is no name."""
    if task.absent is None:
        return examples.n_labelled > 0
    return bool((examples.labels == task.labels.index(task.absent)).any())


def label_pairs(examples: Examples, task: Task) -> PairTable:
    """Count what follows what in sentences of a task of tags; spans are too few to say."""
    if task.kind is not TaskKind.TAGS or task.unit is not Unit.WORD or not examples.n_labelled:
        return ()
    counts = count_pairs(examples.labels.numpy(), examples.lengths.numpy(), len(task.labels))
    return tuple(map(tuple, counts.tolist()))


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


def shrunk_shift(left_out: Sample, task: Task, rule: Rule) -> float:
    """The s that maximises n F1(offset of the task + s) − CAUTION s², for n sentences.

    The task's offset suits heads of cells that were never seen; a cell with sentences of its own needs another.
    """

    def f1(shift: float) -> float:
        chosen = replace(rule, offset=rule.offset + shift).choose(left_out.probabilities, left_out.lengths, task)
        return score(left_out.gold, chosen, task, left_out.lengths)

    n = len(left_out.lengths)
    best = max(_SHIFTS.tolist(), key=lambda shift: (n * f1(shift) - CAUTION * shift**2, -abs(shift)))
    return round(best, 6)


@dataclass(frozen=True)
class AdaptedCell:
    """A cell with labelled sentences of its own, and the posterior of its head given them."""

    cell: Cell
    task: Task
    examples: Examples
    known: Int[Tensor, "known"]
    """The cues that it has learnt (`crossfill.encoders.cues`)."""
    posterior: HeadPosterior
    """Of weights, bias, and the effects of these cues."""
    variances: CellVariances
    """Of the prior."""
    calibration: CellCalibration
    """Relative to that of its task."""
    date: str
    lexicon: Lexicon | None = None
    """Listed forms that it was adapted to."""
    gain: Gain | None = None
    """What the sentences have changed, if it was computed: not in cells that are loaded."""

    @property
    def decision(self) -> CellDecision:
        return CellDecision(self.calibration.shift, label_pairs(self.examples, self.task))

    def __str__(self) -> str:
        n, n_listed = len(self.examples), len(self.lexicon.words.unique()) if self.lexicon else 0
        parts = [f"{n} sentence{'s' if n > 1 else ''}"] if n else []
        return ", ".join(["adapted", *parts, *([f"{n_listed:,} listed words"] if n_listed else [])])


@torch.no_grad()
def adapt_cell(
    generated: HeadPrior,
    examples: Examples,
    cell: Cell,
    task: Task,
    calibration: TaskCalibration | CellCalibration | None = None,
    variances: CellVariances | None = None,
    lexicon: Lexicon | None = None,
) -> AdaptedCell:
    """Compute the posterior of a cell's head given labelled sentences, a lexicon, or both.

    generated: The prior without any variance between cells (`crossfill.adaptation.heads.generated_prior`).
    calibration: That of the cell's task, which the cell's is relative to; or the cell's own, if it need not be
        computed, which takes most of the time.
    variances: Those of the task; by default the ones for its kind.
    """
    typical = examples if lexicon is None or len(examples) else lexicon.after(examples)
    variances = variances or default_scales(generated, task).variances(typical)
    fit = Fit.of(generated, examples, variances, lexicon)
    gain = None
    if not isinstance(calibration, CellCalibration):
        rule, calibration = rule_for(calibration, "metric"), calibrate_cell(fit, task, calibration)
        gain = gain_of(fit, task, rule, calibration.shift) if len(examples) else None
    return AdaptedCell(
        cell=cell,
        task=task,
        examples=examples,
        known=fit.known,
        posterior=fit.posterior(),
        variances=fit.variances,
        calibration=calibration,
        date=datetime.now(UTC).date().isoformat(),
        lexicon=lexicon,
        gain=gain,
    )
