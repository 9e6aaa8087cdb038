"""`crossfill check`: wrong labels with their file and line, as a table, as JSON lines, and in the Teach page."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import crossfill
from crossfill.cli.app import app
from crossfill.data.synthetic import SyntheticConfig, synthetic_grid
from tests.data.folders import bio, conllu, write


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two corpora, each with one wrong label: in `pos/wol` on line 41, in `ner/fin` somewhere."""
    folder = tmp_path_factory.mktemp("check") / "data"
    grid = synthetic_grid(SyntheticConfig(train_sentences=80), seed=0).grid
    files = {}
    for task, code, render, suffix in (("pos", "wol", conllu, "conllu"), ("ner", "fin", bio, "bio")):
        cell = next(cell for cell in grid.cells if cell.task == task)
        tagged = [list(zip(s.words, s.labels, strict=True)) for s in grid.training(cell)]
        files[f"{task}/{code}/train.{suffix}"] = render(*tagged)
    write(folder, files)
    path = folder / "pos/wol/train.conllu"
    lines = path.read_text(encoding="utf-8").split("\n")
    number = next(n for n, line in enumerate(lines) if n > 40 and line.split("\t")[3:4] == ["NOUN"])
    lines[number] = lines[number].replace("NOUN", "PUNCT")
    path.write_text("\n".join(lines), encoding="utf-8")
    (folder / "wrong").write_text(f"{path}:{number + 1}")
    return folder


def run(*given: object) -> str:
    result = CliRunner().invoke(app, [str(part) for part in given])
    if isinstance(result.exception, crossfill.CrossfillError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_lines_name_the_line_of_a_wrong_label_and_each_corpus(data):
    rows = [json.loads(line) for line in run("check", data, "--json", "--most", 5).splitlines()]
    labels = [row for row in rows if row["kind"] == "label"]
    assert labels[0]["where"] == (data / "wrong").read_text()
    assert (labels[0]["given"], labels[0]["expected"]) == ("PUNCT", "NOUN")
    file, _, line = labels[0]["where"].rpartition(":")
    assert (
        Path(file).read_text(encoding="utf-8").split("\n")[int(line) - 1].split("\t")[1]
        == labels[0]["sentence"].split()[labels[0]["word"]]
    )
    assert labels == sorted(labels, key=lambda row: -row["surprise"])
    assert [row["name"] for row in rows if row["kind"] == "corpus"] == ["ner/fin", "pos/wol"]


def test_the_table_has_the_place_the_labels_and_the_share(data):
    printed = run("check", data, "--task", "pos")
    place = (data / "wrong").read_text().removeprefix(f"{data}/")
    assert printed.splitlines()[3].split()[:3] == [place, "PUNCT", "NOUN"]
    assert "Estimated share of wrong labels" in printed
    assert "ner/fin" not in printed


def test_sentences_wait_in_the_teach_page_worst_first(data, tmp_path):
    errors = [json.loads(line) for line in run("check", data, "--json", "--teach", tmp_path / "teach").splitlines()]
    worst = [row["sentence"] for row in errors if row["kind"] == "label" and row["cell"] == "pos/wol"]
    waiting = [json.loads(line) for line in (tmp_path / "teach/pos-wol.waiting.jsonl").read_text().splitlines()]
    assert [" ".join(row["words"]) for row in waiting] == list(dict.fromkeys(worst))
    assert "PUNCT" in waiting[0]["labels"]


def test_tag_sets_that_differ_are_shown_with_the_lines_that_map_them(data, tmp_path):
    text = (data / "ner/fin/train.bio").read_text(encoding="utf-8")
    write(tmp_path, {"ner/fin/train.bio": text, "ner/wol/train.bio": text.replace("-PER", "-PERSON")})
    rows = [json.loads(line) for line in run("check", tmp_path, "--json").splitlines()]
    (message,) = [row for row in rows if row["kind"] == "tag set"]
    assert message["where"] == "ner/wol"
    assert message["text"].endswith("PERSON<TAB>PER")
    assert "PERSON<TAB>PER" in run("grid", tmp_path).replace("\n", "")


def test_bad_input_has_its_place(data, tmp_path):
    with pytest.raises(crossfill.CrossfillError, match="expected a folder of corpora"):
        run("check", tmp_path / "nowhere")
    with pytest.raises(crossfill.CrossfillError, match="stays frozen"):
        run("check", data, "--encoder", "compact")
    write(tmp_path, {"pos/wol/train.conllu": "1\tone\n"})
    with pytest.raises(crossfill.CrossfillError, match=r"train\.conllu:1: expected 10 columns"):
        run("check", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(crossfill.CrossfillError, match="expected a folder to write to"):
        run("check", data, "--teach", tmp_path / "file")
