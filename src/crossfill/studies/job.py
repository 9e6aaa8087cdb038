"""One job of a study: train, evaluate every method that shares the training, collect the results."""

import platform
import time
from collections.abc import Collection
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crossfill.executors.jobs import LOCK
from crossfill.files import locked
from crossfill.grid.cells import Cell, Grid
from crossfill.progress import Report
from crossfill.studies.grids import StudyGrid, load_study_grid, typology_folder
from crossfill.studies.plan import StudyJob
from crossfill.studies.run_folder import FORMAT, LOG, TRAINING, TYPOLOGY, held_out_folder, job_folder
from crossfill.studies.study import DataSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crossfill.config import Config
    from crossfill.encoders.base import Encoder
    from crossfill.model import Model
    from crossfill.prediction.calibration import Calibration

DECIMALS = 6


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
    part = _study_grid(job.data.model_dump_json()).only(job.languages)
    grid = training_grid(part, job.config.method)
    return JobSetting(part.grid, grid, frozenset(map(Cell.parse, job.seen)), _settings(job, run), _encoder(job, grid))


def training_grid(part: StudyGrid, method: str) -> Grid:
    """Return the grid that a method may train on."""
    from crossfill.methods.registry import find_method

    return part.with_sources() if find_method(method).uses_outside_languages else part.grid


def train_job(job: StudyJob, run: Path, threads: int = 1, report: Report | None = None) -> dict[str, Any]:
    """Train and evaluate, resuming an attempt that was killed; returns the result as JSON values."""
    with exclusive(job_folder(run, job.id)):
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
    few_shot = {}
    if job.few_shot is not None:
        for name, (model, changed) in models.items():
            unseen = map(Cell.parse, job.unseen)
            few_shot[name] = few_shot_points(model, changed, scored, unseen, job.few_shot, calibrations.get(name))
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


@lru_cache(maxsize=1)
def _study_grid(data: str) -> StudyGrid:
    """Return the grid, cached by a worker from job to job."""
    return load_study_grid(DataSettings.model_validate_json(data))


def _encoder(job: StudyJob, grid: Grid) -> "Encoder | None":
    """Return the pretrained encoder; None if the model builds its own from the seed."""
    encoder = job.config.encoder
    if encoder.name == "compact":
        return None
    trains = encoder.pretrained.layer == "mix" or encoder.sentences == "attention"
    if encoder.pretrained.mode == "frozen" and not trains:
        return _frozen_encoder(encoder.model_dump_json(), grid.inventory.languages, job.data.cache)
    from crossfill.encoders.build import build_encoder

    return build_encoder(job.config, grid.inventory.languages, Path(job.data.cache) if job.data.cache else True)


@lru_cache(maxsize=4)
def _frozen_encoder(config: str, languages: tuple[str, ...], cache: str | None) -> "Encoder":
    """Return a frozen encoder, cached by a worker with its open feature files, as training never changes it."""
    from crossfill.config import EncoderConfig
    from crossfill.encoders.build import with_pooling
    from crossfill.encoders.frozen import FrozenEncoder

    settings = EncoderConfig.model_validate_json(config)
    encoder = FrozenEncoder(settings, languages, Path(cache) if cache else True)
    encoder.keep_open = True
    return with_pooling(encoder, settings.sentences)


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
def exclusive(folder: Path) -> "Iterator[None]":
    """Work alone in a job's folder, and write what is printed to its log.

    A worker of a killed run may live a moment longer: it must not write into the same checkpoint.
    """
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
