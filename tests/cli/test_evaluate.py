"""`crossfill evaluate`, `annotate` and `export` as a person types them."""

import json
import re
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import crossfill
from crossfill import progress
from crossfill.cli.app import app, main
from crossfill.data.folder import load_grid
from crossfill.errors import CrossfillError, DataError
from crossfill.evaluation import scoring
from crossfill.evaluation.expected import Expectations, ExpectedScore, HeldOutScore, save_expected
from crossfill.grid.cells import Cell
from tests.data.folders import bio as bio_file
from tests.data.folders import conllu, read_bio, write
from tests.own_cache import own_cache as own_cache
from tests.scenarios import SMALL

RUN = CliRunner()
RNG = np.random.default_rng(0)


def files() -> dict[str, str]:
    made = {}
    for language in ("wol", "yor", "amh", "hau"):
        for split, n in (("train", 12), ("dev", 8), ("test", 8)):
            words = [[f"{language}{w}" for w in RNG.integers(0, 40, size=5)] for _ in range(n)]
            made[f"ud/{language}/{split}.conllu"] = conllu(
                *[[(w, "NOUN" if w[-1] in "13579" else "VERB") for w in s] for s in words]
            )
            made[f"ner/{language}/{split}.bio"] = bio_file(
                *[[(w, "B-PER" if w.endswith("7") else "O") for w in s] for s in words]
            )
    del made["ner/amh/train.bio"], made["ner/amh/dev.bio"], made["ner/amh/test.bio"]
    return made


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("data"), files())


@pytest.fixture(scope="module")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model")
    crossfill.train(load_grid(data, cache=False), config=SMALL, out=out, hold_out=["ner/wol"], expect=True)
    return out


def run(*arguments: object, text: str = "") -> str:
    result = RUN.invoke(app, [str(a) for a in arguments], input=text, env={"COLUMNS": "200"})
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_evaluate(model: Path, data: Path):
    shown = run("evaluate", model, data)
    assert shown.split().count("▣") == 3  # ner/wol, the mean of unseen cells, and the legend
    assert {"coverage", "90%", "set", "size"} <= set(shown.split())
    report = json.loads(run("evaluate", model, data, "--json"))
    assert report == json.loads(run("evaluate", model, data, "--json"))
    entries = {entry["cell"]: entry for entry in report["results"]}
    assert [cell for cell, entry in entries.items() if not entry["seen"]] == ["ner/wol"]
    tagger, grid = crossfill.load(model), load_grid(data, cache=False)
    for result in tagger.evaluate(grid):
        entry = entries[str(result.cell)]
        assert entry["plug_in"]["score"] == pytest.approx(result.score)
        risk = result.risk_coverage
        kept = 0.8 * risk[15] / risk[-1] if risk[-1] else 1.0
        assert result.errors_removed == pytest.approx(1 - kept if risk[-1] else 0.0)
    assert tagger.calibration is not None
    for result in tagger.evaluate(grid, alpha=0.1):
        test, found = grid[result.cell][0].test, result.label_sets
        gold = [label for sentence in test for label in sentence.labels]
        taggings = tagger.tag_many([s.words for s in test], result.cell, options=crossfill.TaggingOptions(alpha=0.1))
        sets = [word.label_set for tagging in taggings for word in tagging.words]
        assert found.coverage == pytest.approx(np.mean([g in s for g, s in zip(gold, sets, strict=True)]))
        assert found.set_size == pytest.approx(np.mean([len(s) for s in sets]))
        assert entries[str(result.cell)]["coverage"] == pytest.approx(found.coverage)
    mean = next(m for m in report["means"] if m["task"] == "pos" and m["seen"])
    assert mean["averaged_nll"] == pytest.approx(
        np.mean([e["averaged"]["nll"] for c, e in entries.items() if c[:3] == "pos"])
    )
    assert json.loads(run("evaluate", model, data, "--samples", 0, "--json"))["samples"] == 0


def test_cells_without_test_data_have_their_expected_score(model: Path, data: Path, tmp_path: Path):
    held_out = (HeldOutScore(Cell("ner", "yor"), 0.5, 0.2),)
    expected = tuple(ExpectedScore(Cell("ner", code), 0.4321, 0.25, 0.7, 0.3) for code in ("amh", "wol"))
    save_expected(shutil.copytree(model, tmp_path / "model"), Expectations(held_out, expected))
    shown = run("evaluate", tmp_path / "model", data)
    assert "filled cells: expected score, 80% interval (1 seen cells held out)" in shown
    assert "  ner/amh       43.2   25 to 70" in shown
    report = json.loads(run("evaluate", tmp_path / "model", data, "--json"))
    assert [one["cell"] for one in report["expected"]["cells"]] == ["ner/amh"]  # ner/wol has test data, and a score
    assert "expected" not in json.loads(run("evaluate", model, data, "--json"))


def test_evaluate_leaves_out_what_the_model_does_not_know(model: Path, data: Path, tmp_path: Path):
    more = write(tmp_path / "more", {**files(), "ud/fin/test.conllu": conllu([("a", "NOUN")])})
    result = RUN.invoke(app, ["evaluate", str(model), str(more), "--json"])
    assert result.exit_code == 0
    assert "left out: pos/fin" in result.stderr


def test_no_width_cuts_a_table_off(model: Path, data: Path):
    report = json.loads(run("evaluate", model, data, "--json"))
    for width in (80, 200):
        result = RUN.invoke(app, ["evaluate", str(model), str(data)], env={"COLUMNS": str(width), "NO_COLOR": "1"})
        assert max(map(len, result.stdout.splitlines())) <= width
        assert "…" not in result.stdout
        words = result.stdout.split()
        for entry in report["results"]:
            for name in ("nll", "ece", "aurc"):
                assert f"{entry['averaged'][name]:.3f}" in words
            assert f"{entry['set_size']:.2f}" in words


