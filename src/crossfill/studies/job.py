"""What the jobs of a study do: train and evaluate; predict seen cells that are held out in turn; calibrate on these.

Every fold of the seen cells is a job: a training without them, which then predicts them. When all folds are predicted,
one more job fits decisions and a calibration for each method, which the trainings of all seeds use.
"""

import platform
import shutil
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crossfill.adaptation.curves import Curve, random_order
from crossfill.adaptation.examples import Examples
from crossfill.checkpoint import CALIBRATION
from crossfill.config import Config, EncoderConfig
from crossfill.encoders.base import Encoder, build_encoder
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.evaluation.scoring import PredictedCell, calibrate_on, evaluate
from crossfill.executors.worker_jobs import LOCK
from crossfill.files import locked, replacing
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus
from crossfill.grid.text_keys import sentence_hashes
from crossfill.methods.registry import as_method, find_method
from crossfill.model import Model, n_parameters
from crossfill.prediction.calibration import Calibration, load_calibration, rule_for, save_calibration
from crossfill.progress import Report
from crossfill.studies.plan import StudyJob
from crossfill.studies.run_folder import FORMAT, LOG, TRAINING, TYPOLOGY, held_out_folder, job_folder
from crossfill.studies.study import FewShotSettings, StudyGrid, load_study_grid, typology_folder
from crossfill.tagger import train
from crossfill.tagger.annotation import candidates, choose
from crossfill.tagger.card import write_card
from crossfill.tagger.crossfit import folds, predict_held_out
from crossfill.tagger.model_folder import save_results
from crossfill.tagger.tagger import Tagger

DECIMALS = 6
PREDICTIONS = "predictions.npz"
_ARRAYS = ("lengths", "gold", "plug_in", "averaged")
_study_grid = lru_cache(maxsize=1)(load_study_grid)  # kept by a worker from job to job


def prepare_job(job: StudyJob, run: Path) -> tuple[Grid, Grid, Config, Encoder | None]:
    """Read the grid of a job and build its encoder; the config gets the path of typological vectors.

    Returns the grid that is scored, without languages that chose the settings, the one that may be trained on, the
    config, and the pretrained encoder, which is None if the model builds its own from the seed.
    """
    data = job.study.data
    part = _study_grid(data).only(job.languages)  # pyright: ignore[reportArgumentType]  # settings are frozen
    grid, config = training_grid(part, job.config.method), job.config
    vectors = str(run / TYPOLOGY) if data.synthetic is not None else typology_folder(data)
    if vectors is not None and config.sources.vectors is None:
        config = config.change({"sources.vectors": vectors})
    scored = part.grid.where(lambda cell: cell.language not in job.study.chose)
    return scored, grid, config, _encoder(job, grid)


def training_grid(part: StudyGrid, method: str) -> Grid:
    """Return the grid that a method may train on."""
    return part.with_sources() if find_method(method).uses_outside_languages else part.grid


