"""Seen cells held out in turn: how models that were trained without a cell do there.

What is chosen for unseen cells (a method, a decision rule, a temperature, label sets, expected scores) is chosen on
these predictions: a cell that trained the model would look too good, and an unseen one may not be looked at.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from crossfill.config import Config
from crossfill.encoders.base import Encoder, sentences_of
from crossfill.evaluation.expected import Expectations, HeldOutScore, expect_scores
from crossfill.evaluation.results import mean, mean_by
from crossfill.evaluation.scoring import PredictedCell, calibrate_on, predict_cell
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import EMPTY, Corpus
from crossfill.grid.task import Unit
from crossfill.model import Model
from crossfill.prediction.calibration import Calibration, rule_for
from crossfill.prediction.predict import predict
from crossfill.progress import Report
from crossfill.tagger.train import readable_text, train_model
from crossfill.training.labelled import Labelled, prepare

CANDIDATES = ("pf-lr", "jm")
"""Methods that `--method auto` tries."""
N_FOLDS = 3
MOST_SENTENCES = 100
"""Sentences of a held-out cell that are predicted: its dev data, then some of its training data."""


def predict_held_out(model: Model, grid: Grid, cell: Cell, config: Config) -> PredictedCell:
    """Predict labelled sentences of a cell that the model was trained without; none of them are test data."""
    labelled: list[Labelled] = []
    left = MOST_SENTENCES
    for corpus in (grid.development(cell), grid.training(cell)):
        if left and len(corpus):
            data = prepare(model.encoder, model.inventory, cell, corpus)
            if len(data) > left:
                data = data.take(_random_places(len(data), left, config.training.seed))
            labelled.append(data)
            left -= len(data)
    return predict_cell(model, cell, labelled, config)


def _random_places(n: int, most: int, seed: int) -> Int[Tensor, "chosen"]:
    """Choose so many of n places at random; order is kept."""
    chosen = random.Random(seed).sample(range(n), most)  # noqa: S311 - a seeded experiment, not a secret
    return torch.tensor(sorted(chosen))


def folds(seen: Collection[Cell], n_folds: int = N_FOLDS, seed: int = 0) -> list[frozenset[Cell]]:
    """Divide the seen cells into parts with equal shares of every task; cells of one language part where they can.

    The only cell of a task is in none, since nothing would be left to train the task on.
    """
    shuffled = sorted(seen)
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - a seeded experiment, not a secret
    of_task = Counter(cell.task for cell in shuffled)
    parts: list[set[Cell]] = [set() for _ in range(n_folds)]
    for cell in sorted(shuffled, key=lambda cell: cell.task):  # stable: shuffled within a task
        if of_task[cell.task] > 1:
            free = min(
                parts,
                key=lambda part: (
                    sum(other.task == cell.task for other in part),
                    sum(other.language == cell.language for other in part),
                    len(part),
                ),
            )
            free.add(cell)
    return [frozenset(part) for part in parts if part]


@dataclass(frozen=True)
class HeldOutComparison:
    """How the seen cells of a grid do when they are held out in turn, with the method that was chosen."""

    config: Config
    """The settings, with the method that was chosen."""
    cells: Sequence[PredictedCell]
    """What models that were trained without a cell predict there."""
    calibration: Calibration
    scores_by_method: Mapping[str, Mapping[str, float]]
    """Mean score of held-out cells by method and task; empty if there was one method."""

    def summary(self) -> str:
        """Name the methods that were compared, with their scores, and the one chosen."""
        tasks = sorted({task for scores in self.scores_by_method.values() for task in scores})
        compared = "; ".join(
            f"{task}: "
            + ", ".join(f"{name} {100 * scores[task]:.1f}" for name, scores in self.scores_by_method.items())
            for task in tasks
        )
        return f"held-out seen cells, {compared}; chosen: {self.config.method}"


def compare_held_out(
    grid: Grid,
    seen: Collection[Cell],
    configs: Sequence[Config],
    build: Callable[[], Encoder],
    report: Report = lambda _step, _note: None,
    folder: Path | None = None,
) -> HeldOutComparison:
    """Train each method without each fold of the seen cells in turn; the best has the largest mean of tasks' scores.

    `build` returns the encoder of each training: one that stays frozen may be the same every time. `report` is called
    after every step with the number of steps of all trainings. Trainings that were interrupted in `folder` are resumed.
    """
    comparisons: list[HeldOutComparison] = []
    scores: dict[str, dict[str, float]] = {}
    before = 0
    for config in configs:
        cells: list[PredictedCell] = []
        for number, fold in enumerate(folds(seen, N_FOLDS, config.training.seed)):

            def after_step(step: int, note: str, before: int = before, name: str = config.method) -> None:
                report(before + step, f"{name} {note}")

            out = None if folder is None else folder / f"{config.method}-{number}"
            model = train_model(grid, frozenset(seen) - fold, config, out, build(), after_step).model
            cells += [predict_held_out(model, grid, cell, config) for cell in sorted(fold)]
            before += config.training.steps
        calibration = calibrate_on(cells)
        comparisons.append(HeldOutComparison(config, cells, calibration, scores if len(configs) > 1 else {}))
        scored = ((one.cell.task, _score(one, calibration, config)) for one in cells)
        scores[config.method] = mean_by(scored, lambda one: one[0], lambda one: one[1])
    return max(comparisons, key=lambda one: mean(scores[one.config.method].values()))


def _score(predicted: PredictedCell, calibration: Calibration, config: Config) -> float:
    return predicted.score(rule_for(calibration.of(predicted.cell.task, 0), config.prediction.decision))


def expect_unseen(model: Model, grid: Grid, unseen: Collection[Cell], comparison: HeldOutComparison) -> Expectations:
    """Expect scores of unseen cells, by the model's doubt of their text."""
    doubts = {}
    for cell in unseen:
        if len(text := _unlabelled_text(grid, cell)):
            inputs, unit = model.encoder.prepare(text, cell.language), model.inventory.task(cell.task).unit
            n = len(inputs.lengths) // unit.n_sentences
            if n > MOST_SENTENCES:
                places = _random_places(n, MOST_SENTENCES, comparison.config.training.seed)
                inputs = inputs.take(sentences_of(places, unit))
            doubts[cell] = _doubt(predict(model, inputs, cell, n_samples=0).probabilities.cpu().numpy())
    held_out = [
        HeldOutScore(one.cell, _score(one, comparison.calibration, comparison.config), _doubt(one.plug_in))
        for one in comparison.cells
    ]
    tried = comparison.scores_by_method or None
    return Expectations(tuple(held_out), tuple(expect_scores(held_out, doubts)), tried=tried)


def _doubt(probabilities: np.ndarray) -> float:
    """Compute doubt by plug-in prediction: averages also doubt a language without seen cells, as many held out have."""
    return float(1 - probabilities.max(-1).mean())


def _unlabelled_text(grid: Grid, cell: Cell) -> Corpus:
    """Find text of an unseen cell, without labels: its own training text, else that of the language's other tasks."""
    others = sorted(other for other in grid.cells if other.language == cell.language and other != cell)
    if grid.inventory.task(cell.task).unit is Unit.PAIR:  # sentences of other tasks make no pairs
        others = [other for other in others if other.task == cell.task]
    texts = (readable_text(grid, one, seen=False) for one in (cell, *others) if one in grid.corpora)
    return next((text.text() for text in texts if len(text)), EMPTY)
