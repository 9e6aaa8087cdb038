"""The cell sampler: its probabilities, its passes over a cell, and its state."""

from collections import Counter

import numpy as np
import pytest

from crossfill.config import TrainingConfig
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.training.elbo import CellSampler, CellSize

SIZES = {
    Cell("ner", "aaa"): CellSize(3, 30),
    Cell("pos", "aaa"): CellSize(5, 60),
    Cell("pos", "bbb"): CellSize(10, 10),
}


def sampler(scheme="uniform", batch=2, cells=1, seed=0, one_task=False) -> CellSampler:
    step_tasks = "one" if one_task else "mixed"
    config = TrainingConfig(batch_sentences=batch, cells_per_step=cells, seed=seed, step_tasks=step_tasks)
    return CellSampler(SIZES, config, scheme)


@pytest.mark.parametrize(("scheme", "expected"), [("uniform", [1 / 3] * 3), ("proportional", [0.3, 0.6, 0.1])])
def test_cells_are_drawn_by_the_scheme(scheme, expected):
    made = sampler(scheme, cells=4)
    found = Counter(draw.cell for step in range(1500) for draw in made.draw(step))
    for cell, probability in zip(sorted(SIZES), expected, strict=True):
        error = (probability * (1 - probability) / 6000) ** 0.5
        assert abs(found[cell] / 6000 - probability) < 5 * error


@pytest.mark.parametrize(("scheme", "expected"), [("uniform", [1 / 3] * 3), ("proportional", [0.3, 0.6, 0.1])])
def test_one_task_a_step_leaves_the_shares_of_cells_as_they_are(scheme, expected):
    made = sampler(scheme, cells=2, one_task=True)
    steps = [made.draw(step) for step in range(6000)]
    assert all(len({draw.cell.task for draw in draws}) == 1 for draws in steps)
    assert any(len({draw.cell for draw in draws}) == 2 for draws in steps)
    found = Counter(draw.cell for draws in steps for draw in draws)
    for cell, probability in zip(sorted(SIZES), expected, strict=True):
        error = (probability * (1 - probability) / 6000) ** 0.5  # at worst both draws of a step are the same
        assert abs(found[cell] / 12000 - probability) < 5 * error


def test_probabilities_of_rows_are_sums_over_their_cells():
    made = sampler("proportional")
    assert made.probability("task", Cell("pos", "bbb")) == pytest.approx(0.7)
    assert made.probability("language", Cell("pos", "aaa")) == pytest.approx(0.9)
    assert made.probability("cell", Cell("pos", "aaa")) == pytest.approx(0.6)
    assert made.probability("all", Cell("pos", "aaa")) == pytest.approx(1.0)


def test_every_pass_over_a_cell_takes_each_sentence_once():
    made = sampler(batch=2)
    taken = {cell: [] for cell in SIZES}
    for step in range(400):
        for draw in made.draw(step):
            taken[draw.cell].extend(draw.sentences.tolist())
    for cell, sentences in taken.items():
        n = SIZES[cell].sentences
        passes = [sentences[i : i + n] for i in range(0, len(sentences) - n + 1, n)]
        assert len(passes) > 10
        assert all(sorted(one) == list(range(n)) for one in passes)
        assert any(one != passes[0] for one in passes)


def test_state_is_what_was_drawn():
    whole, first = sampler(cells=3), sampler(cells=3)
    draws = [whole.draw(step) for step in range(40)]
    for step in range(25):
        first.draw(step)
    second = sampler(cells=3)
    second.drawn[:] = first.drawn
    for step in range(25, 40):
        for ours, theirs in zip(second.draw(step), draws[step], strict=True):
            assert ours.cell == theirs.cell
            np.testing.assert_array_equal(ours.sentences, theirs.sentences)


def test_counts():
    assert sampler().n_words == 100
    assert sampler(batch=4).n_batches == 1 + 2 + 3


def test_empty_cells_are_refused_by_name():
    with pytest.raises(DataError, match="none in ner/ccc"):
        CellSampler({**SIZES, Cell("ner", "ccc"): CellSize(0, 0)}, TrainingConfig(), "uniform")
    with pytest.raises(DataError, match="no seen cell"):
        CellSampler({}, TrainingConfig(), "uniform")
