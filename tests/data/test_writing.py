"""Grids written to a folder and read again; `crossfill data make`."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from crossfill.cli.app import app
from crossfill.data.folder import load_grid
from crossfill.data.parallel_corpus import parallel_languages
from crossfill.data.synthetic import SyntheticConfig, synthetic_grid
from crossfill.data.writers import write_grid
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Corpus, Sentence


def test_a_grid_comes_back_as_it_was(tmp_path: Path):
    made = synthetic_grid(
        SyntheticConfig(
            families=2, branches=1, languages_per_family=1, train_sentences=5, dev_sentences=2, test_sentences=2
        ),
        seed=1,
    ).grid
    write_grid(made, tmp_path / "data")
    read = load_grid(tmp_path / "data")
    assert read.cells == made.cells
    for cell in made.cells:
        for split in ("dev", "test"):  # training sentences that recur there are left out when read
            one, other = getattr(made[cell][0], split), getattr(read[cell][0], split)
            assert [(s.words, s.labels) for s in one] == [(s.words, s.labels) for s in other]
    with pytest.raises(DataError, match="expected no folder of that name, or an empty one"):
        write_grid(made, tmp_path / "data")


def test_corpora_of_one_cell_stay_apart(tmp_path: Path):
    corpora = tuple(
        Splits(name, train=Corpus.from_sentences([Sentence((name, "x"), ("A", "B"))])) for name in ("one", "two")
    )
    write_grid(Grid({Cell("tag", "wol"): corpora}), tmp_path)
    assert sorted(path.name for path in (tmp_path / "tag" / "wol").iterdir()) == ["one-train.bio", "two-train.bio"]
    assert {splits.name for splits in load_grid(tmp_path)[Cell("tag", "wol")]} == {"one", "two"}


def test_the_command(tmp_path: Path):
    out = tmp_path / "data"
    sizes = ("families=2", "languages_per_family=2", "train_sentences=4", "dev_sentences=2", "test_sentences=2")
    command = ["data", "make", "--out", str(out), *(f"--set={size}" for size in sizes)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert result.output == f"{out}: 4 tasks × 4 languages; next: crossfill grid {out}\n"
    grid = load_grid(out)
    assert len(grid.cells) == 16
    assert {len(splits.test) for cell in grid.cells for splits in grid[cell]} == {2}
    assert CliRunner().invoke(app, [*command, "--seed", "1"]).exception is not None


def test_the_command_in_real_languages(tmp_path: Path):
    out = tmp_path / "data"
    result = CliRunner().invoke(app, ["data", "make", "--real", "--task", "pos", "--out", str(out)])
    assert result.output == f"{out}: 1 tasks × 16 languages; next: crossfill grid {out}\n"
    assert {cell.language for cell in load_grid(out).cells} == set(parallel_languages())
    wrong = CliRunner().invoke(app, ["data", "make", "--real", "--task", "deprel", "--out", str(tmp_path / "other")])
    assert "--task" in str(wrong.exception)
