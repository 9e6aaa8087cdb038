"""Seen cells held out in turn: how models that were trained without a cell do there.

What is chosen for unseen cells (a method, a decision rule, a temperature, label sets, expected scores) is chosen on
these predictions: a cell that trained the model would look too good, and an unseen one may not be looked at.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.grid.cells import Cell, Grid
from crossfill.measures.metrics import Labelling
from crossfill.model import Model
from crossfill.prediction.predict import encode, predict_features
from crossfill.tagger.train import train_model
from crossfill.training.labelled import Labelled, prepare

N_FOLDS = 3
MOST_SENTENCES = 100
"""Sentences of a held-out cell that are predicted: its dev data, then some of its training data."""


@dataclass(frozen=True)
class HeldOut:
    """What a model that was trained without a seen cell predicts there."""

    cell: Cell
    labels: tuple[str, ...]
    """The task's labels, which the columns of the probabilities are for."""
    lengths: Int[np.ndarray, "sentences"]
    gold: Int[np.ndarray, "words"]
    plug_in: Float[np.ndarray, "words labels"]
    averaged: Float[np.ndarray, "words labels"]
    """The same with Bayesian model averaging; the plug-in probabilities for methods without a posterior."""

    def score(self, predicted: Int[np.ndarray, "words"] | None = None) -> float:
        """The task's headline score of these labels, or of the most probable ones; from 0 to 1."""
        chosen = self.plug_in.argmax(-1) if predicted is None else predicted
        return Labelling(self.gold, chosen, self.labels, self.lengths).scores()["score"]


def cross_fit(
    grid: Grid,
    seen: Collection[Cell],
    config: Config,
    build: Callable[[], Encoder],
    n_folds: int = N_FOLDS,
    report: Callable[[int, str], None] | None = None,
) -> Iterator[HeldOut]:
    """Train without each fold of the seen cells in turn, and predict the cells of the fold.

    `build` returns the encoder of each training: one that stays frozen may be the same every time. `report` is called
    after every step with the number of steps done in all folds.
    """
    for number, fold in enumerate(folds(seen, n_folds, config.training.seed)):
        before = number * config.training.steps

        def tell(step: int, note: str, before: int = before) -> None:
            if report is not None:
                report(before + step, note)

        trained = train_model(grid, frozenset(seen) - fold, config, encoder=build(), report=tell)
        for cell in sorted(fold):
            yield _predict(trained.model, grid, cell, config)


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


def _predict(model: Model, grid: Grid, cell: Cell, config: Config) -> HeldOut:
    settings, chosen = config.prediction, []
    left = MOST_SENTENCES
    for corpus in (grid.development(cell), grid.training(cell)):
        if left and len(corpus):
            data = prepare(model.encoder, model.inventory, cell, corpus)
            chosen.append(_some(data, left, config.training.seed))
            left -= len(chosen[-1].inputs.lengths)
    features = torch.cat([encode(model, data.inputs) for data in chosen])
    plug_in = predict_features(model, features, cell, n_samples=0).probabilities
    sampled = settings.samples and model.heads.has_posterior
    averaged = predict_features(model, features, cell, settings.samples, settings.seed) if sampled else None
    return HeldOut(
        cell,
        model.inventory.labels[cell.task],
        torch.cat([data.inputs.lengths for data in chosen]).numpy(),
        torch.cat([data.labels for data in chosen]).numpy(),
        plug_in.cpu().numpy(),
        (plug_in if averaged is None else averaged.probabilities).cpu().numpy(),
    )


def _some(data: Labelled, most: int, seed: int) -> Labelled:
    """At most this many sentences, chosen at random; order is kept."""
    n = len(data.inputs.lengths)
    if n <= most:
        return data
    chosen = random.Random(seed).sample(range(n), most)  # noqa: S311 - a seeded experiment, not a secret
    return data.take(torch.tensor(sorted(chosen)))
