"""A real data folder, named by CROSSFILL_DATA: nothing is lost, and the counts are those of the files."""

import os
import re
import time
from pathlib import Path

import pytest

from crossfill.data import bio, conllu
from crossfill.data.folder import ReadOptions, load_grid, read_folder
from tests.data.folders import read_bio

NAMED = os.environ.get("CROSSFILL_DATA")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not NAMED, reason="CROSSFILL_DATA names no data folder (<task>/<language>/train.*)"),
]
DATA = Path(NAMED or ".")


def files(suffix: str) -> list[Path]:
    found = sorted(DATA.rglob(f"*{suffix}"))
    assert found, f"no {suffix} files under {DATA}"
    return found


def test_conllu_is_written_back_byte_for_byte():
    for path in files(".conllu"):
        assert conllu.render(conllu.parse(path.read_bytes(), str(path))).encode() == path.read_bytes(), path


def test_token_columns_keep_their_tokens_and_tags():
    for path in files(".bio"):
        plain = [line.split("\t") for line in path.read_text("utf-8").split("\n") if line]
        read = [pair for s in read_bio(path.read_bytes(), str(path)) for pair in zip(s.words, s.labels, strict=True)]
        assert read == [(columns[0], columns[-1]) for columns in plain], path
        assert bio.render(read_bio(path.read_bytes(), str(path))).encode() == path.read_bytes(), path


def test_counts_are_those_of_the_files(tmp_path: Path):
    grid = read_folder(DATA, ReadOptions(cache=tmp_path)).grid
    for cell in grid.cells:
        (splits,) = grid[cell]
        for split in ("train", "dev", "test", "surplus"):
            folder = DATA / ("ud" if cell.task == "pos" else cell.task) / cell.language
            found = list(folder.glob(f"{split}.*"))
            text = found[0].read_text("utf-8") if found else ""
            sentences = len(re.findall(r"[^\n]\n\n", text))
            word = r"(?m)^[0-9]+\t" if cell.task == "pos" else r"(?m)^.+$"
            assert len(getattr(splits, split)) == sentences, (cell, split)
            assert getattr(splits, split).n_words == len(re.findall(word, text)), (cell, split)


def test_opening_again_is_quick(tmp_path: Path):
    load_grid(DATA, cache=tmp_path)
    began = time.perf_counter()
    load_grid(DATA, cache=tmp_path)
    assert time.perf_counter() - began < 3  # types are checked here; without that it has to take less than 1 s
