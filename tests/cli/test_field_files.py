"""Files of ELAN and FLEx as a person uses them: tagged in place, tagged into other formats, and adapted to."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import crossfill
from crossfill.cli.app import app, main
from crossfill.data.flextext import GUESSED
from tests.data.field_texts import Words, elan, flex
from tests.scenarios import SMALL, small_grid

RUN = CliRunner()
GRID = small_grid()[0].grid
LANGUAGE = GRID.languages[0]
NER, POS = f"ner/{LANGUAGE}", f"pos/{LANGUAGE}"
TEXT: list[Words] = [
    list(zip(s.words, s.labels, strict=True)) for s in GRID.training(next(c for c in GRID.cells if str(c) == POS))
][:6]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model")
    crossfill.train(GRID, "pf-lr", "compact", out, SMALL, expect=True)
    return out


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    (tmp_path / "talk.eaf").write_text(elan({"ANA": TEXT}), encoding="utf-8")
    (tmp_path / "talk.flextext").write_text(flex(TEXT), encoding="utf-8")
    return tmp_path


def run(*given: object) -> str:
    result = RUN.invoke(app, [str(one) for one in given])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_elan_files_get_tiers_with_tags_and_confidence(model: Path, talk: Path):
    out = talk / "out.eaf"
    said = run("predict", model, talk / "talk.eaf", "--cell", POS, "--cell", NER, "--alpha", "0.1", "--out", out)
    assert f"{talk / 'talk.eaf'}: words in tier 'word@ANA'" in said
    taggings = list(crossfill.load(model).tag_many([[word for word, _ in s] for s in TEXT], POS))
    tiers = {
        tier.get("TIER_ID"): [value.text for value in tier.iter("ANNOTATION_VALUE")]
        for tier in ElementTree.parse(out).iter("TIER")
    }
    assert tiers["crossfill-pos@word@ANA"] == [label for tagging in taggings for label in tagging.labels]
    confidence = [f"{value:.4f}" for tagging in taggings for value in tagging.confidence]
    assert tiers["crossfill-pos-confidence@word@ANA"] == confidence
    assert {"crossfill-ner@word@ANA", "crossfill-ner-label-set@word@ANA"} <= tiers.keys()
    assert len(tiers) == 4 + 6
    again = talk / "again.eaf"
    run("predict", model, out, "--cell", POS, "--cell", NER, "--alpha", "0.1", "--out", again)
    assert again.read_bytes() == out.read_bytes()


def test_flex_files_get_items(model: Path, talk: Path):
    out = talk / "out.flextext"
    said = run("predict", model, talk / "talk.flextext", "--cell", POS, "--out", out)
    assert "words in writing system 'wol'" in said
    tagged = [item for item in ElementTree.parse(out).iter("item") if item.get("analysisStatus") == GUESSED]
    assert [item.get("type") for item in tagged[:2]] == ["pos", "pos-confidence"]
    assert {item.get("lang") for item in tagged} == {"en"}
    assert len(tagged) == 2 * sum(map(len, TEXT))


def test_they_are_text_and_corpora_like_others(model: Path, talk: Path, tmp_path: Path):
    lines = run("--quiet", "predict", model, talk / "talk.eaf", "--cell", POS, "--format", "jsonl").splitlines()[1:]
    objects = [json.loads(line) for line in lines]
    assert [tuple(one["words"]) for one in objects] == [tuple(word for word, _ in sentence) for sentence in TEXT]
    assert [objects[1][name] for name in ("tier", "start", "end")] == ["word@ANA", 1100, 2100]
    chosen = run("predict", model, talk / "talk.eaf", "--cell", POS, "--tier", "tx@ANA", "--format", "jsonl")
    assert "sentences in tier 'tx@ANA'" in chosen
    assert "2 of 6 sentences" in run("annotate", model, talk / "talk.flextext", "--cell", NER, "--budget", "2")
    run("predict-files", model, talk / "talk.eaf", "--cell", POS, "--out", tmp_path / "tagged")
    assert len((tmp_path / "tagged" / "tagged" / "talk.jsonl").read_text(encoding="utf-8").splitlines()) == len(TEXT)
    adapted = run("adapt", model, talk / "talk.eaf", "--cell", POS, "--out", tmp_path / "adapted")
    assert f"{len(TEXT)} sentences" in adapted


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["talk.eaf", "--tier", "wrd"], "talk.eaf: unknown tier 'wrd'; known: tx@ANA, word@ANA"),
        (["talk.flextext", "--tier", "fra"], "talk.flextext: unknown writing system 'fra'"),
        (["talk.txt", "--tier", "word"], "talk.txt: expected no --tier for text"),
        (["talk.txt", "--format", "eaf"], "talk.txt: expected a file of eaf to write eaf, got text"),
        (["talk.eaf", "--cell", POS, "--cell", f"pos/{GRID.languages[1]}"], "expected cells of different tasks"),
        (["cut.eaf"], "cut.eaf:9: expected XML, got no element found"),
    ],
)
def test_problems_are_said_and_nothing_is_lost(
    model: Path,
    talk: Path,
    given: list[str],
    problem: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    (talk / "talk.txt").write_text("Dakar\n", encoding="utf-8")
    (talk / "cut.eaf").write_text("\n".join((talk / "talk.eaf").read_text(encoding="utf-8").splitlines()[:9]))
    out = talk / "out"
    cell = [] if "--cell" in given else ["--cell", POS]
    command = ["crossfill", "predict", str(model), str(talk / given[0]), *given[1:], *cell, "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as error:
        main()
    assert error.value.code == 2
    assert problem in capsys.readouterr().err
    assert not out.exists()
