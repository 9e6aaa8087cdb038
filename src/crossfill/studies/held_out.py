"""Decisions and calibration of a job, fitted on seen cells that were held out in turn."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfill.files import locked
from crossfill.grid.cells import Cell, Grid
from crossfill.studies.plan import Job
from crossfill.studies.run_folder import HELD_OUT

if TYPE_CHECKING:
    from crossfill.config import Config
    from crossfill.encoders.base import Encoder
    from crossfill.prediction.calibration import Calibration


def calibrate_held_out(
    job: Job, run: Path, grid: Grid, seen: Collection[Cell], config: "Config", encoder: "Encoder | None"
) -> "dict[str, Calibration]":
    """The calibration of each of the job's methods on seen cells that were held out in turn.

    It is made with the study's first seed and serves its other seeds, too: the first job that needs it leaves it in the
    run folder.
    """
    if not job.folds:
        return {}
    from crossfill.prediction.calibration import load_calibration, save_calibration

    folder = run / HELD_OUT / job.held_out
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", wait=True):
        found = {method: load_calibration(folder / method) for method in job.methods}
        if None in found.values():
            made = _calibrations(job, grid, seen, config.change({"training.seed": job.fold_seed}), encoder)
            for method, calibration in made.items():
                (folder / method).mkdir(exist_ok=True)
                save_calibration(folder / method, calibration)
            found = {method: load_calibration(folder / method) for method in job.methods}
    return {method: calibration for method, calibration in found.items() if calibration is not None}


def _calibrations(
    job: Job, grid: Grid, seen: Collection[Cell], config: "Config", encoder: "Encoder | None"
) -> "dict[str, Calibration]":
    from crossfill.encoders.build import build_encoder
    from crossfill.evaluation.calibrate import calibrate_on
    from crossfill.methods.registry import as_method
    from crossfill.tagger.crossfit import hold_out, predict_held_out

    def build() -> "Encoder":
        return encoder or build_encoder(config, grid.inventory.languages)

    found: dict[str, list[Any]] = {method: [] for method in job.methods}
    for model, cell in hold_out(grid, seen, config, build, job.folds):
        for method, cells in found.items():
            own, changed = (model, config) if method == config.method else as_method(model, config, method)
            cells.append(predict_held_out(own, grid, cell, changed))
    return {method: calibrate_on(cells) for method, cells in found.items()}


def rules_of(calibration: "Calibration") -> dict[str, Any]:
    """What was fitted on held-out cells for each task: temperature, offset of decisions, number of cells."""
    return {
        kind: {
            task: {"temperature": own.temperature, "offsets": dict(own.offsets), "n_cells": own.n_cells}
            for task, own in tasks.items()
        }
        for kind, tasks in (("plug_in", calibration.plug_in), ("averaged", calibration.averaged))
    }
