"""Sentences and pairs through every command, as a person types it."""

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import crossfill
from crossfill.cli.app import app, main
from crossfill.data.writers import write_grid
from crossfill.grid.cells import Cell, Grid
from crossfill.web.app import build_app
from crossfill.web.serve_settings import ServeSettings
from tests.scenarios import SMALL, mixed_grid

RUN = CliRunner()
MADE = mixed_grid(families=2)
CODES = dict(zip(MADE.languages, ("wol", "fin", "tha", "vie"), strict=True))
GRID = Grid({Cell(cell.task, CODES[cell.language]): corpora for cell, corpora in MADE.corpora.items()})
THEME, CHANGE = Cell("theme", "wol"), Cell("change", "wol")
SENTENCES = [sentence.text for sentence in GRID[THEME][0].test]
PAIRS = [sentence.text for sentence in GRID[CHANGE][0].test]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A data folder, and a model of it that has never seen themes in Wolof."""
    root = tmp_path_factory.mktemp("sentences")
    write_grid(GRID, root / "data")
    crossfill.train(
        crossfill.load_grid(root / "data"), config=SMALL, out=root / "model", hold_out=[str(THEME)], expect=True
    )
    return root / "data", root / "model"


def run(*arguments: str | Path, text: str = "") -> str:
    result = RUN.invoke(app, [str(argument) for argument in arguments], input=text)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What is said on standard error when a command is refused."""

    def told(*arguments: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", ["crossfill", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 2
        return " ".join(capsys.readouterr().err.split())

    return told


def test_the_grid_names_units(folders: tuple[Path, Path]):
    found = json.loads(run("grid", folders[0], "--json"))
    assert {task: entry["unit"] for task, entry in found["tasks"].items()} == {
        "pos": "word", "theme": "sentence", "change": "pair",
    }  # fmt: skip
    shown = run("grid", folders[0])
    assert "theme (sentences)" in shown
    assert "change (pairs)" in shown


def test_predict_gives_a_label_and_a_distribution_per_line(folders: tuple[Path, Path]):
    _, model = folders
    text = "".join(f"{sentence}\n" for sentence in SENTENCES)
    lines = [
        json.loads(line) for line in run("predict", model, "--cell", THEME, "--format", "jsonl", text=text).splitlines()
    ]
    tagger = crossfill.load(model)
    own = list(tagger.tag_many(SENTENCES, THEME))
    assert [line["tags"][str(THEME)]["label"] for line in lines] == [t.labels[0] for t in own]
    for line, tagging in zip(lines, own, strict=True):
        assert line["tags"][str(THEME)]["distribution"] == pytest.approx(tagging.distribution(0), abs=1e-5)
    shown = run("predict", model, "--cell", THEME, text=text).splitlines()
    assert [row.split("\t")[0] for row in shown] == [t.labels[0] for t in own]
    assert [row.split("\t")[-1] for row in shown] == SENTENCES
    columns = run("predict", model, "--cell", THEME, "--format", "bio", "--alpha", "0.2", text=text).splitlines()
    assert columns[0].startswith("# sentence confidence")
    assert [row.split("\t")[-1] for row in columns[1:]] == [t.labels[0] for t in own]


def test_predict_takes_pairs_with_a_tab_between(
    folders: tuple[Path, Path], tmp_path: Path, refused: Callable[..., str]
):
    _, model = folders
    shown = run("predict", model, "--cell", CHANGE, "--samples", "0", text="\n".join(PAIRS) + "\n").splitlines()
    own = [t.labels[0] for t in crossfill.load(model).tag_many(PAIRS, CHANGE, samples=0)]
    assert [row.split("\t")[0] for row in shown] == own
    objects = "".join(
        json.dumps(dict(zip(("premise", "hypothesis"), pair.split("\t"), strict=True))) + "\n" for pair in PAIRS
    )
    found = run("predict", model, "--cell", CHANGE, "--samples", "0", "--from", "jsonl", text=objects).splitlines()
    assert [json.loads(line)["tags"][str(CHANGE)]["label"] for line in found] == own
    (tmp_path / "bad.txt").write_text("one\ttwo\nonly one\n")
    told = refused("predict", model, "--cell", CHANGE, tmp_path / "bad.txt")
    assert "bad.txt:2: expected two sentences, premise<TAB>hypothesis; got only one" in told
    told = refused("predict", model, "--cell", CHANGE, "--cell", THEME, tmp_path / "bad.txt")
    assert "change/wol labels pairs, theme/wol labels sentences" in told


def test_evaluate_measures_sentences_and_pairs(folders: tuple[Path, Path]):
    data, model = folders
    found = json.loads(run("evaluate", model, data, "--json"))
    assert found["units"] == {"change": "pair", "theme": "sentence"}
    entry = next(entry for entry in found["results"] if entry["cell"] == str(THEME))
    assert {"accuracy", "macro_f1", "nll", "ece"} <= entry["averaged"].keys()
    assert (entry["n_words"], entry["seen"]) == (8, False)
    assert "labels of sentences" in (model / "README.md").read_text()


@pytest.mark.parametrize("cell", [THEME, CHANGE])
def test_annotate_writes_what_adapt_reads(cell: Cell, folders: tuple[Path, Path], tmp_path: Path):
    _, model = folders
    texts = SENTENCES if cell == THEME else PAIRS
    out = run("annotate", model, "--cell", cell, "--budget", "5", text="".join(f"{text}\n" for text in texts))
    rows = list(csv.DictReader(io.StringIO(out), delimiter="\t"))
    assert len(rows) == 5
    assert all(row["label"] in crossfill.load(model).model.inventory.task(cell.task).labels for row in rows)
    (tmp_path / "corrected.tsv").write_text(out)
    told = run("adapt", model, tmp_path / "corrected.tsv", "--cell", cell, "--out", tmp_path / "adapted")
    assert "adapted, 5 sentences (5 new, 5 labels)" in " ".join(told.split())
    adapted = crossfill.load(tmp_path / "adapted")
    assert adapted.status(cell) == "adapted, 5 sentences"


def test_the_server_gives_one_entry_per_sentence_or_pair(folders: tuple[Path, Path]):
    tagger = crossfill.load(folders[1])
    with TestClient(build_app(tagger, ServeSettings(), "x", {}), base_url="http://localhost") as client:
        tasks = {task["name"]: task["unit"] for task in client.get("/api/grid").json()["tasks"]}
        assert tasks == {"pos": "word", "theme": "sentence", "change": "pair"}
        text = SENTENCES[0]
        found = client.post(
            "/api/tag", json={"cells": [str(THEME), "pos/wol"], "text": text, "distributions": True}
        ).json()
        whole, words = found["taggings"]
        assert (whole["unit"], words["unit"]) == ("sentence", "word")
        assert [len(s["labels"]) for s in whole["sentences"]] == [1] * len(found["sentences"])
        assert [len(s["labels"]) for s in words["sentences"]] == [len(s["words"]) for s in found["sentences"]]
        pairs = client.post("/api/tag", json={"cells": [str(CHANGE)], "text": "\n".join(PAIRS), "samples": 0}).json()
        own = [t.labels[0] for t in tagger.tag_many(PAIRS, CHANGE, samples=0)]
        assert [s["labels"][0] for s in pairs["taggings"][0]["sentences"]] == own
        for request in ({"cells": [str(CHANGE)], "text": "one"}, {"cells": [str(CHANGE), str(THEME)], "text": "a\tb"}):
            assert client.post("/api/tag", json=request).status_code == 422
