"""What calibration promises, measured on test data: how often label sets hold the right label."""

from dataclasses import dataclass

import numpy as np

from crossfill import uncertainty
from crossfill.calibration import Calibration, tempered
from crossfill.config import Config
from crossfill.grid import Cell, Grid
from crossfill.model import Model
from crossfill.predict import encode, predict_features
from crossfill.training import prepare


@dataclass(frozen=True)
class Coverage:
    """How calibrated prediction does on one corpus of a cell; averaged prediction."""

    cell: Cell
    corpus: str
    seen: bool
    n_words: int
    coverage: float
    """Share of words whose label set holds the right label."""
    set_size: float
    """Mean labels in a set."""
    single: float
    """Share of words whose set has one label."""
    tempered_nll: float
    tempered_ece: float


def measure_coverage(
    model: Model, grid: Grid, config: Config, calibration: Calibration, alpha: float
) -> list[Coverage]:
    """The coverage of label sets at level α on every corpus that is evaluated, where its task was calibrated."""
    found = []
    for cell in grid.cells:
        task = calibration.of(cell.task, config.prediction.samples)
        corpora = grid.evaluation(cell, seen=cell in model.seen) if task else {}
        for name, corpus in corpora.items():
            data = prepare(model.encoder, model.inventory, cell, corpus)
            settings = config.prediction
            made = predict_features(model, encode(model, data.inputs), cell, settings.samples, settings.seed)
            p, gold = made.probabilities.cpu().numpy(), data.labels.numpy()
            sets = task.sets(p, alpha) if task else np.ones_like(p, dtype=np.bool_)
            sizes = sets.sum(-1)
            scaled = tempered(p, task.temperature if task else 1.0)
            bins = uncertainty.reliability(scaled.max(-1), scaled.argmax(-1) == gold)
            found.append(
                Coverage(
                    cell,
                    name,
                    cell in model.seen,
                    len(gold),
                    float(sets[np.arange(len(gold)), gold].mean()),
                    float(sizes.mean()),
                    float((sizes == 1).mean()),
                    uncertainty.nll(scaled, gold),
                    bins.error(),
                )
            )
    return found
