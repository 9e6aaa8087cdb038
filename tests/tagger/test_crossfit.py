"""Cells held out in turn: every cell is predicted once, by a model that has not seen it."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from crossfill.encoders.build import build_encoder
from crossfill.grid.cells import Cell
from crossfill.tagger import crossfit
from crossfill.tagger.crossfit import cross_fit, folds
from crossfill.tagger.train import train_model
from tests.scenarios import SMALL, small_grid

MADE, PARTITION = small_grid()
GRID = MADE.grid
FEW = SMALL.change({"training.steps": 4, "training.validate_every": 2, "prediction.samples": 3})


@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_folds_part_the_cells_evenly_and_languages_where_they_can(n_folds: int):
    cells = [Cell(task, f"l{i}") for task in ("pos", "ner") for i in range(7)]
    parts = folds(cells, n_folds, seed=1)
    assert sorted(cell for part in parts for cell in part) == sorted(cells)
    for task in ("pos", "ner"):
        sizes = [sum(cell.task == task for cell in part) for part in parts]
        assert max(sizes) - min(sizes) <= 1
    if n_folds == 3:
        assert max(max(Counter(cell.language for cell in part).values()) for part in parts) == 1
    assert parts == folds(cells[::-1], n_folds, seed=1)
    assert parts != folds(cells, n_folds, seed=2)


def test_a_task_keeps_a_cell_to_train_on():
    cells = [Cell("pos", "a"), Cell("ner", "a"), Cell("ner", "b")]
    parts = folds(cells, 3)
    assert sorted(cell for part in parts for cell in part) == cells[1:]
    assert all(len(part) == 1 for part in parts)


@pytest.mark.parametrize("method", ["pf-lr", "jm"])
def test_each_cell_is_predicted_by_a_model_that_was_trained_without_it(method: str, monkeypatch: pytest.MonkeyPatch):
    trainings = []

    def noted(grid, seen, *given, **named):
        trainings.append(train_model(grid, seen, *given, **named))
        return trainings[-1]

    monkeypatch.setattr(crossfit, "train_model", noted)
    config, told = FEW.change({"method": method}), []
    found = list(
        cross_fit(
            GRID,
            PARTITION.seen,
            config,
            lambda: build_encoder(config, GRID.inventory.languages),
            2,
            lambda done, _: told.append(done),
        )
    )
    assert sorted(held.cell for held in found) == sorted(PARTITION.seen)
    assert told == [1, 2, 3, 4, 5, 6, 7, 8]
    left = iter(found)
    for trained in trainings:
        for _ in range(len(PARTITION.seen) - len(trained.model.seen)):
            held = next(left)
            assert held.cell not in trained.model.seen
            assert len(held.gold) == len(held.plug_in) == held.lengths.sum()
            assert len(held.lengths) <= crossfit.MOST_SENTENCES
            np.testing.assert_allclose(held.averaged.sum(-1), 1, rtol=1e-5)
            assert (held.averaged is held.plug_in or np.array_equal(held.averaged, held.plug_in)) == (method == "jm")
            assert 0 <= held.score() <= 1
            assert replace(held, plug_in=np.eye(len(held.labels))[held.gold]).score() == pytest.approx(1)
