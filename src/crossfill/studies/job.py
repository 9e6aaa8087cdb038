"""What the jobs of a study do: train and evaluate; predict seen cells that are held out in turn; calibrate on these.

Every fold of the seen cells is a job: a training without them, which then predicts them. When all folds are predicted,
one more job fits decisions and a calibration for each method, which the trainings of all seeds use.
"""

import json
import platform
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crossfill.checkpoint import CALIBRATION
from crossfill.executors.base import LOCK
from crossfill.files import locked, replacing
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.task import Task, Unit
from crossfill.progress import Report
from crossfill.studies.plan import StudyJob
from crossfill.studies.run_folder import FORMAT, LOG, TRAINING, TYPOLOGY, held_out_folder, job_folder
from crossfill.studies.study import StudyGrid, load_study_grid, typology_folder

if TYPE_CHECKING:
    from crossfill.config import Config, EncoderConfig
    from crossfill.encoders.base import Encoder
    from crossfill.evaluation.scoring import PredictedCell
    from crossfill.model import Model
    from crossfill.prediction.calibration import Calibration

DECIMALS = 6
_PREDICTIONS = "predictions.npz"
_ARRAYS = ("lengths", "gold", "plug_in", "averaged")


class JobSetting(NamedTuple):
    """What a job trains and is scored on."""

    scored: Grid
    """The study's grid, in the languages of the job."""
    grid: Grid
    """The same with the cells that serve only as sources, if the method uses them."""
    seen: frozenset[Cell]
    config: "Config"
    encoder: "Encoder | None"
    """The pretrained encoder; None if the model builds its own from the seed."""


def prepare_job(job: StudyJob, run: Path) -> JobSetting:
    """Read the grid of a job and build its encoder."""
    part = _study_grid(job.data).only(job.languages)  # pyright: ignore[reportArgumentType]  # settings are frozen
    grid = training_grid(part, job.config.method)
    return JobSetting(part.grid, grid, frozenset(map(Cell.parse, job.seen)), _settings(job, run), _encoder(job, grid))


def training_grid(part: StudyGrid, method: str) -> Grid:
    """Return the grid that a method may train on."""
    from crossfill.methods.registry import find_method

    return part.with_sources() if find_method(method).uses_outside_languages else part.grid


def train_job(job: StudyJob, run: Path, threads: int = 1, report: Report | None = None) -> dict[str, Any]:
    """Train and evaluate, resuming an attempt that was killed; returns the result as JSON values."""
    with _alone(job_folder(run, job.id), threads):
        return _train_job(job, run, threads, report)


def _train_job(job: StudyJob, run: Path, threads: int, report: Report | None) -> dict[str, Any]:
    from crossfill.evaluation.scoring import evaluate
    from crossfill.model import n_parameters
    from crossfill.studies.few_shot import few_shot_points
    from crossfill.tagger.card import write_card
    from crossfill.tagger.model_folder import save_results
    from crossfill.tagger.train import train_model

    folder, started = job_folder(run, job.id), time.monotonic()
    scored, grid, seen, config, encoder = prepare_job(job, run)
    trained = train_model(grid, seen, config, folder / TRAINING, encoder, report, print)
    fitted = time.monotonic()
    calibrations = load_calibrations(job, run)
    models = {name: as_trained(trained.model, config, method) for name, method in job.methods.items()}
    results = {
        name: evaluate(model, scored, changed, calibrations.get(name)) for name, (model, changed) in models.items()
    }
    unseen = [Cell.parse(cell) for cell in job.unseen]
    few_shot = {
        name: few_shot_points(model, changed, scored, unseen, curves, calibrations.get(name))
        for name, (model, changed) in models.items()
        if (curves := job.few_shot) is not None
    }
    trained_names = [name for name, method in job.methods.items() if method == config.method]
    if job.keep_model and trained_names:
        save_results(folder / TRAINING, results[trained_names[0]])
        write_card(folder / TRAINING)
    finished = time.monotonic()
    trains = [trained.plan.grid.training(cell) for cell in trained.plan.cells]
    return rounded(
        {
            "format": FORMAT,
            "job": job.id,
            "seed": job.config.training.seed,
            "config": job.config.model_dump(mode="json"),
            "seen": list(job.seen),
            "unseen": list(job.unseen),
            "methods": {m: {"cells": [result.as_dict() for result in cells]} for m, cells in results.items()},
            **({"few_shot": few_shot} if few_shot else {}),
            "history": trained.progression.history,
            "rules": {method: _rules(calibration) for method, calibration in calibrations.items()},
            "posteriors": _posteriors(trained.model, config, job.posteriors),
            "words": {str(cell): grid.training(cell).n_words for cell in sorted(seen)},
            "left_out": {str(cell): n for cell in grid.cells if (n := sum(splits.left_out for splits in grid[cell]))},
            "sizes": {
                "training_sentences": sum(map(len, trains)),
                "training_words": sum(corpus.n_words for corpus in trains),
                "parameters": n_parameters(trained.model),
                "steps": trained.progression.step,
            },
            "measured": {
                "train_seconds": fitted - started,
                "evaluate_seconds": finished - fitted,
                "threads": threads,
                "machine": platform.machine(),
                "versions": _versions(),
            },
        }
    )


