"""Decisions and calibration of a job's methods, fitted on seen cells that were held out in turn.

Every fold of the seen cells is a job: a training without them, which then predicts them. When all folds are predicted,
one more job fits a calibration for each method, which the trainings of all seeds use.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfill.checkpoint import CALIBRATION
from crossfill.files import replacing
from crossfill.grid.cells import Cell
from crossfill.grid.task import Task, Unit
from crossfill.progress import Report
from crossfill.studies.job import as_trained, exclusive, prepare_job
from crossfill.studies.plan import StudyJob
from crossfill.studies.run_folder import TRAINING, held_out_folder

if TYPE_CHECKING:
    from crossfill.evaluation.calibrate import PredictedCell

_PREDICTIONS = "predictions.npz"
_ARRAYS = ("lengths", "gold", "plug_in", "averaged")


def fold_folders(job: StudyJob, run: Path) -> list[Path]:
    """Return the folder of each fold of a job's seen cells."""
    from crossfill.tagger.crossfit import folds

    n_folds = len(folds([Cell.parse(cell) for cell in job.seen], job.folds, job.fold_seed)) if job.folds else 0
    return [held_out_folder(run, job.held_out) / f"fold-{number}" for number in range(n_folds)]


def is_predicted(fold: Path) -> bool:
    """Check whether the cells of a fold are predicted."""
    return (fold / _PREDICTIONS).exists()


def is_calibrated(job: StudyJob, run: Path) -> bool:
    """Check whether the calibration of each of a job's methods is fitted."""
    folder = held_out_folder(run, job.held_out)
    return all((folder / method / CALIBRATION).exists() for method in job.methods)


def predict_fold(job: StudyJob, run: Path, number: int, report: Report | None = None) -> None:
    """Train without a fold of the seen cells, and write what each of the job's methods predicts of these cells."""
    from crossfill.tagger.crossfit import folds, predict_held_out
    from crossfill.tagger.train import train_model

    folder = fold_folders(job, run)[number]
    with exclusive(folder):
        given = prepare_job(job, run)
        config = given.config.change({"training.seed": job.fold_seed})
        fold = folds(given.seen, job.folds, job.fold_seed)[number]
        trained = train_model(given.grid, given.seen - fold, config, folder / TRAINING, given.encoder, report, print)
        predicted = []
        for name, method in job.methods.items():
            method_model, changed = as_trained(trained.model, config, method)
            predicted += [(name, predict_held_out(method_model, given.grid, cell, changed)) for cell in sorted(fold)]
        _save(folder / _PREDICTIONS, predicted)
        shutil.rmtree(folder / TRAINING)


def calibrate_methods(job: StudyJob, run: Path) -> None:
    """Fit the calibration of each of a job's methods on the cells of all folds, whose files are then deleted."""
    from crossfill.evaluation.calibrate import calibrate_on
    from crossfill.prediction.calibration import save_calibration

    folders = fold_folders(job, run)
    predicted = [entry for folder in folders for entry in _load(folder / _PREDICTIONS)]
    for method in job.methods:
        target = held_out_folder(run, job.held_out) / method
        target.mkdir(parents=True, exist_ok=True)
        save_calibration(target, calibrate_on([cell for name, cell in predicted if name == method]))
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _save(path: Path, predicted: "Sequence[tuple[str, PredictedCell]]") -> None:
    """Write predicted cells, each with the method that predicted it."""
    about = [
        {"method": method, "cell": str(cell.cell), "labels": cell.task.labels, "unit": str(cell.task.unit)}
        for method, cell in predicted
    ]
    arrays = {f"{i}/{name}": getattr(cell, name) for i, (_, cell) in enumerate(predicted) for name in _ARRAYS}
    with replacing(path) as file:
        np.savez(file, about=np.array(json.dumps(about)), **arrays)


def _load(path: Path) -> "list[tuple[str, PredictedCell]]":
    from crossfill.evaluation.calibrate import PredictedCell

    with np.load(path) as file:
        about: list[dict[str, Any]] = json.loads(str(file["about"]))
        return [
            (
                values["method"],
                PredictedCell(
                    cell=Cell.parse(values["cell"]),
                    task=Task(Cell.parse(values["cell"]).task, tuple(values["labels"]), Unit(values["unit"])),
                    **{name: file[f"{i}/{name}"] for name in _ARRAYS},
                ),
            )
            for i, values in enumerate(about)
        ]
