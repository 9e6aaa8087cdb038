"""`crossfill predict` as a person types it: formats in and out, and input that is not what it should be."""

import io
import json
import re
import shutil
import sys
import time
from pathlib import Path

import conllu
import numpy as np
import pytest
from typer.testing import CliRunner

import crossfill
from crossfill.checkpoint import CALIBRATION
from crossfill.cli.app import app, main
from crossfill.cli.predict import pieces
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task
from crossfill.prediction.tagging import Span, Tagging
from tests.data.folders import read_bio
from tests.scenarios import SMALL, small_grid

RUN = CliRunner()
GRID = small_grid()[0].grid
LANGUAGE = GRID.languages[0]
CELL = Cell("ner", LANGUAGE)
NER, POS = f"ner/{LANGUAGE}", f"pos/{LANGUAGE}"
TEXTS = [sentence.words for sentence in GRID.development(GRID.cells[0])]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model")
    crossfill.train(GRID, "pf-lr", "compact", out, SMALL, hold_out=[NER], expect=True)
    return out


def predict(model: Path, text: str | bytes, *options: str) -> str:
    result = RUN.invoke(app, ["predict", str(model), *options], input=text)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_every_format_in_and_out(model: Path, tmp_path: Path):
    lines = "".join(" ".join(words) + "\n" for words in TEXTS)
    both = ["--cell", POS, "--cell", NER, "--samples", "3"]
    out = predict(model, lines, "--from", "words", *both, "--format", "jsonl", "--distribution")
    objects = [json.loads(line) for line in out.splitlines()]
    assert [tuple(o["words"]) for o in objects] == TEXTS
    expected = [o["tags"][POS]["labels"] for o in objects]
    loaded = crossfill.load(model)
    assert expected == [list(t.labels) for t in loaded.tag_many(TEXTS, POS, 3)]
    assert all(abs(sum(d.values()) - 1) < 1e-4 for d in objects[0]["tags"][NER]["distributions"])
    assert {"labels", "confidence", "entropy", "mutual_information", "spans"} <= set(objects[0]["tags"][NER])

    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"id": i, "tokens": words}) + "\n\n" for i, words in enumerate(TEXTS)))
    again = [json.loads(line) for line in predict(model, "", str(path), *both).splitlines()]
    assert [o["tags"][POS]["labels"] for o in again] == expected
    assert [o["id"] for o in again] == list(range(len(TEXTS)))

    columns = predict(model, lines, "--from", "words", "--cell", POS, "--samples", "3", "--format", "bio")
    read = list(read_bio(columns.encode(), "out"))
    assert [s.words for s in read] == TEXTS
    assert [list(s.labels) for s in read] == expected
    back = predict(model, columns, "--from", "bio", "--format", "jsonl", "--cell", POS, "--samples", "3")
    assert [json.loads(line)["tags"][POS]["labels"] for line in back.splitlines()] == expected

    made = predict(model, lines, "--from", "words", *both, "--format", "conllu")
    trees = conllu.parse(made)
    assert [[t["upos"] for t in tree] for tree in trees] == expected
    assert {"NER", "NerConfidence", "PosEntropy", "PosMutualInformation"} <= set(trees[0][0]["misc"])
    assert [tree.metadata["text"] for tree in trees] == [" ".join(words) for words in TEXTS]
    file = tmp_path / "in.conllu"
    file.write_text(made)
    assert predict(model, "", str(file), *both) == made  # tagging again changes nothing


