"""One tagger in many threads: every answer is what one thread alone gets."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

import crossfill
from crossfill.grid.cells import Cell
from tests.encoders.tiny import bert
from tests.own_cache import own_cache as own_cache
from tests.scenarios import SMALL, small_grid

MADE, _ = small_grid()
GRID = MADE.grid
TEXTS = [sentence.words for cell in GRID.cells[:4] for sentence in GRID[cell][0].test]
FEW = SMALL.change({"training.steps": 2})
N_THREADS = 8


def hammered(tagger: crossfill.Tagger, cells: list[Cell], rounds: int) -> int:
    """Answers of eight threads that differ from those of one; each thread asks for other cells in another order."""
    asked = [(text, cell) for text in TEXTS for cell in cells] * rounds
    expected = {pair: tagger.tag(*pair) for pair in set(asked)}

    def work(thread: int) -> int:
        order = np.random.default_rng(thread).permutation(len(asked))
        return sum(
            not np.array_equal(tagger.tag(*asked[i]).probabilities, expected[asked[i]].probabilities) for i in order
        )

    with ThreadPoolExecutor(N_THREADS) as pool:
        return sum(pool.map(work, range(N_THREADS)))


def test_threads_do_not_disturb_each_other():
    tagger = crossfill.train(GRID, config=FEW)
    before = torch.get_rng_state()
    assert hammered(tagger, [cell for cell in GRID.cells if cell.language == GRID.languages[0]], rounds=1) == 0
    assert torch.equal(torch.get_rng_state(), before)  # tagging leaves the caller's random numbers alone


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_thousand_taggings_in_each_of_eight_threads():
    tagger = crossfill.train(GRID, config=FEW)
    cells = list(GRID.cells[:: len(GRID.cells) // 6])
    assert hammered(tagger, cells, rounds=-(-1000 // (len(TEXTS) * len(cells)))) == 0


@pytest.mark.slow
def test_threads_share_a_network_that_stops_at_a_layer(tmp_path: Path):
    encoder = bert(tmp_path / "bert")
    settings = {"mode": "frozen", "layer": 1, "max_pieces": 60, "overlap": 20}
    config = FEW.change({f"encoder.pretrained.{name}": value for name, value in settings.items()})
    tagger = crossfill.train(GRID, encoder=str(encoder), config=config, cache=False)
    tagger.model.encoder.stored.cache.folder = None
    assert hammered(tagger, list(GRID.cells[:1]), rounds=1) == 0
