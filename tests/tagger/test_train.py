"""The front door: what is not given changes nothing, and training returns what it found out."""

import gzip
from pathlib import Path

import pytest
import yaml

import crossfill
from crossfill.checkpoint import SEGMENTATION
from crossfill.data.writers import write_grid
from crossfill.grid.cells import Cell, Grid
from crossfill.methods.registry import all_methods
from crossfill.tagger import train as train_module
from crossfill.tagger.presets import RunRequest
from crossfill.tagger.train import train_model
from crossfill.tagger.training_run import TrainingRun
from crossfill.training.labelled import prepare
from tests.data.test_boundaries import TREEBANK
from tests.encoders.tiny import bert
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


def test_a_grid_too_small_for_its_method_is_told(tmp_path: Path):
    languages = ("amh", "bam", "fin", "tha", "vie", "wol", "yor", "swa", "hau", "ibo", "zul")
    splits = MADE.grid[MADE.grid.cells[0]]

    def told(n: int, method: str = "pf-lr") -> str:
        grid = Grid({Cell(task, language): splits for task in ("ner", "pos") for language in languages[: n + 1]})
        request = RunRequest(method, str(bert(tmp_path / "bert")), preset="laptop", cache=False)
        return "\n".join(TrainingRun(grid, grid.cells[1:], request, None).announcement(None))

    assert "with 9 languages in two tasks pf-lr is likely no better than one shared head (--method jm)" in told(9)
    assert "shared head" not in told(10) + told(9, "jm")
    assert "from so little the model can hardly learn" in told(4)


def test_public_names():
    tagger = crossfill.train(GRID, config=FEW)
    assert type(tagger) is crossfill.Tagger
    assert type(tagger.tag(["Dakar"], "ner/wol")) is crossfill.Tagging


def test_one_sentence_is_no_stream_of_sentences():
    tagger = crossfill.train(GRID, config=FEW)
    with pytest.raises(crossfill.CrossfillError, match="got one str; use tag"):
        tagger.tag_many("a string", "ner/wol")


def test_a_data_folder_and_a_file_of_settings_will_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    write_grid(GRID, tmp_path / "data")
    settings = tmp_path / "few.yaml"
    settings.write_text(yaml.safe_dump(FEW.model_dump(mode="json")))
    tagger = crossfill.train(tmp_path / "data", config=str(settings), cache=False)
    assert tagger.config == FEW
    assert capsys.readouterr().err == ""  # nobody watches
    crossfill.train(str(tmp_path / "data"), config=settings, cache=False, quiet=False)
    assert "cells seen" in capsys.readouterr().err


def test_what_things_look_like_at_a_prompt():
    tagger = crossfill.train(GRID, config=FEW, hold_out=["ner/wol"])
    tasks = ", ".join(GRID.tasks)
    assert repr(tagger) == f"<Tagger pf-lr over compact: {tasks} in 4 languages, 15 of 16 cells seen>"
    assert repr(GRID) == f"<Grid of {tasks} × 4 languages: 16 of 16 cells have data, 160 training sentences>"
    words = " ".join(GRID.training(Cell("ner", "wol"))[0].words[:8])
    assert repr(GRID.training(Cell("ner", "wol"))).endswith(f" words: {words} …>")
    assert repr(GRID.training(Cell("ner", "wol"))[:0]) == "<Corpus of 0 sentences, 0 words>"
    assert repr(tagger.tag(["Dakar"], "ner/wol")).startswith("<Tagging ner/wol: Dakar/")


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
    trained = train_model(GRID, GRID.cells, config, tmp_path, log=told.append)
    assert len(planned) == 1
    assert [f"ls: {note}" for note in trained.plan.notes] == told
    assert told[0].startswith("ls: chunk has no training data in 'eng'")
    assert trained.progression.step == 4
    assert [entry["step"] for entry in trained.progression.history] == [2, 4]


def test_evaluation_encodes_every_corpus_once(monkeypatch: pytest.MonkeyPatch):
    tagger = crossfill.train(GRID, config=FEW, expect=True)
    asked = []
    monkeypatch.setattr(
        "crossfill.evaluation.scoring.prepare", lambda *given: (asked.append(given[2:]), prepare(*given))[1]
    )
    results = tagger.evaluate(GRID)
    assert [cell for cell, _ in asked] == [result.cell for result in results] == list(GRID.cells)
    assert all(result.label_sets is not None for result in results)


def test_a_model_cuts_raw_text_as_its_treebanks_do(tmp_path: Path):
    rows = [line.split("\t") for line in TREEBANK.splitlines()]
    filled = [[*row[:3], "NOUN" if len(row[1]) > 2 else "VERB", *row[4:]] if row[0].isdigit() else row for row in rows]
    treebank = "".join("\t".join(row) + "\n" for row in filled)
    (folder := tmp_path / "data" / "pos" / "wol").mkdir(parents=True)
    (folder / "train.conllu.gz").write_bytes(gzip.compress(treebank.encode()))
    (folder / "test.conllu").write_text(treebank.replace("didn't", "xyz").replace("n't", "'s"))
    trained = crossfill.train(tmp_path / "data", config=FEW, out=tmp_path / "model", cache=False, expect=False)
    for tagger in (trained, crossfill.load(tmp_path / "model")):
        tagging = tagger.tag("Eve didn't see du wecat at 5 p.m. today.", "pos/wol")
        assert " ".join(tagging.sentence.words) == "Eve did n't see de le we cat at 5 p.m. today ."
        assert tagging.sentence.surfaces[4:6] == ("du", "")
    trained.save(tmp_path / "again")
    assert (tmp_path / "again" / SEGMENTATION).read_bytes() == (tmp_path / "model" / SEGMENTATION).read_bytes()
    crossfill.train(GRID, config=FEW, out=tmp_path / "model", force=True)  # a treebank that teaches nothing
    assert not (tmp_path / "model" / SEGMENTATION).exists()