def test_data_of_other_cells_are_an_error(model: Path, tmp_path: Path, monkeypatch, capsys):
    other = write(tmp_path / "other", {"ud/fin/test.conllu": conllu([("a", "NOUN")])})
    monkeypatch.setattr(sys, "argv", ["crossfill", "evaluate", str(model), str(other)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "the model has tasks ner, pos in languages amh, hau, wol, yor" in told
    assert "the data have tasks pos in languages fin" in told


def test_data_without_test_sets_are_an_error(model: Path, tmp_path: Path):
    kept = {name: text for name, text in files().items() if "/train." in name and "/amh/" not in name}
    untested = write(tmp_path / "untested", {**kept, "ud/fin/test.conllu": conllu([("a", "NOUN")])})
    result = RUN.invoke(app, ["evaluate", str(model), str(untested)])
    assert isinstance(result.exception, DataError)
    assert "expected test data" in str(result.exception)
    assert "found none in ner/hau, ner/wol, ner/yor, pos/hau, pos/wol, pos/yor" in str(result.exception)


def test_a_slow_evaluation_says_how_far_it_is(model: Path, data: Path, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.2)
    real = scoring.evaluate_corpus

    def slow(*given):
        time.sleep(0.5 if str(given[1]) == "pos/amh" else 0.0)
        return real(*given)

    monkeypatch.setattr(scoring, "evaluate_corpus", slow)
    told = RUN.invoke(app, ["evaluate", str(model), str(data)]).stderr
    assert re.search(r"^Evaluating corpora: 3/7, .*, pos/amh$", told, re.MULTILINE), told
    quiet = RUN.invoke(app, ["--quiet", "evaluate", str(model), str(data)]).stderr
    assert all(line.startswith("score 0.0") for line in quiet.splitlines())


def test_annotate(model: Path, data: Path, tmp_path: Path):
    source = data / "ud" / "wol" / "train.conllu"
    out = tmp_path / "todo.bio"
    run("annotate", model, source, "--cell", "ner/wol", "--budget", 4, "--format", "bio", "--out", out)
    chosen = list(read_bio(out.read_bytes(), str(out)))
    known = {tuple(s.words) for s in load_grid(data, cache=False).training(crossfill.Cell("pos", "wol"))}
    assert len(chosen) == 4
    assert {s.words for s in chosen} <= known
    tagger = crossfill.load(model)
    assert [s.labels for s in chosen] == [t.labels for t in tagger.tag_many([s.words for s in chosen], "ner/wol")]
    write(tmp_path / "next", {"ner/wol/train.bio": out.read_text()})
    assert load_grid(tmp_path / "next", cache=False).cells == (crossfill.Cell("ner", "wol"),)  # reads as a corpus
    run("annotate", model, source, "--cell", "ner/wol", "--budget", 2, "--out", tmp_path / "todo.conllu")
    assert (tmp_path / "todo.conllu").read_text().count("\n\n") == 2
    for ending in ("conllu", "bio"):  # what is doubtful is marked, and the file is read as a corpus
        to_correct = tmp_path / f"new.{ending}"
        run("annotate", model, "--cell", "pos/wol", "--out", to_correct, text="Dakar mooy péeyu.\n")
        doubtful = [w.text for w in tagger.tag("Dakar mooy péeyu.", "pos/wol").words if w.confidence < 0.6]
        found = re.findall(r"^\d+\t(\S+)\t.*PosDoubtful=Yes", to_correct.read_text(), re.MULTILINE)
        if ending == "bio":
            found = re.findall(r"(\S+) \([A-Z]+ 0\.", to_correct.read_text())
        assert found == doubtful
        assert doubtful
        assert "adapted, 1 sentence" in run(
            "adapt", model, to_correct, "--cell", "pos/wol", "--out", tmp_path / f"{ending}-adapted"
        )
    as_conllu = run("annotate", model, source, "--cell", "pos/wol", "--budget", 2, "--strategy", "bald")
    assert as_conllu.count("\n\n") == 2
    assert "a b" in run("annotate", model, "--cell", "pos/wol", "--from", "words", "--format", "conllu", text="a b\n")
    assert run("annotate", model, "--cell", "pos/wol", text="") == ""
    assert RUN.invoke(app, ["annotate", str(model)]).exit_code == 2


def test_export_says_why_not(model: Path, tmp_path: Path):
    result = RUN.invoke(app, ["export", str(model), str(tmp_path / "out"), "--cell", "ner/wol"])
    assert isinstance(result.exception, CrossfillError)
    assert "hashed n-grams" in str(result.exception)


def test_text_that_tasks_share_is_kept_apart_as_in_training(data: Path, tmp_path: Path):
    """A treebank with a test set alone is parted between the tasks of the model."""
    folder = write(tmp_path / "data", files())
    words = [[f"fon{w}" for w in RNG.integers(0, 40, size=5)] for _ in range(40)]
    write(folder, {"ud/fon/test.conllu": conllu(*[[(w, "NOUN") for w in sentence] for sentence in words])})
    grid = load_grid(folder, tasks=("pos", "ner", "deprel"), cache=False, allow_missing=True)
    crossfill.train(grid, config=SMALL, out=tmp_path / "model", hold_out=["pos/fon"])
    parted = len(grid[crossfill.Cell("pos", "fon")][0].test)
    assert 0 < parted < 40
    report = json.loads(run("evaluate", tmp_path / "model", folder, "--samples", 0, "--json"))
    (scored,) = (cell for cell in report["results"] if cell["cell"] == "pos/fon")
    assert scored["n_sentences"] == parted
