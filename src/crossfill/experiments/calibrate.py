"""What a trained model still needs before it can be used elsewhere: its calibration, and what it reads with."""

from pathlib import Path

import numpy as np

from crossfill import checkpoint
from crossfill.calibration import Calibration, TaskCalibration, save_calibration
from crossfill.config import Config
from crossfill.data.splits import for_calibration
from crossfill.experiments.card import DATA, RESULTS, describe_data, write_card
from crossfill.grid import Grid
from crossfill.model import Model
from crossfill.predict import encode, predict_features
from crossfill.training import prepare


def complete(model: Model, grid: Grid, config: Config, out: Path) -> None:
    """Write a trained model's calibration into its folder, and settings and tokenizer of an encoder that trained."""
    checkpoint.write_json(out / DATA, describe_data(grid, sorted(model.seen)))
    if config.training.calibration_share:
        save_calibration(out, calibrate(model, grid, config))
    if config.encoder.name != "compact" and config.encoder.pretrained.mode != "frozen":
        from crossfill.encoders import hub

        hub.carry(hub.find_folder(config.encoder.name), out / checkpoint.ENCODER, weights=False)
    (out / RESULTS).unlink(missing_ok=True)  # of another run
    write_card(out)


def calibrate(model: Model, grid: Grid, config: Config) -> Calibration:
    """The calibration of each task, over the dev sentences of its seen cells that selected nothing."""
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
