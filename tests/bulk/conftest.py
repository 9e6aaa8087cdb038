"""A small model that all tests here tag with, and a cache of each test's own."""

from pathlib import Path

import pytest

import crossfill
from tests.own_cache import own_cache as own_cache
from tests.scenarios import SMALL, small_grid

GRID = small_grid()[0].grid
LANGUAGE = GRID.languages[0]
CELL = f"pos/{LANGUAGE}"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bulk") / "model"
    crossfill.train(GRID, "pf-lr", "compact", out, SMALL)
    return out
