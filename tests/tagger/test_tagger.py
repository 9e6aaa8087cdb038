"""The tagger against prediction word by word; streams, spans, sets and marks."""

import itertools
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import crossfill
from crossfill import checkpoint
from crossfill.cli.app import app
from crossfill.data.labels import iob2
from crossfill.encoders.frozen import StoredVectors
from crossfill.errors import ConfigError, DataError
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.prediction.predict import predict
from crossfill.prediction.tagging import TaggingOptions
from crossfill.settings import parse_assignments
from crossfill.tagger.tagger import Tagger
from tests.encoders.tiny import bert
from tests.own_cache import own_cache as own_cache
from tests.scenarios import SMALL, small_grid

MADE, PARTITION = small_grid()
GRID = Grid(  # Wolof, Finnish, … instead of private codes, so that names of languages are tested, too
    {
        Cell(cell.task, code): corpora
        for cell, corpora in MADE.grid.corpora.items()
        for code in [dict(zip(MADE.grid.languages, ("wol", "fin", "tha", "vie"), strict=True))[cell.language]]
    }
)
HELD_OUT = [cell for cell in GRID.cells if cell.language == "wol" and cell.task == "ner"]
CONFIG = SMALL.change({"training.steps": 30})
TEXTS = [s.words for s in GRID[Cell("ner", "fin")][0].test]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model")
    crossfill.train(GRID, "pf-lr", "compact", out, CONFIG, hold_out=HELD_OUT, expect=True)
    return out


@pytest.fixture(scope="module")
def tagger(folder: Path) -> Tagger:
    return crossfill.load(folder)


def test_it_says_what_prediction_says(tagger: Tagger):
    cell = Cell("pos", "fin")
    inputs = tagger.model.encoder.prepare(Corpus.from_sentences(Sentence(t) for t in TEXTS), "fin")
    expected = predict(tagger.model, inputs, cell, 7)
    found = list(tagger.tag_many(TEXTS, "pos/fin"))
    names = np.array(tagger.model.inventory.task("pos").labels)
    assert [label for t in found for label in t.labels] == names[expected.labels.numpy()].tolist()
    for name in ("probabilities", "entropy", "mutual_information", "confidence"):
        whole = np.concatenate([getattr(t, name) for t in found])
        np.testing.assert_allclose(whole, getattr(expected, name).numpy(), rtol=1e-5)
    assert all(t.mutual_information.max() == 0 for t in tagger.tag_many(TEXTS[:2], "pos/fin", samples=0))
    word = found[0].words[1]
    assert word.text == TEXTS[0][1]
    assert word.label == max(found[0].distribution(1), key=found[0].distribution(1).__getitem__)
    assert sum(found[0].distribution(1).values()) == pytest.approx(1)


def test_spans_are_valid_and_agree_with_labels(tagger: Tagger):
    for tagging in tagger.tag_many(TEXTS, "ner/wol"):
        assert list(tagging.labels) == iob2(tagging.labels)
        for i, label in enumerate(tagging.labels):
            assert not label.startswith("I-") or tagging.labels[i - 1] in (f"B-{label[2:]}", label)
        assert sum(label.startswith("B-") for label in tagging.labels) == len(tagging.spans)
        for span in tagging.spans:
            assert tagging.labels[span.start] == f"B-{span.type}"
            assert span.text == " ".join(tagging.sentence.words[span.start : span.end])
            assert 0 < span.confidence <= 1


def test_grids_and_taggers_show_themselves_in_notebooks(tagger: Tagger):
    def rows(shown: str) -> list[list[str]]:
        return [re.findall("<td>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", shown)]

    head, *sizes = rows(GRID._repr_html_())
    assert head == ["", *GRID.tasks]
    own = [[code, *(f"{len(GRID.training(Cell(t, code))):,}" for t in GRID.tasks)] for code in GRID.languages]
    assert sizes == own
    shown = {
        Cell(task, code): mark
        for code, *marks in rows(tagger._repr_html_())[1:]
        for task, mark in zip(GRID.tasks, marks, strict=True)
    }
    assert shown == {cell: "■" if cell in tagger.seen else "▣" for cell in tagger.cells}
    assert HELD_OUT[0] not in tagger.seen


def test_an_unfinished_model_says_so(folder: Path, tmp_path: Path):
    model = shutil.copytree(folder, tmp_path / "model")
    (tmp_path / "a.txt").write_text("one two\n")
    given = ["predict", str(model), "--cell", "pos/fin", str(tmp_path / "a.txt")]
    assert "unfinished" not in CliRunner().invoke(app, given).stderr
    (model / checkpoint.STATE).touch()
    assert (
        "the training of this model is unfinished; crossfill train with --resume"
        in CliRunner().invoke(app, given).stderr
    )
    assert repr(crossfill.load(model)).endswith("cells seen, training unfinished>")


def test_streams_are_lazy_and_in_order(tagger: Tagger):
    endless = itertools.cycle(TEXTS)
    stream = tagger.tag_many(endless, "pos/fin")
    for expected in itertools.islice(itertools.cycle(TEXTS), 600):
        assert next(stream).sentence.words == expected
    several = list(tagger.tag_cells(TEXTS, ["pos/fin", "ner/wol"]))
    assert [t.labels for t, _ in several] == [t.labels for t in tagger.tag_many(TEXTS, "pos/fin")]
    assert [t.labels for _, t in several] == [t.labels for t in tagger.tag_many(TEXTS, "ner/wol")]
    assert list(tagger.tag_many([], "pos/fin")) == []
    assert tagger.tag([], "ner/wol").labels == ()


