"""One job of a study: train, evaluate every method that shares the training, collect the results."""

import platform
import time
from collections.abc import Collection, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfill.executors.base import Report
from crossfill.files import locked
from crossfill.grid.cells import Cell, Grid
from crossfill.studies.grids import StudyGrid, load_study_grid, typology_folder
from crossfill.studies.held_out import calibrate_held_out, rules_of
from crossfill.studies.plan import Job
from crossfill.studies.run_folder import FORMAT, LOG, TRAINING, TYPOLOGY, job_folder
from crossfill.studies.study import DataSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crossfill.config import Config
    from crossfill.encoders.base import Encoder
    from crossfill.evaluation.results import CellResult
    from crossfill.model import Model
    from crossfill.prediction.calibration import Calibration
    from crossfill.tagger.train import Trained

DECIMALS = 6


def do_job(given: Mapping[str, Any], threads: int, report: Report | None = None) -> dict[str, Any]:
    """Run a job of a run folder, both given by an executor; `report` is told of every training step."""
    return run_job(Job.from_dict(given["job"]), Path(given["run"]), threads, report)


def run_job(job: Job, run: Path, threads: int = 1, report: Report | None = None) -> dict[str, Any]:
    """Train and evaluate, resuming an attempt that was killed; returns the result as JSON values."""
    import torch

    torch.set_num_threads(threads)
    folder = job_folder(run, job.id)
    folder.mkdir(parents=True, exist_ok=True)
    # a worker of a killed run may live a moment longer: it must not write into this job's checkpoint
    with locked(folder / ".lock", wait=True), _logged(folder / LOG):
        return _run(job, run, threads, report)


def _run(job: Job, run: Path, threads: int, report: Report | None) -> dict[str, Any]:
    from crossfill.methods.registry import find_method
    from crossfill.model import n_parameters
    from crossfill.tagger.card import write_card
    from crossfill.tagger.folder import save_results
    from crossfill.tagger.train import train_model

    folder, started = job_folder(run, job.id), time.monotonic()
    part = _study_grid(job.data.model_dump_json()).only(job.languages)
    seen = frozenset(map(Cell.parse, job.seen))
    grid = part.with_sources() if find_method(job.config.method).uses_outside_languages else part.grid
    config = _settings(job, run)
    encoder = _encoder(job, grid)
    trained = train_model(grid, seen, config, folder / TRAINING, encoder, report or (lambda _step, _note: None), print)
    history = trained.progression.history
    fitted = time.monotonic()
    held_out = calibrate_held_out(job, run, grid, seen, config, encoder)
    results = {m: _evaluate(trained, part.grid, config, m, held_out.get(m)) for m in job.methods}
    few_shot = {
        method: _few_shot(job, trained, part.grid, config, method, held_out.get(method))
        for method in job.methods
        if job.few_shot
    }
    if job.keep_model and config.method in results:
        save_results(folder / TRAINING, results[config.method])
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
            "methods": {m: {"cells": [result.as_dict() for result in found]} for m, found in results.items()},
            **({"few_shot": few_shot} if few_shot else {}),
            "history": history,
            "rules": {method: rules_of(calibration) for method, calibration in held_out.items()},
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


def _evaluate(
    trained: "Trained", scored: Grid, config: "Config", method: str, held_out: "Calibration | None"
) -> "list[CellResult]":
    """Results of a method on every cell of the study's grid, calibrated on held-out cells where there are any."""
    from crossfill.evaluation.scoring import evaluate
    from crossfill.methods.registry import as_method

    if method == config.method:
        return evaluate(trained.model, scored, config, held_out)
    model, changed = as_method(trained.model, config, method)
    return evaluate(model, scored, changed, held_out)


def _few_shot(
    job: Job, trained: "Trained", scored: Grid, config: "Config", method: str, held_out: "Calibration | None"
) -> list[dict[str, Any]]:
    """Learning curves of a method in the job's unseen cells."""
    from crossfill.methods.registry import as_method
    from crossfill.studies.few_shot import few_shot_points

    own, changed = (trained.model, config) if method == config.method else as_method(trained.model, config, method)
    unseen = map(Cell.parse, job.unseen)
    return few_shot_points(own, changed, scored, unseen, job.few_shot, held_out) if job.few_shot else []


def _settings(job: Job, run: Path) -> "Config":
    """The job's config with the path of typological vectors; jobs leave it out, as results do not depend on it."""
    vectors = str(run / TYPOLOGY) if job.data.synthetic is not None else typology_folder(job.data)
    if vectors is None or job.config.sources.vectors is not None:
        return job.config
    return job.config.change({"sources.vectors": vectors})


@lru_cache(maxsize=1)
def _study_grid(data: str) -> StudyGrid:
    """The grid, cached by a worker from job to job."""
    return load_study_grid(DataSettings.model_validate_json(data))


def _encoder(job: Job, grid: Grid) -> "Encoder | None":
    """The pretrained encoder; None if the model builds its own from the seed."""
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
    """A frozen encoder, cached by a worker with its open feature files, as training never changes it."""
    from crossfill.config import EncoderConfig
    from crossfill.encoders.build import with_pooling
    from crossfill.encoders.frozen import FrozenEncoder

    settings = EncoderConfig.model_validate_json(config)
    encoder = FrozenEncoder(settings, languages, Path(cache) if cache else True)
    encoder.keep_open = True
    return with_pooling(encoder, settings.sentences)


def _posteriors(model: "Model", config: "Config", languages: Collection[str]) -> dict[str, Any] | None:
    """Posterior means of all languages; mean, variance and factor (columns of B) of the chosen ones."""
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
def _logged(path: Path) -> "Iterator[None]":
    """Redirect printed output to the job's log."""
    with path.open("a", encoding="utf-8", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
        yield


def _versions() -> dict[str, str]:
    packages = ("crossfill", "torch", "numpy", "transformers", "tokenizers")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
