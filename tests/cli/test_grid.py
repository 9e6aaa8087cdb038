"""`crossfill grid`: what a person sees, what a machine reads, and how it fails."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crossfill.cli.app import app, main
from tests.data.folders import bio, conllu, numbered, write

RUN = CliRunner()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(
        tmp_path / "data",
        {
            "ud/wo/train.conllu": conllu(*numbered(1200, "NOUN")),
            "ud/wo/test.conllu": conllu(*numbered(3, "ADJ", start=2000)),
            "ud/amh/test.conllu": conllu(*numbered(7, "NOUN")),
            "ner/wol/train.bio": bio(*numbered(40, "S-PER", start=5000)),
            "ner/wol/test.bio": bio(*numbered(4, "B-PER", start=5038)),
        },
    )


def shown(data: Path, *options: str, width: int = 100) -> str:
    result = RUN.invoke(app, ["grid", str(data), *options], env={"COLUMNS": str(width)})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_person_sees_sizes_empty_cells_labels_and_problems(data: Path):
    output = shown(data)
    lines = {line.split()[0]: line for line in output.splitlines() if line.split()}
    assert "2 languages × 2 tasks, 3 of 4 cells have data" in output
    assert lines["wol"].split() == ["wol", "Wolof", "▪", "38", "·", "4", "■", "1,200", "·", "3"]
    assert lines["amh"].split() == ["amh", "Amharic", "□", "◇", "·", "·", "7"]
    assert lines["all"].split() == ["all", "38", "·", "4", "1,200", "·", "10"]
    assert lines["pos"].split()[1] == "3"
    assert "pos/wol  ADJ only in test (3 words)" in output
    assert "ner/wol  sentences left out as dev or test text of ner: 2 training" in output
    assert "tags rewritten as IOB2" in output


def test_tasks_that_no_language_bridges_are_named_with_what_follows(data: Path, tmp_path: Path):
    assert "Only wol has both ner and pos: from so little the model" in " ".join(shown(data).split())
    assert json.loads(shown(data, "--json"))["bridges"] == {"ner pos": ["wol"]}
    apart = write(
        tmp_path / "apart",
        {"ud/amh/train.conllu": conllu(*numbered(7, "NOUN")), "ner/wol/train.bio": bio(*numbered(40, "B-PER"))},
    )
    assert "No language has both ner and pos: from so little the model" in " ".join(shown(apart).split())
    (note,) = json.loads(shown(apart, "--json"))["notes"]
    assert note.startswith("no language has both ner and pos")
    assert "both" not in shown(data, "--task", "pos")


def test_no_width_breaks_the_matrix(data: Path):
    for width in (50, 60, 80, 200):
        output = shown(data, "--task", "pos", "--task", "ner", "--task", "deprel", "--task", "xpos", width=width)
        assert all(len(line.rstrip()) <= width for line in output.splitlines()[1:])
        assert "…" not in output.split("training sentences")[0].partition("cells have data")[2]
        assert output.count("1,20") == 3 * 2  # each of three tasks once in its row and once in its sum


def test_a_machine_reads_all_of_it(data: Path):
    found = json.loads(shown(data, "--json"))
    assert found["cells"]["pos/wol"] == [
        {
            "corpus": "ud",
            "sentences": {"train": 1200, "dev": 0, "test": 3, "surplus": 0},
            "words": {"train": 2400, "dev": 0, "test": 6, "surplus": 0},
            "left_out": 0,
        }
    ]
    assert found["cells"]["ner/wol"][0]["left_out"] == 2
    assert found["empty"] == ["ner/amh"]
    assert found["languages"] == {"amh": "Amharic", "wol": "Wolof"}
    assert found["tasks"]["pos"]["labels"] == {"ADJ": 3, "NOUN": 1207, "VERB": 1210}
    assert {"level": "warning", "where": "pos/wol", "message": "ADJ only in test (3 words)"} in found["problems"]


def test_files_that_cannot_be_read_are_listed(data: Path):
    write(data, {"ner/yor/train.bio": "Ibadan\n", "ud/yor/train.conllu": "Ibadan\n"})
    result = RUN.invoke(app, ["grid", str(data)], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert "left out (2)" in result.output
    assert "ner/yor ner/yor/train.bio:1: expected a word and a tag" in result.output
    assert "pos/yor ud/yor/train.conllu:1: expected 10 columns" in result.output
    assert "1,200" in result.output


def test_parsed_corpora_are_cached(data: Path, tmp_path: Path):
    shown(data)
    assert len(list((tmp_path / "cache" / "corpora").iterdir())) == 5


def test_bad_input_is_one_message_and_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for arguments, message in (
        (["grid", str(tmp_path / "missing")], "expected a folder of corpora"),
        (["data", "fetch", "udd"], "unknown corpus 'udd'; did you mean 'ud'?"),
        (["data", "fetch", "ud", "wikiann", "--url", "http://x"], "expected one corpus with --url"),
        (["data", "fetch", "ud", "--language", "zz"], "expected a language code"),
        (["data", "fetch", "ud", "--url", "http://127.0.0.1:1/x.tgz", "--out", str(tmp_path)], "are you online?"),
    ):
        monkeypatch.setattr(sys, "argv", ["crossfill", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith("error: ")
        assert message in error
