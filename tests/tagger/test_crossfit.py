"""Cells held out in turn: each is predicted once, by a model without it; methods are chosen and scores expected."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crossfill
from crossfill import checkpoint
from crossfill.encoders.base import build_encoder
from crossfill.grid.cells import Cell, Grid
from crossfill.tagger import crossfit
from crossfill.tagger.crossfit import compare_held_out, folds
from crossfill.tagger.train import train_model
from crossfill.training.loop import InterruptedTraining
from tests.scenarios import SMALL, small_grid
from tests.tagger.test_run_lock import stop_at

MADE, PARTITION = small_grid()
GRID = MADE.grid
FEW = SMALL.change({"training.steps": 4, "training.validate_every": 2, "prediction.samples": 3})
UNSEEN = Cell("ner", GRID.languages[0])


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
    found = compare_held_out(
        GRID,
        PARTITION.seen,
        [config],
        lambda: build_encoder(config, GRID.inventory.languages),
        lambda done, _: told.append(done),
    ).cells
    assert sorted(held.cell for held in found) == sorted(PARTITION.seen)
    assert told == list(range(1, 13))
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
            assert replace(held, plug_in=np.eye(len(held.task.labels))[held.gold]).score() == pytest.approx(1)


def test_the_best_method_on_held_out_cells_is_kept(monkeypatch: pytest.MonkeyPatch):
    scores = {("jm", "pos"): 0.5, ("pf-lr", "pos"): 0.6}  # jm is better at the three other tasks
    monkeypatch.setattr(
        crossfit,
        "_score",
        lambda found, _calibration, config: scores.get((config.method, found.cell.task), 0.2 + (config.method == "jm")),
    )
    configs = [FEW.change({"method": name}) for name in ("pf-lr", "jm")]
    comparison = compare_held_out(
        GRID, PARTITION.seen, configs, lambda: build_encoder(FEW, GRID.inventory.languages), lambda *_: None
    )
    assert comparison.config.method == "jm"
    assert comparison.summary().endswith("pos: pf-lr 60.0, jm 50.0; chosen: jm")
    assert sorted(found.cell for found in comparison.cells) == sorted(PARTITION.seen)


def test_filled_cells_have_an_expected_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    empty = GRID.where(lambda cell: cell != UNSEEN)  # nobody has labels, and its text is that of other tasks
    more = Grid({c: empty[c] for c in empty.cells})
    tagger = crossfill.train(more, config=FEW, out=tmp_path, expect=True, quiet=False)
    told = capsys.readouterr().err
    assert "seen cells held out in turn" in told
    assert tagger.expectations is not None
    assert len(tagger.expectations.held_out) == 15
    assert tagger.expectations.of(UNSEEN) is None  # three cells of ner are left
    assert crossfill.load(tmp_path).expectations == tagger.expectations
    assert tagger.calibration is not None
    assert not (tmp_path / checkpoint.HELD_OUT).exists()
    wide = crossfill.train(GRID, config=FEW, hold_out=[Cell("pos", GRID.languages[0])], expect=False, quiet=False)
    assert wide.expectations is None
    assert "--expect (expect=True) says what filled cells will score" in capsys.readouterr().err


@pytest.mark.slow
def test_expected_scores_reach_the_card_and_an_interrupted_run_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("crossfill.evaluation.expected.FEWEST_CELLS", 3)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    empty = GRID.where(lambda cell: cell != UNSEEN)
    found = crossfill.train(empty, config=FEW, out=whole, expect=True).expectations
    assert found is not None
    one = found.of(UNSEEN)
    assert one is not None
    assert 0 <= one.low <= one.score <= one.high <= 1
    assert f"| `{UNSEEN}` | {100 * one.score:.1f} |" in (whole / checkpoint.CARD).read_text()
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(InterruptedTraining):
            crossfill.train(empty, config=FEW, out=broken, expect=True)
    assert (broken / checkpoint.HELD_OUT / "pf-lr-0" / checkpoint.STATE).exists()
    assert crossfill.train(empty, config=FEW, out=broken, expect=True, resume=True).expectations == found
    assert (broken / checkpoint.WEIGHTS).read_bytes() == (whole / checkpoint.WEIGHTS).read_bytes()
