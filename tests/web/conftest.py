"""A small trained model of four real languages, the app over it, and a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from starlette.testclient import TestClient

import crossfill
from crossfill.grid.cells import Cell, Grid
from crossfill.tagger.tagger import Tagger
from crossfill.web.app import build_app
from crossfill.web.serve_settings import ServeSettings
from tests.scenarios import SMALL, small_grid
from tests.web.browsing import CHROMIUM, OPTIONS

CODES = ("ara", "fin", "tha", "wol")


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, partition = small_grid()
    names = dict(zip(made.grid.languages, CODES, strict=True))
    grid = Grid({Cell(cell.task, names[cell.language]): corpora for cell, corpora in made.grid.corpora.items()})
    unseen = [Cell(cell.task, names[cell.language]) for cell in partition.unseen]
    out = tmp_path_factory.mktemp("served") / "tiny"
    tagger = crossfill.train(grid, out=out, config=SMALL.change({"training.steps": 12}), hold_out=unseen)
    measured = Grid({cell: corpora for cell, corpora in grid.corpora.items() if cell != Cell("ner", "wol")})
    tagger.evaluate(measured)
    tagger.save(out)
    return out


@pytest.fixture(scope="session")
def tagger(model: Path) -> Tagger:
    return crossfill.load(model)


@pytest.fixture
def client(tagger: Tagger) -> Iterator[TestClient]:
    settings = ServeSettings(max_characters=300, max_words=40, max_samples=50, timeout=20)
    app = build_app(tagger, settings, "tiny", {"wol": ["Dakar mooy péeyu Senegaal ."]})
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield found
        found.close()