def train_job(job: StudyJob, run: Path, threads: int = 1, report: Report | None = None) -> dict[str, Any]:
    """Train and evaluate, resuming an attempt that was killed; returns the result as JSON values."""
    folder, started = job_folder(run, job.id), time.monotonic()
    with _alone(folder, threads):
        scored, grid, config, encoder = prepare_job(job, run)
        seen = frozenset(map(Cell.parse, job.seen))
        trained = train.train_model(grid, seen, config, folder / TRAINING, encoder, report, print)
        fitted = time.monotonic()
        of_folds = held_out_folder(run, job.held_out)
        loaded = {name: load_calibration(of_folds / name) for name in job.methods if job.study.folds}
        calibrations = {name: calibration for name, calibration in loaded.items() if calibration is not None}
        models = {name: as_method(trained.model, config, method) for name, method in job.methods.items()}
        results = {name: evaluate(model, scored, of, calibrations.get(name)) for name, (model, of) in models.items()}
        few_shot = {
            name: few_shot_points(Tagger(model, of), scored, job.unseen, job.few_shot, calibrations.get(name))
            for name, (model, of) in models.items()
            if job.few_shot is not None
        }
        trained_names = [name for name, method in job.methods.items() if method == config.method]
        if job.study.keep_models and trained_names:
            save_results(folder / TRAINING, results[trained_names[0]])
            write_card(folder / TRAINING)
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
                "left_out": {str(c): n for c in grid.cells if (n := sum(splits.left_out for splits in grid[c]))},
                "sizes": {
                    "training_sentences": sum(map(len, trains)),
                    "training_words": sum(corpus.n_words for corpus in trains),
                    "parameters": n_parameters(trained.model),
                    "steps": trained.progression.step,
                },
                "measured": {
                    "train_seconds": fitted - started,
                    "evaluate_seconds": time.monotonic() - fitted,
                    "threads": threads,
                    "machine": platform.machine(),
                    "versions": {"python": platform.python_version()}
                    | {name: version(name) for name in ("crossfill", "torch", "numpy", "transformers", "tokenizers")},
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


def _rules(calibration: Calibration) -> dict[str, Any]:
    """Return what was fitted on held-out cells for each task: temperature, offset of decisions, number of cells."""
    return {
        kind: {
            task: {"temperature": fitted.temperature, "offsets": dict(fitted.offsets), "n_cells": fitted.n_cells}
            for task, fitted in tasks.items()
        }
        for kind, tasks in (("plug_in", calibration.plug_in), ("averaged", calibration.averaged))
    }


def _encoder(job: StudyJob, grid: Grid) -> Encoder | None:
    encoder = job.config.encoder
    if encoder.name == "compact":
        return None
    languages, cache = grid.inventory.languages, Path(job.study.data.cache) if job.study.data.cache else True
    if encoder.pretrained.mode == "frozen" and encoder.sentences != "attention":
        return _frozen_encoder(encoder, languages, cache)  # pyright: ignore[reportArgumentType]  # settings are frozen
    return build_encoder(job.config, languages, cache)


@lru_cache(maxsize=4)
def _frozen_encoder(settings: EncoderConfig, languages: tuple[str, ...], cache: Path | bool) -> Encoder:
    """Return a frozen encoder, cached by a worker with its open feature files, as training never changes it."""
    encoder = FrozenEncoder(settings, languages, cache)
    encoder.stored.keep_open = True
    return encoder.with_pooling(settings.sentences)


def _posteriors(model: Model, config: Config, languages: Collection[str]) -> dict[str, Any] | None:
    """Return posterior means of all languages; mean, variance and factor (columns of B) of the chosen ones."""
    read = find_method(config.method).language_vectors
    if read is None:
        return None
    vectors, row = read(model), model.inventory.language_index
    chosen = {l: {name: values[row(l)].tolist() for name, values in vectors._asdict().items()} for l in languages}
    return {"means": dict(zip(model.inventory.languages, vectors.mean.tolist(), strict=True)), "chosen": chosen}


@contextmanager
def _alone(folder: Path, threads: int) -> Iterator[None]:
    """Work alone in a job's folder on so many cores, and write what is printed to its log.

    A worker of a killed run may live a moment longer: it must not write into the same checkpoint.
    """
    torch.set_num_threads(threads)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        locked(folder / LOCK, wait=True),
        (folder / LOG).open("a", encoding="utf-8", buffering=1) as file,
        redirect_stdout(file),
        redirect_stderr(file),
    ):
        yield


def fold_folders(job: StudyJob, run: Path) -> dict[Path, frozenset[Cell]]:
    """Return the folder of each fold of a job's seen cells, and these cells."""
    n_folds, seed = job.study.folds, job.study.seeds[0]
    parts = folds([Cell.parse(cell) for cell in job.seen], n_folds, seed) if n_folds else []
    return {held_out_folder(run, job.held_out) / f"fold-{number}": part for number, part in enumerate(parts)}


def is_calibrated(job: StudyJob, run: Path) -> bool:
    """Check whether the calibration of each of a job's methods is fitted."""
    folder = held_out_folder(run, job.held_out)
    return all((folder / method / CALIBRATION).exists() for method in job.methods)