def rounded(value: Any) -> Any:
    """Round all floats but those of the config to six significant digits, to keep result files small."""
    if isinstance(value, float):
        return float(f"{value:.{DECIMALS}g}")
    if isinstance(value, dict):
        return {key: value if key == "config" else rounded(value) for key, value in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value


def as_trained(model: "Model", config: "Config", method: str) -> "tuple[Model, Config]":
    """Return a method over the heads of a trained model, and its config: the same for the method that was trained."""
    from crossfill.methods.registry import as_method

    return (model, config) if method == config.method else as_method(model, config, method)


def load_calibrations(job: StudyJob, run: Path) -> "dict[str, Calibration]":
    """Load what was fitted on held-out cells for each of a job's methods; nothing for a study without folds."""
    from crossfill.prediction.calibration import load_calibration

    folder = held_out_folder(run, job.held_out)
    loaded = {method: load_calibration(folder / method) for method in job.methods} if job.folds else {}
    return {method: calibration for method, calibration in loaded.items() if calibration is not None}


def _rules(calibration: "Calibration") -> dict[str, Any]:
    """Return what was fitted on held-out cells for each task: temperature, offset of decisions, number of cells."""
    return {
        kind: {
            task: {"temperature": fitted.temperature, "offsets": dict(fitted.offsets), "n_cells": fitted.n_cells}
            for task, fitted in tasks.items()
        }
        for kind, tasks in (("plug_in", calibration.plug_in), ("averaged", calibration.averaged))
    }


def _settings(job: StudyJob, run: Path) -> "Config":
    """Return the config of a job with the path of typological vectors, on which results do not depend."""
    vectors = str(run / TYPOLOGY) if job.data.synthetic is not None else typology_folder(job.data)
    if vectors is None or job.config.sources.vectors is not None:
        return job.config
    return job.config.change({"sources.vectors": vectors})


_study_grid = lru_cache(maxsize=1)(load_study_grid)  # kept by a worker from job to job


def _encoder(job: StudyJob, grid: Grid) -> "Encoder | None":
    """Return the pretrained encoder; None if the model builds its own from the seed."""
    encoder = job.config.encoder
    if encoder.name == "compact":
        return None
    trains = encoder.pretrained.layer == "mix" or encoder.sentences == "attention"
    if encoder.pretrained.mode == "frozen" and not trains:
        languages = grid.inventory.languages
        return _frozen_encoder(encoder, languages, job.data.cache)  # pyright: ignore[reportArgumentType]  # settings are frozen
    from crossfill.encoders.base import build_encoder

    return build_encoder(job.config, grid.inventory.languages, Path(job.data.cache) if job.data.cache else True)


@lru_cache(maxsize=4)
def _frozen_encoder(settings: "EncoderConfig", languages: tuple[str, ...], cache: str | None) -> "Encoder":
    """Return a frozen encoder, cached by a worker with its open feature files, as training never changes it."""
    from crossfill.encoders.frozen import FrozenEncoder

    encoder = FrozenEncoder(settings, languages, Path(cache) if cache else True)
    encoder.stored.keep_open = True
    return encoder.with_pooling(settings.sentences)


def _posteriors(model: "Model", config: "Config", languages: Collection[str]) -> dict[str, Any] | None:
    """Return posterior means of all languages; mean, variance and factor (columns of B) of the chosen ones."""
    from crossfill.methods.registry import find_method

    read = find_method(config.method).language_vectors
    if read is None:
        return None
    vectors = read(model)
    chosen = {}
    for language in languages:
        row = model.inventory.language_index(language)
        chosen[language] = {name: values[row].tolist() for name, values in vectors._asdict().items()}
    return {"means": dict(zip(model.inventory.languages, vectors.mean.tolist(), strict=True)), "chosen": chosen}


@contextmanager
def _alone(folder: Path, threads: int) -> Iterator[None]:
    """Work alone in a job's folder on so many cores, and write what is printed to its log.

    A worker of a killed run may live a moment longer: it must not write into the same checkpoint.
    """
    import torch

    torch.set_num_threads(threads)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        locked(folder / LOCK, wait=True),
        (folder / LOG).open("a", encoding="utf-8", buffering=1) as file,
        redirect_stdout(file),
        redirect_stderr(file),
    ):
        yield


def _versions() -> dict[str, str]:
    packages = ("crossfill", "torch", "numpy", "transformers", "tokenizers")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


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


def predict_fold(
    job: StudyJob, run: Path, number: int, threads: int = 1, report: Report | None = None
) -> dict[str, Any]:
    """Train without a fold of the seen cells, and write what each of the job's methods predicts of these cells."""
    from crossfill.tagger.crossfit import folds, predict_held_out
    from crossfill.tagger.train import train_model

    folder = fold_folders(job, run)[number]
    with _alone(folder, threads):
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
    return {}


def calibrate_methods(job: StudyJob, run: Path, threads: int = 1, _report: Report | None = None) -> dict[str, Any]:
    """Fit the calibration of each of a job's methods on the cells of all folds, whose files are then deleted."""
    import torch

    from crossfill.evaluation.scoring import calibrate_on
    from crossfill.prediction.calibration import save_calibration

    torch.set_num_threads(threads)
    folders = fold_folders(job, run)
    predicted = [entry for folder in folders for entry in _load(folder / _PREDICTIONS)]
    for method in job.methods:
        target = held_out_folder(run, job.held_out) / method
        target.mkdir(parents=True, exist_ok=True)
        save_calibration(target, calibrate_on([cell for name, cell in predicted if name == method]))
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return {}


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
    from crossfill.evaluation.scoring import PredictedCell

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
