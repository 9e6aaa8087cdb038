"""Calibration of a trained model, on dev sentences of its seen cells that were kept out of model selection."""

import numpy as np

from crossfill.config import Config
from crossfill.data.splits import for_calibration
from crossfill.grid.cells import Grid
from crossfill.model import Model
from crossfill.prediction.calibration import Calibration, TaskCalibration
from crossfill.prediction.predict import encode, predict_features
from crossfill.training.labelled import prepare


def calibrate(model: Model, grid: Grid, config: Config) -> Calibration:
    """Calibrate each task on the dev sentences of its seen cells that were kept out of model selection."""
    settings = config.prediction
    corpora = for_calibration(grid, config.training.calibration_share, sorted(model.seen))
    plug_in: dict[str, TaskCalibration] = {}
    averaged: dict[str, TaskCalibration] = {}
    for task in sorted({cell.task for cell in corpora}):
        made: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        gold, n_sentences = [], 0
        for cell, corpus in corpora.items():
            if cell.task != task:
                continue
            data = prepare(model.encoder, model.inventory, cell, corpus)
            features = encode(model, data.inputs)
            for parts, n_samples in zip(made, (0, settings.samples), strict=True):
                found = predict_features(model, features, cell, n_samples, settings.seed)
                parts.append(found.probabilities.cpu().numpy())
            gold.append(data.labels.numpy())
            n_sentences += len(corpus)
        plug_in[task], averaged[task] = (
            TaskCalibration.of(np.concatenate(parts), np.concatenate(gold), n_sentences) for parts in made
        )
    return Calibration(plug_in, averaged)