def predict_fold(
    job: StudyJob, run: Path, number: int, threads: int = 1, report: Report | None = None
) -> dict[str, Any]:
    """Train without a fold of the seen cells, and write what each of the job's methods predicts of these cells."""
    folder, fold = list(fold_folders(job, run).items())[number]
    with _alone(folder, threads):
        _, grid, config, encoder = prepare_job(job, run)
        config = config.change({"training.seed": job.study.seeds[0]})
        seen = frozenset(map(Cell.parse, job.seen)) - fold
        model = train.train_model(grid, seen, config, folder / TRAINING, encoder, report, print).model
        arrays = {}
        for name, method in job.methods.items():
            method_model, changed = as_method(model, config, method)
            for cell in sorted(fold):
                predicted = predict_held_out(method_model, grid, cell, changed)
                arrays |= {f"{name}/{cell}/{array}": getattr(predicted, array) for array in _ARRAYS}
        with replacing(folder / PREDICTIONS) as file:
            np.savez(file, **arrays)
        shutil.rmtree(folder / TRAINING)
    return {}


def calibrate_methods(job: StudyJob, run: Path, threads: int = 1, _report: Report | None = None) -> dict[str, Any]:
    """Fit the calibration of each of a job's methods on the cells of all folds, whose files are then deleted."""
    torch.set_num_threads(threads)
    part = _study_grid(job.study.data).only(job.languages)  # pyright: ignore[reportArgumentType]  # settings are frozen
    inventory, folders = training_grid(part, job.config.method).inventory, fold_folders(job, run)
    predicted: dict[str, list[PredictedCell]] = {method: [] for method in job.methods}
    for folder, fold in folders.items():
        with np.load(folder / PREDICTIONS) as file:
            for method, cells in predicted.items():
                for cell in sorted(fold):
                    arrays = {name: file[f"{method}/{cell}/{name}"] for name in _ARRAYS}
                    cells.append(PredictedCell(cell, inventory.task(cell.task), **arrays))
    for method, cells in predicted.items():
        target = held_out_folder(run, job.held_out) / method
        target.mkdir(parents=True, exist_ok=True)
        save_calibration(target, calibrate_on(cells))
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return {}


def few_shot_points(
    tagger: Tagger, grid: Grid, unseen: Iterable[str], settings: FewShotSettings, rules: Calibration | None
) -> list[dict[str, Any]]:
    """Return the points of the learning curves of every unseen cell with training data of its own, as JSON values.

    Sentences come in random orders, and if asked for in the order of `crossfill annotate`, as far as they have no more
    words than those of the first random order. Scores are of all test data of the cell; `rules` are those of decisions.
    """
    if tagger.model.heads.vote is not None:
        return []
    rows: list[dict[str, Any]] = []
    for cell in sorted({*map(Cell.parse, unseen)} & {*grid.cells}):
        corpora = [splits for splits in grid[cell] if splits.has_training_data]
        training, test = (Corpus.joined(getattr(s, name) for s in corpora) for name in ("training", "test"))
        if not len(training) or not len(test):
            continue
        rule = rule_for(rules and rules.of(cell.task, 0), tagger.config.prediction.decision)
        labelled, scored = (Examples.of(tagger.model, cell, corpus) for corpus in (training, test))
        curve = Curve.of(tagger.model, cell, labelled, scored, rule)
        points = [
            ("random", point)
            for draw in range(settings.draws)
            for point in curve.points(
                random_order(len(curve.labelled), draw), draw, settings.sentences, not draw, not draw
            )
        ]
        rows += [{"cell": str(cell), "choice": choice} | asdict(point) for choice, point in points]
        if settings.annotate:
            order = _annotated(tagger, cell, training, curve)
            n_words = np.cumsum(curve.labelled.lengths.numpy()[order])
            for k, budget in {point.sentences: point.words for _, point in points if not point.draw}.items():
                within = max(1, int((n_words <= budget).sum()))
                for point in curve.points(order, 0, [within], False, False) if k else ():
                    rows.append({"cell": str(cell), "choice": "annotate"} | asdict(point) | {"sentences": k})
    return rows


def _annotated(tagger: Tagger, cell: Cell, training: Corpus, curve: Curve) -> list[int]:
    """Return the sentences that can be learnt from, in the order in which `crossfill annotate` proposes them."""
    place = {text: i for i, text in enumerate(curve.labelled.hashes)}
    texts = zip(training, sentence_hashes(training), strict=True)
    pool = candidates(tagger, [sentence for sentence, text in texts if text in place and len(sentence)], cell)
    chosen = [pool.sentences[i] for i in choose(pool, len(pool), cost="words")]
    return [place[text] for text in sentence_hashes(Corpus.from_text(chosen))]
