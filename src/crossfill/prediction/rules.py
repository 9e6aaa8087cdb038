"""Decision rules: from probabilities to labels, for the metric that a task is scored by.

Where every word counts, the most probable label is the best decision. F1 counts what was found against what is there,
and its best decision also depends on how often anything is there. A rule adds an offset b to the label that means none
(`O`, `_`), and in tasks with spans chooses among valid IOB2 sequences only:

    y* = argmax over valid y of Σᵢ log pᵢ(yᵢ) + b · [yᵢ is none]

The offset is chosen on seen cells that were held out in turn, so that it expects a cell that was never seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from crossfill.grid.task import Task, TaskKind
from crossfill.measures.metrics import Labelling
from crossfill.prediction.decoding import TINY, viterbi

Preference = Literal["f1", "precision", "recall"]
BETAS: dict[Preference, float] = {"f1": 1.0, "precision": 0.5, "recall": 2.0}
"""The β of the F score that an offset maximises: below 1 precision counts more, above it recall."""
FARTHEST, STEP = 4.0, 0.1
"""Offsets that are tried: from −FARTHEST to FARTHEST."""


@dataclass(frozen=True)
class Rule:
    """How the probabilities of a task's labels become labels."""

    offset: float = 0.0
    """Added to the log-probability of the label that means none; below 0 finds more, above 0 fewer."""
    valid: bool = True
    """Whether spans are decoded as valid IOB2 sequences."""

    def choose(
        self,
        probabilities: Float[np.ndarray, "words labels"],
        lengths: Int[np.ndarray, "sentences"],
        task: Task,
    ) -> Int[np.ndarray, "words"]:
        """The label of each word, sentence or pair, as a column of the probabilities."""
        weights = np.log(np.maximum(probabilities, TINY))
        if self.offset and task.absent is not None:
            weights[:, task.labels.index(task.absent)] += self.offset
        spans = self.valid and task.kind is TaskKind.SPANS
        return viterbi(weights, lengths, task.labels) if spans else weights.argmax(-1)


ARGMAX = Rule(valid=False)
"""The most probable label of each word."""


class Sample(NamedTuple):
    """Words of one cell with their right labels, and what a model that never saw the cell believes of them."""

    probabilities: Float[np.ndarray, "words labels"]
    gold: Int[np.ndarray, "words"]
    lengths: Int[np.ndarray, "sentences"]


def fit_offsets(cells: Sequence[Sample], task: Task) -> dict[Preference, float]:
    """For each preference the offset with the best mean score over the cells; none for tasks in which all words count.

    Scores are smoothed over neighbouring offsets, as a few spans make them jump.
    """
    if task.absent is None or not cells:
        return {}
    offsets = np.arange(-FARTHEST, FARTHEST + STEP / 2, STEP)
    counts = np.array([[_counts(sample, Rule(offset), task) for sample in cells] for offset in offsets.tolist()])
    found: dict[Preference, float] = {}
    for preference, beta in BETAS.items():
        means = _f_score(counts, beta).mean(1)
        smooth = np.convolve(np.pad(means, 2, mode="edge"), np.full(5, 0.2), mode="valid")
        found[preference] = round(float(offsets[smooth.argmax()]), 6)
    return found


def _counts(sample: Sample, rule: Rule, task: Task) -> Int[np.ndarray, "3"]:
    """Hits, gold and predicted items of a cell."""
    chosen = rule.choose(sample.probabilities, sample.lengths, task)
    return Labelling(sample.gold, chosen, task, sample.lengths).counts().sum(0)


def _f_score(counts: Int[np.ndarray, "offsets cells 3"], beta: float) -> Float[np.ndarray, "offsets cells"]:
    """(1 + β²) · hits / (β² · gold + predicted)."""
    hits, gold, predicted = np.moveaxis(counts, -1, 0)
    return (1 + beta**2) * hits / np.maximum(beta**2 * gold + predicted, 1)