def test_conllu_keeps_what_it_has(model: Path):
    source = (
        "# sent_id = 1\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
        "1\tde\tde\tADP\t_\tCase=Gen\t0\troot\t_\tGloss=of\n2\tle\tle\tDET\t_\t_\t1\tdet\t_\t_\n"
        "2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    )
    out = predict(model, source, "--from", "conllu", "--cell", NER)
    rows = [line.split("\t") for line in out.splitlines() if "\t" in line]
    assert [row[0] for row in rows] == ["1-2", "1", "2", "2.1"]
    assert rows[1][:9] == ["1", "de", "de", "ADP", "_", "Case=Gen", "0", "root", "_"]
    assert rows[1][9].startswith("Gloss=of|NER=")
    assert rows[3][9] == "_"
    assert out.startswith("# sent_id = 1\n")


def test_text_for_people(model: Path):
    out = predict(model, "Dakar mooy péeyu. Helsinki on kaupunki.\n\n", "--cell", POS)
    assert len(out.splitlines()) == 2
    assert all("/" in word for word in out.split())
    assert len(predict(model, "Dakar mooy. Helsinki on.\n", "--cell", POS, "--from", "lines").splitlines()) == 1
    assert predict(model, "", "--cell", POS) == ""
    named = predict(model, "Dakar mooy\n", "--cell", NER, "--cell", POS)
    assert [line.split()[0] for line in named.splitlines()] == [NER, POS]


def test_doubts_are_written(model: Path, tmp_path: Path):
    line, target = " ".join(TEXTS[0]) + "\n", tmp_path / "out.jsonl"
    options = ["--alpha", "0.1", "--abstain", "0.5", "--from", "words"]
    predict(model, line, "--cell", POS, *options, "--format", "jsonl", "--out", str(target))
    found = json.loads(target.read_text())["tags"][POS]
    assert len(found["label_sets"]) == len(found["doubtful"]) == len(TEXTS[0])
    assert "PosLabelSet=" in predict(model, line, "--cell", POS, *options, "--format", "conllu")
    assert "label_set doubtful" in predict(model, line, "--cell", POS, *options, "--format", "bio").splitlines()[0]


def test_what_decisions_look_for(model: Path, tmp_path: Path):
    """With an offset that makes names dear, precision finds none; one that makes them cheap finds them everywhere."""
    copy = Path(shutil.copytree(model, tmp_path / "model"))
    whole = json.loads((copy / CALIBRATION).read_text())
    for kind in ("plug_in", "averaged"):
        whole[kind]["ner"]["offsets"] = {"f1": 0.0, "precision": 4.0, "recall": -4.0}
    (copy / CALIBRATION).write_text(json.dumps(whole))

    def n_named(*options: str) -> int:
        out = predict(copy, " ".join(TEXTS[0]) + "\n", "--cell", NER, "--from", "words", "--format", "bio", *options)
        return sum("\tB-" in line or "\tI-" in line for line in out.splitlines())

    assert n_named("--prefer", "precision") < n_named("--prefer", "recall")
    assert n_named("--prefer", "precision") <= n_named() <= n_named("--prefer", "recall")


def error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], data: bytes, *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["crossfill", *arguments])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("form", "data", "message"),
    [
        ("text", b"\x7fELF\0\0\1", "expected text, got a zero byte; is this a binary file?"),
        ("text", b"fine\nDakar \xff\n", ":2: expected UTF-8, got byte 0xff"),
        ("text", b"\xff\xfea\0", "UTF-16"),
        ("text", b"a" * 10_000_000, "expected lines of at most 1,000,000 bytes"),
        ("text", b"a " * 300_000, "expected at most 5,000 words in a sentence"),
        ("text", b"a\rb\n", "CR alone"),
        ("conllu", b"1\ta\n", "expected 10 columns, got 2"),
        ("conllu", b"# c\n" * 50_000, "expected at most 15,000 lines"),
        ("bio", b"\tO\n", ":1: expected a word in the first column"),
        ("jsonl", b"{", "expected a JSON object, got invalid JSON"),
        ("jsonl", b"[1]", "expected a JSON object, got list"),
        ("jsonl", b"[" * 100_000, "expected a JSON object, got invalid JSON"),
        ("jsonl", b'{"words": [1]}', '"words" as a list of strings'),
        ("jsonl", b'{"words": ["a"], "spaces": [true, false]}', "expected 1 spaces"),
    ],
)
def test_bad_input(model, form, data, message, monkeypatch, capsys):
    form = "words" if form == "text" and data.startswith(b"a ") else form
    shown = error(monkeypatch, capsys, data, "predict", str(model), "--cell", NER, "--from", form)
    assert message in shown
    assert shown.startswith("error: ")
    assert shown.count("\n") == 1


