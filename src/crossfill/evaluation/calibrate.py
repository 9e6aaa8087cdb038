"""Calibration of a model on seen cells that were held out in turn."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from crossfill.config import Config
from crossfill.evaluation.results import PredictionKind
from crossfill.grid.cells import Cell
from crossfill.grid.task import Task
from crossfill.measures.metrics import Labelling
from crossfill.model import Model
from crossfill.prediction.calibration import Calibration, TaskCalibration
from crossfill.prediction.predict import encode, predict_features
from crossfill.prediction.rules import Rule, Sample
from crossfill.training.labelled import Labelled


@dataclass(frozen=True)
class PredictedCell:
    """Words of a cell with their right labels, and what a model predicts of them."""

    cell: Cell
    task: Task
    """Its labels are those of the columns of the probabilities."""
    lengths: Int[np.ndarray, "sentences"]
    gold: Int[np.ndarray, "words"]
    plug_in: Float[np.ndarray, "words labels"]
    averaged: Float[np.ndarray, "words labels"]
    """The same with Bayesian model averaging; the plug-in probabilities for methods without a posterior."""

    def sample(self, kind: PredictionKind = "plug_in") -> Sample:
        """One kind of prediction, to fit a rule or a calibration to."""
        return Sample(self.plug_in if kind == "plug_in" else self.averaged, self.gold, self.lengths)

    def score(self, rule: Rule | None = None) -> float:
        """The task's headline score of the plug-in prediction, from 0 to 1."""
        chosen = (rule or Rule()).choose(self.plug_in, self.lengths, self.task)
        return Labelling(self.gold, chosen, self.task, self.lengths).scores()["score"]


def predict_cell(model: Model, cell: Cell, parts: Sequence[Labelled], config: Config) -> PredictedCell:
    """Predict labelled sentences of a cell with posterior means, and averaged over samples."""
    settings = config.prediction
    features = [encode(model, data.inputs, cell.task) for data in parts]
    probabilities: list[np.ndarray] = []
    for n_samples in (0, settings.samples if model.heads.has_posterior else 0):
        predictions = [predict_features(model, part, cell, n_samples, settings.seed) for part in features]
        probabilities.append(np.concatenate([prediction.probabilities.cpu().numpy() for prediction in predictions]))
    plug_in, averaged = probabilities
    return PredictedCell(
        cell,
        model.inventory.task(cell.task),
        np.concatenate([data.lengths.numpy() for data in parts]),
        np.concatenate([data.labels.numpy() for data in parts]),
        plug_in,
        averaged,
    )


def calibrate_on(cells: Sequence[PredictedCell]) -> Calibration:
    """Calibrate each task on these cells, which the models that predicted them did not train on."""
    of_task: dict[str, list[PredictedCell]] = defaultdict(list)
    for predicted in cells:
        of_task[predicted.cell.task].append(predicted)
    plug_in, averaged = (
        {
            task: TaskCalibration.of([cell.sample(kind) for cell in held_out], held_out[0].task)
            for task, held_out in sorted(of_task.items())
        }
        for kind in ("plug_in", "averaged")
    )
    return Calibration(plug_in, averaged)
