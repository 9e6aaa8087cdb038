"""What commands that use a data folder tell about its files."""

from pathlib import Path

import pytest

from crossfill.cli.grid import read_to_train
from crossfill.data.folder import ReadOptions
from tests.data.folders import bio, conllu, numbered, write


def test_training_repeats_warnings_and_names_what_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "200")
    wide = "".join(f"erwa{i}\tX\tB-PER\nmoku\tX\tO\n\n" for i in range(5))
    data = write(
        tmp_path / "data",
        {
            "ud/wol/train.conllu": conllu(*numbered(4, "NOUN")) + "bad\n",
            "ner/wol/train.tsv": wide,
            "ner/wol/train.xlsx": b"PK",
            "ner/yor/train.bio": bio(*numbered(4, "S-PER")),
            "notes.docx": "?",
        },
    )
    grid = read_to_train(data, ReadOptions())
    assert list(map(str, grid.cells)) == ["ner/wol", "ner/yor", "pos/wol"]
    told = capsys.readouterr().err
    assert "warnings (2)" in told
    assert "sentence left out: expected 10 columns, got 1" in told
    assert "no corpus by its ending .xlsx" in told
    assert "ner/wol/train.tsv: word in column 1, tag in column 3 of 3; first sentence: " in told
    assert "erwa0/B-PER moku/O" in told
    assert "notes.docx: no corpus by its ending" in told
    assert "rewritten" not in told  # a note, which `crossfill grid` has
    read_to_train(data, ReadOptions(), silent=True)
    assert not capsys.readouterr().err