def test_bad_names(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    shown = error(monkeypatch, capsys, b"", "predict", str(model), "--cell", f"nre/{LANGUAGE}")
    assert f"unknown cell 'nre/{LANGUAGE}'; did you mean '{NER}'? known: " in shown
    shown = error(monkeypatch, capsys, b"", "predict", str(model))
    assert "expected a cell to tag in" in shown
    assert "the model has tasks chunk, deprel, ner, pos in languages " in shown
    assert "is this a model folder?" in error(monkeypatch, capsys, b"", "predict", str(tmp_path), "--cell", NER)
    shown = error(monkeypatch, capsys, b"", "predict", str(tmp_path / "none"), "--cell", NER)
    assert f"there is no folder {tmp_path / 'none'}; check the path" in shown
    assert "none.txt: No such file or directory; check the path" in error(
        monkeypatch, capsys, b"", "predict", str(model), str(tmp_path / "none.txt"), "--cell", NER
    )
    assert "tag its files with crossfill predict-files" in error(
        monkeypatch, capsys, b"", "predict", str(model), str(tmp_path), "--cell", NER
    )
    assert "alpha between 0 and 1" in error(
        monkeypatch, capsys, b"a b\n", "predict", str(model), "--cell", NER, "--alpha", "2"
    )


def test_empty_input_has_a_defined_result(model: Path, tmp_path: Path):
    empty = tmp_path / "empty.conllu"
    empty.write_text("")
    assert predict(model, "", str(empty), "--cell", NER) == ""
    assert predict(model, "\n", "--cell", NER, "--from", "words", "--format", "jsonl").count('"words": []') == 1


SCRIPTS = "สวัสดีครับ ผมชื่อสมชาย\nالقاهرةُ عاصمة مصر.  👩‍👩‍👧‍👦 ok 👍🏽!\n"


def test_offsets_are_places_in_the_text(model: Path):
    line = json.dumps({"id": 5, "text": SCRIPTS}) + "\n"
    found = [json.loads(line) for line in predict(model, line, "--from", "jsonl", "--cell", NER).splitlines()]
    assert len(found) > 1  # cut into sentences, like any text
    assert {object_["id"] for object_ in found} == {5}
    assert [object_["sentence"] for object_ in found] == list(range(len(found)))
    for object_ in found:
        own = object_["text"]
        assert own == SCRIPTS[object_["start"] : object_["start"] + len(own)]
        assert [own[start:end] for start, end in object_["offsets"]] == object_["words"]
        for span in object_["tags"][NER]["spans"]:
            assert own[span["start_char"] : span["end_char"]] == span["text"]
    assert "".join(word for object_ in found for word in object_["words"]) == "".join(SCRIPTS.split())


def test_the_ending_of_the_file_to_write_names_its_format(model: Path, tmp_path: Path):
    for ending in ("jsonl", "conllu", "bio"):
        predict(model, b"Dakar mooy.", "--cell", NER, "--out", str(tmp_path / f"x.{ending}"))
        expected = predict(model, b"Dakar mooy.", "--cell", NER, "--format", ending)
        assert (tmp_path / f"x.{ending}").read_text() == expected
    refused = RUN.invoke(app, ["predict", str(model), "--cell", NER, "--out", str(tmp_path / "x.csv")], input="Dakar.")
    assert "x.csv: expected a file that ends in .txt, .conllu" in str(refused.exception)


def test_text_keeps_its_spacing(model: Path, tmp_path: Path):
    text = "  Dakar   mooy\tpéeyu.  Helsinki on.\r\n\r\nمصر  👍🏽\n x"
    for cell, inserted in ((POS, r"/[A-Z]+[⁰¹²³⁴-⁹]+"), (NER, r"[⁰¹²³⁴-⁹]+|\[[A-Z]+ [\d.]+ |\([A-Z]+\? [\d.]+ |[])]")):
        out = tmp_path / f"{cell.replace('/', '-')}.txt"
        predict(model, text.encode(), "--cell", cell, "--out", str(out))
        assert re.sub(inserted, "", out.read_bytes().decode()) == text


def test_doubtful_spans_are_shown_as_guesses():
    labels, words = ("O", "B-PER", "I-PER"), ("Awa", "Ndiaye", "wax")
    sure, zero = np.array([0.9, 0.6, 0.3]), np.zeros(3)
    for confidence, expected in ((0.5, "[PER 0.50 Awa Ndiaye] wax³⁰"), (0.49, "(PER? 0.49 Awa Ndiaye) wax³⁰")):
        span = Span(0, 2, "PER", "Awa Ndiaye", confidence, 0, 10)
        tagged = ("B-PER", "I-PER", "O")
        tagging = Tagging(
            CELL, Sentence(words), tagged, np.full((3, 3), 1 / 3), Task("ner", labels), sure, zero, zero, (span,)
        )
        assert "".join(text for text, _ in pieces(tagging)) == expected


def test_conllu_has_identifiers_and_no_relation_without_a_head(model: Path):
    deprel = f"deprel/{LANGUAGE}"
    made = predict(model, "Dakar mooy. Helsinki on.\n", "--cell", deprel, "--format", "conllu")
    trees = conllu.parse(made)
    assert [tree.metadata["sent_id"] for tree in trees] == ["1", "2"]
    assert {word["deprel"] for tree in trees for word in tree} == {"_"}
    assert all(word["misc"]["DEPREL"] for tree in trees for word in tree)
    named = "# newdoc\n# sent_id = s-7\n1\tDakar\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    kept = predict(model, named, "--from", "conllu", "--cell", deprel)
    assert kept.startswith("# newdoc\n# sent_id = s-7\n# text = Dakar\n")
    assert conllu.parse(kept)[0][0]["deprel"] != "_"


def test_words_with_tabs_and_line_ends_stay_in_their_line(model: Path):
    line = json.dumps({"words": ["New\tYork\r\nCity", "a\u2028b", "\n", "c"]}) + "\n"
    made = predict(model, line, "--from", "jsonl", "--format", "conllu", "--cell", POS)
    assert [word["form"] for word in conllu.parse(made)[0]] == ["New York City", "a b", "_", "c"]
    columns = predict(model, line, "--from", "jsonl", "--format", "bio", "--cell", POS)
    rows = columns.splitlines()[1:5]
    assert [row.split("\t")[0] for row in rows] == ["New York City", "a b", " ", "c"]
    assert {row.count("\t") for row in rows} == {4}


@pytest.mark.parametrize("form", ["text", "conllu", "bio", "jsonl"])
def test_no_control_character_of_the_input_reaches_a_terminal(model: Path, form: str, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("a\x1b]52;c;eA\x07b \x9b2J\n".encode())))
    monkeypatch.setattr(sys, "argv", ["crossfill", "predict", str(model), "--cell", POS, "--format", form])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", terminal.getvalue())
    assert "␛" in terminal.getvalue() or "\\u001b" in terminal.getvalue()


def test_a_line_of_combining_marks_does_not_hang(model: Path):
    started = time.process_time()
    predict(model, "a" + "\u0301\u0323" * 200_000 + "\n", "--cell", POS, "--samples", "0")
    assert time.process_time() - started < 30
