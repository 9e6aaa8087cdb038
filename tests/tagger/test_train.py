"""The front door: what is not given changes nothing, and training returns what it found out."""

from pathlib import Path

import pytest

import crossfill
from crossfill.grid.cells import Cell, Grid
from crossfill.methods.registry import all_methods
from crossfill.tagger import train as train_module
from crossfill.tagger.train import train_model
from crossfill.training.labelled import prepare
from tests.scenarios import SMALL, small_grid

MADE, PARTITION = small_grid()
FEW = SMALL.change({"training.steps": 4, "training.validate_every": 2})
CODES = dict(zip(MADE.grid.languages, ("wol", "fin", "tha", "vie"), strict=True))
GRID = Grid({Cell(cell.task, CODES[cell.language]): corpora for cell, corpora in MADE.grid.corpora.items()})


def test_keywords_that_are_not_given_leave_the_config_as_it_is():
    config = FEW.change({"method": "jm", "encoder.hidden": 8})
    assert crossfill.train(GRID, config=config).config == config
    assert crossfill.train(GRID, config=config, method="pf-d").config == config.change({"method": "pf-d"})
    assert crossfill.train(GRID, encoder="compact", config=config).config == config


def test_public_names():
    tagger = crossfill.train(GRID, config=FEW)
    assert type(tagger) is crossfill.Tagger
    assert type(tagger.tag(["Dakar"], "ner/wol")) is crossfill.Tagging


def test_cells_are_held_out_by_any_code_of_their_language():
    for name in ("ner/wol", "ner/wo", Cell("ner", "wol")):
        tagger = crossfill.train(GRID, config=FEW, hold_out=[name])
        assert tagger.seen == frozenset(GRID.cells) - {Cell("ner", "wol")}
    with pytest.raises(crossfill.CrossfillError, match="unknown cell 'ner/xx'"):
        crossfill.train(GRID, config=FEW, hold_out=["ner/xx"])


def test_training_returns_its_plan_and_progression_and_plans_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    planned, told = [], []
    method = all_methods()["ls"]

    class Once:
        def __getattr__(self, name: str) -> object:
            return getattr(method, name)

        def plan(self, *given: object) -> object:
            planned.append(given)
            return method.plan(*given)

    monkeypatch.setattr(train_module, "find_method", lambda _: Once())
    config = FEW.change({"method": "ls"})
    trained = train_model(GRID, GRID.cells, config, tmp_path, tell=told.append)
    assert len(planned) == 1
    assert [f"ls: {note}" for note in trained.plan.notes] == told
    assert told[0].startswith("ls: chunk has no training data in 'eng'")
    assert trained.progression.step == 4
    assert [entry["step"] for entry in trained.progression.history] == [2, 4]
    assert trained.calibration is None


def test_evaluation_encodes_every_corpus_once(monkeypatch: pytest.MonkeyPatch):
    tagger = crossfill.train(GRID, config=FEW.change({"training.calibration_share": 0.5}))
    asked = []
    monkeypatch.setattr(
        "crossfill.evaluation.scoring.prepare", lambda *given: (asked.append(given[2:]), prepare(*given))[1]
    )
    results = tagger.evaluate(GRID)
    assert [cell for cell, _ in asked] == [result.cell for result in results] == list(GRID.cells)
    assert all(result.label_sets is not None for result in results)
