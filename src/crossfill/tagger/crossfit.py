"""Seen cells held out in turn: how models that were trained without a cell do there.

What is chosen for unseen cells (a method, a decision rule, a temperature, label sets, expected scores) is chosen on
these predictions: a cell that trained the model would look too good, and an unseen one may not be looked at.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import torch

from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.evaluation.calibrate import PredictedCell, predict_cell
from crossfill.grid.cells import Cell, Grid
from crossfill.model import Model
from crossfill.tagger.train import train_model
from crossfill.training.labelled import Labelled, prepare

Report = Callable[[int, str], None]
"""Told the number of steps done, with a note."""
N_FOLDS = 3
MOST_SENTENCES = 100
"""Sentences of a held-out cell that are predicted: its dev data, then some of its training data."""


def cross_fit(
    grid: Grid,
    seen: Collection[Cell],
    config: Config,
    build: Callable[[], Encoder],
    n_folds: int = N_FOLDS,
    report: Report | None = None,
    folder: Path | None = None,
) -> Iterator[PredictedCell]:
    """Predict every seen cell by a model that was trained without it: see `hold_out`."""
    for model, cell in hold_out(grid, seen, config, build, n_folds, report, folder):
        yield predict_held_out(model, grid, cell, config)


def predict_held_out(model: Model, grid: Grid, cell: Cell, config: Config) -> PredictedCell:
    """Predict labelled sentences of a cell that the model was trained without; none of them are test data."""
    return predict_cell(model, cell, _chosen(model, grid, cell, config.training.seed), config)


def hold_out(
    grid: Grid,
    seen: Collection[Cell],
    config: Config,
    build: Callable[[], Encoder],
    n_folds: int = N_FOLDS,
    report: Report | None = None,
    folder: Path | None = None,
) -> Iterator[tuple[Model, Cell]]:
    """Train without each fold of the seen cells in turn; every model comes with each cell of its fold.

    `build` returns the encoder of each training: one that stays frozen may be the same every time. `report` is called
    after every step with the number of steps done in all folds. With a `folder`, trainings that were interrupted there
    are taken up.
    """
    for number, fold in enumerate(folds(seen, n_folds, config.training.seed)):
        before = number * config.training.steps

        def tell(step: int, note: str, before: int = before) -> None:
            if report is not None:
                report(before + step, note)

        place = None if folder is None else folder / f"{config.method}-{number}"
        trained = train_model(
            grid, frozenset(seen) - fold, config, place, resume=place is not None, encoder=build(), report=tell
        )
        for cell in sorted(fold):
            yield trained.model, cell


def folds(seen: Collection[Cell], n_folds: int = N_FOLDS, seed: int = 0) -> list[frozenset[Cell]]:
    """Parts of the seen cells, each with its share of every task; cells of one language part where they can.

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


def _chosen(model: Model, grid: Grid, cell: Cell, seed: int) -> list[Labelled]:
    """Sentences of a held-out cell: its dev data, then some of its training data."""
    chosen: list[Labelled] = []
    left = MOST_SENTENCES
    for corpus in (grid.development(cell), grid.training(cell)):
        if left and len(corpus):
            chosen.append(_some(prepare(model.encoder, model.inventory, cell, corpus), left, seed))
            left -= len(chosen[-1])
    return chosen


def _some(data: Labelled, most: int, seed: int) -> Labelled:
    """At most this many sentences, chosen at random; order is kept."""
    if len(data) <= most:
        return data
    chosen = random.Random(seed).sample(range(len(data)), most)  # noqa: S311 - a seeded experiment, not a secret
    return data.take(torch.tensor(sorted(chosen)))
