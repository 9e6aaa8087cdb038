"""Methods compared, decisions calibrated and scores expected, on seen cells held out in turn."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.encoders.pooling import sentences_of
from crossfill.evaluation.calibrate import PredictedCell, calibrate_on
from crossfill.evaluation.expected import Expectations, HeldOutScore, expect_scores
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus
from crossfill.grid.unit import Unit
from crossfill.model import Model
from crossfill.prediction.calibration import Calibration, rule_for
from crossfill.prediction.predict import predict
from crossfill.tagger.crossfit import MOST_SENTENCES, cross_fit

CANDIDATES = ("pf-lr", "jm", "jm-deep")
"""Methods that `--method auto` tries."""


@dataclass(frozen=True)
class Trial:
    """How the seen cells of a grid do when they are held out in turn, with the method that was chosen."""

    config: Config
    """The settings, with the method that was chosen."""
    cells: tuple[PredictedCell, ...]
    """What models that were trained without a cell predict there."""
    calibration: Calibration
    tried: Mapping[str, Mapping[str, float]]
    """Mean score of held-out cells by method and task."""

    def held_out(self) -> list[HeldOutScore]:
        """Score and doubt of every held-out cell, with the decisions that the calibration makes."""
        return [HeldOutScore(p.cell, _score(p, self.calibration, self.config), _doubt(p.plug_in)) for p in self.cells]

    def line(self) -> str:
        """The methods that were tried, and the one chosen."""
        tasks = sorted({task for scores in self.tried.values() for task in scores})
        told = "; ".join(
            f"{task}: " + ", ".join(f"{name} {100 * scores[task]:.1f}" for name, scores in self.tried.items())
            for task in tasks
        )
        return f"held-out seen cells, {told}; chosen: {self.config.method}"


def hold_out_in_turn(
    grid: Grid,
    seen: Collection[Cell],
    configs: Sequence[Config],
    build: Callable[[], Encoder],
    report: Callable[[int, str], None] = lambda _steps, _note: None,
    folder: Path | None = None,
) -> Trial:
    """Train each method without some of the seen cells in turn; the best has the largest mean of its tasks' scores."""
    found: dict[str, list[PredictedCell]] = {}
    done = 0
    for config in configs:
        before = done

        def tell(steps: int, note: str, before: int = before, name: str = config.method) -> None:
            nonlocal done
            done = before + steps
            report(done, f"{name} {note}")

        found[config.method] = list(cross_fit(grid, seen, config, build, report=tell, folder=folder))
    calibrations = {name: calibrate_on(cells) for name, cells in found.items()}
    settings = {config.method: config for config in configs}
    tried = {name: _means(cells, calibrations[name], settings[name]) for name, cells in found.items()}
    best = max(tried, key=lambda name: float(np.mean(list(tried[name].values()))))
    return Trial(settings[best], tuple(found[best]), calibrations[best], tried if len(tried) > 1 else {})


def expect_unseen(model: Model, grid: Grid, unseen: Collection[Cell], trial: Trial) -> Expectations:
    """Expected scores of unseen cells, by the model's doubt of their text."""
    doubts = {}
    for cell in unseen:
        text = _text(grid, cell)
        if len(text):
            doubts[cell] = _doubt_of_text(model, cell, text, trial.config.training.seed)
    held_out = trial.held_out()
    return Expectations(tuple(held_out), tuple(expect_scores(held_out, doubts)), tried=trial.tried or None)


def _means(cells: Sequence[PredictedCell], calibration: Calibration, config: Config) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for predicted in cells:
        found.setdefault(predicted.cell.task, []).append(_score(predicted, calibration, config))
    return {task: float(np.mean(scores)) for task, scores in found.items()}


def _score(predicted: PredictedCell, calibration: Calibration, config: Config) -> float:
    return predicted.score(rule_for(calibration.of(predicted.cell.task, 0), config.prediction.decision))


def _doubt(probabilities: np.ndarray) -> float:
    """Of plug-in prediction: averages also doubt a language that no cell was seen of, as are many held-out cells'."""
    return float(1 - probabilities.max(-1).mean())


def _text(grid: Grid, cell: Cell) -> Corpus:
    """Text of an unseen cell, without its labels: its own training text, else that of the language's other tasks."""
    same = [cell] if cell in grid.corpora else []
    others = sorted(other for other in grid.cells if other.language == cell.language and other != cell)
    if grid.inventory.unit(cell.task) is Unit.PAIR:  # sentences of other tasks make no pairs
        others = [other for other in others if other.task == cell.task]
    for other in (*same, *others):
        usable = [splits for splits in grid[other] if splits.has_training_data]
        if usable:
            return Corpus.joined(splits.training for splits in usable).text()
    return Corpus.from_sentences(())


def _doubt_of_text(model: Model, cell: Cell, text: Corpus, seed: int) -> float:
    inputs = model.encoder.prepare(text, cell.language)
    unit = model.inventory.unit(cell.task)
    n = len(inputs.lengths) // unit.n_sentences
    if n > MOST_SENTENCES:
        chosen = random.Random(seed).sample(range(n), MOST_SENTENCES)  # noqa: S311 - no secret
        inputs = inputs.take(sentences_of(torch.tensor(sorted(chosen)), unit))
    return _doubt(predict(model, inputs, cell, n_samples=0).probabilities.cpu().numpy())
