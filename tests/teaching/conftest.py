"""A small tagger, and sentences of an unseen cell with their right labels."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import crossfill
from crossfill.config import Config
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus
from crossfill.tagger.tagger import Tagger, load
from crossfill.teaching.service import Teacher
from tests.scenarios import SMALL, small_grid


def unseen(task: str) -> tuple[Cell, Corpus]:
    """An unseen cell of a task, and sentences of it."""
    made, partition = small_grid()
    cell = next(cell for cell in sorted(partition.unseen) if cell.task == task)
    splits = made.grid[cell][0]
    return cell, Corpus.joined([splits.train, splits.dev, splits.test])


@pytest.fixture(scope="session")
def taught() -> tuple[Cell, Corpus]:
    """An unseen cell with tags, and sentences of it."""
    return unseen("pos")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, partition = small_grid()
    config: Config = SMALL.change({"training.steps": 30})
    out = tmp_path_factory.mktemp("models") / "small"
    crossfill.train(made.grid, out=out, config=config, hold_out=sorted(partition.unseen))
    return out


@pytest.fixture
def tagger(folder: Path) -> Tagger:
    return load(folder)


@pytest.fixture
def teach(folder: Path, tmp_path: Path) -> Iterator[Callable[..., Teacher]]:
    """Teachers of freshly loaded taggers, over one folder of journals."""
    begun = []

    def teach(every: int = 0) -> Teacher:
        begun.append(Teacher(load(folder), tmp_path / "taught", every, folder))
        return begun[-1]

    yield teach
    for teacher in begun:
        teacher.close()