def test_names_of_cells(tagger: Tagger):
    assert tagger.cell("ner/wo") == tagger.cell(Cell("ner", "wol")) == Cell("ner", "wol")
    assert tagger.cell("upos/fi") == Cell("pos", "fin")
    assert tagger.cell("ner/wol") not in tagger.seen
    with pytest.raises(DataError, match=r"unknown cell 'ner/wool'; did you mean 'ner/wol'\? known: .*pos/fin"):
        tagger.tag(["a"], "ner/wool")
    with pytest.raises(DataError, match="expected a cell as task/language"):
        tagger.cell("ner")
    with pytest.raises(ConfigError, match="samples"):
        tagger.tag(["a"], "ner/wol", samples=-1)


def test_strings_are_cut_into_words_and_composed(tagger: Tagger):
    tagging = tagger.tag("Dakar mooy péeyu.", "pos/wol")
    assert tagging.sentence.words == ("Dakar", "mooy", "péeyu", ".")
    taken_apart = tagger.tag(["pe\u0301eyu"], "pos/wol")
    np.testing.assert_array_equal(taken_apart.probabilities, tagger.tag(["péeyu"], "pos/wol").probabilities)
    assert taken_apart.sentence.words == ("pe\u0301eyu",)  # as it was given


def test_doubts(tagger: Tagger):
    plain = list(tagger.tag_many(TEXTS, "pos/fin"))
    strict, loose = (list(tagger.tag_many(TEXTS, "pos/fin", options=TaggingOptions(alpha=a))) for a in (0.05, 0.5))
    for one, other in zip(strict, loose, strict=True):
        assert one.sets is not None
        assert other.sets is not None
        assert (one.sets | ~other.sets).all()  # a smaller α never loses a label
        assert all(word.label in word.label_set for word in other.words)
    marked = list(tagger.tag_many(TEXTS, "pos/fin", options=TaggingOptions(abstain=0.4)))
    doubtful = np.concatenate([t.doubtful for t in marked if t.doubtful is not None])
    confidence = np.concatenate([t.confidence for t in plain])
    assert 0 < doubtful.sum() < len(doubtful)
    assert confidence[doubtful].max() < confidence[~doubtful].min()
    floor = float(np.median(confidence))
    kept = list(tagger.tag_many(TEXTS, "pos/fin", options=TaggingOptions(min_confidence=floor)))
    for before, after in zip(plain, kept, strict=True):
        assert after.labels == tuple(w.label if w.confidence >= np.float32(floor) else "_" for w in before.words)
    assert all(
        not t.spans and set(t.labels) <= {"O"}
        for t in tagger.tag_many(TEXTS, "ner/wol", options=TaggingOptions(min_confidence=1.0))
    )
    assert tagger.calibration is not None
    scaled = tagger.tag(TEXTS[0], "pos/fin", options=TaggingOptions(temperature=True))
    expected = plain[0].probabilities ** (1 / tagger.calibration.averaged["pos"].temperature)
    np.testing.assert_allclose(scaled.probabilities, expected / expected.sum(1, keepdims=True), rtol=1e-4)


def test_what_needs_a_calibration_is_refused_without(tagger: Tagger):
    uncalibrated = Tagger(tagger.model, tagger.config)
    with pytest.raises(DataError, match=r"--expect"):
        uncalibrated.tag(["a"], "pos/fin", options=TaggingOptions(alpha=0.1))


def test_a_frozen_encoder_passes_once_for_all_cells_and_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    settings = ["encoder.pretrained.mode=frozen", "encoder.pretrained.max_pieces=60", "encoder.pretrained.overlap=20"]
    config = CONFIG.change({**parse_assignments(settings), "encoder.pretrained.centring": "mean"})
    out = tmp_path / "model"
    crossfill.train(GRID, "pf-lr", str(bert(tmp_path / "bert")), out, config, hold_out=HELD_OUT)
    before = sorted((tmp_path / "cache").rglob("*"))
    tagger = crossfill.load(out)
    passes = []
    monkeypatch.setattr(
        StoredVectors,
        "_encode",
        lambda *given, own=StoredVectors._encode: (passes.append(1), own(*given))[1],
    )
    several = list(tagger.tag_cells(TEXTS, ["pos/fin", "ner/wol", "pos/wol"]))
    assert len(passes) == 1
    for column, cell in enumerate(("pos/fin", "ner/wol", "pos/wol")):
        alone = list(tagger.tag_many(TEXTS, cell))
        for one, other in zip(several, alone, strict=True):
            np.testing.assert_allclose(one[column].probabilities, other.probabilities, rtol=1e-5)
    assert sorted((tmp_path / "cache").rglob("*")) == before
    with pytest.raises(
        DataError, match=r"known: .*wol; German is not among these; .*--language deu --text FILE adds it"
    ):
        tagger.tag(["a"], "pos/de")


def test_a_finetuned_model_needs_nothing_but_its_folder(tmp_path: Path):
    encoder = bert(tmp_path / "bert")
    config = CONFIG.change({"encoder.pretrained.max_pieces": 60, "encoder.pretrained.overlap": 20, "training.steps": 3})
    out = tmp_path / "model"
    trained = crossfill.train(GRID, "jm", str(encoder), out, config)
    expected = trained.tag(TEXTS[0], "pos/fin").probabilities
    for path in encoder.iterdir():
        path.unlink()
    encoder.rmdir()
    loaded = crossfill.load(out)
    np.testing.assert_allclose(loaded.tag(TEXTS[0], "pos/fin").probabilities, expected, rtol=1e-5)
    assert {path.name for path in (out / "encoder").iterdir()} >= {"config.json", "tokenizer.json"}
    assert not list((out / "encoder").glob("*.safetensors"))
