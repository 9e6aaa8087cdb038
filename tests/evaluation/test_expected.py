"""Expected scores: the line of least squares, and intervals that cover as often as they say, in simulation."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from crossfill.errors import CheckpointError
from crossfill.evaluation.expected import (
    FEWEST_CELLS,
    Expectations,
    HeldOutScore,
    expect_score,
    expect_scores,
    load_expected,
    save_expected,
)
from crossfill.grid.cells import Cell


def test_a_line_is_that_of_least_squares_with_its_prediction_interval():
    random = np.random.default_rng(0)
    doubts = random.uniform(0.1, 0.5, 12)
    scores = 0.9 - 0.8 * doubts + random.normal(0, 0.02, 12)
    line = stats.linregress(doubts, scores)
    score, low, high = expect_score(doubts, scores, 0.2, level=0.8)
    assert score == pytest.approx(line.intercept + line.slope * 0.2)
    residuals = scores - line.intercept - line.slope * doubts
    spread = np.sqrt((residuals**2).sum() / 10)
    squares = ((doubts - doubts.mean()) ** 2).sum()
    width = stats.t.ppf(0.9, 10) * spread * np.sqrt(1 + 1 / 12 + (0.2 - doubts.mean()) ** 2 / squares)
    assert (low, high) == pytest.approx((score - width, score + width))


def test_doubt_that_says_nothing_is_left_out():
    scores = np.array([0.4, 0.5, 0.6, 0.5, 0.45, 0.55, 0.5])
    doubts = np.array([0.1, 0.1, 0.1, 0.3, 0.3, 0.3, 0.2])
    score, low, high = expect_score(doubts, scores, 0.9)
    assert score == pytest.approx(scores.mean())
    width = stats.t.ppf(0.9, 6) * scores.std(ddof=1) * np.sqrt(1 + 1 / 7)
    assert (low, high) == pytest.approx((score - width, score + width))


@pytest.mark.parametrize("n", [4, 8, 15, 30])
@pytest.mark.parametrize("slope", [0.0, -0.3, -1.5])
def test_intervals_cover_new_cells_as_often_as_they_say(n: int, slope: float):
    """Cells drawn from the model of the docstring: the choice between line and constant costs little coverage."""
    random = np.random.default_rng(1)
    inside = []
    for _ in range(1500):
        doubts = random.normal(0.3, 0.08, n + 1)
        scores = 0.5 + slope * (doubts - 0.3) + random.normal(0, 0.05, n + 1)
        _, low, high = expect_score(doubts[:n], scores[:n], float(doubts[n]))
        inside.append(low <= scores[n] <= high)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.055)


def test_scores_stay_scores():
    known = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), np.array([0.99, 0.8, 0.61, 0.4, 0.2, 0.01])
    assert expect_score(*known, 0.9) == (0.0, 0.0, pytest.approx(0.0, abs=0.05))
    assert expect_score(*known, 0.0)[2] == 1.0


def test_tasks_are_kept_apart_and_too_few_cells_say_nothing(tmp_path: Path):
    held_out = [HeldOutScore(Cell("pos", f"a{i}"), 0.8, 0.1) for i in range(FEWEST_CELLS)]
    held_out += [HeldOutScore(Cell("ner", f"a{i}"), 0.3, 0.1) for i in range(FEWEST_CELLS - 1)]
    doubts = {Cell("pos", "new"): 0.1, Cell("ner", "new"): 0.1}
    made = expect_scores(held_out, doubts)
    assert [(one.cell, one.score) for one in made] == [(Cell("pos", "new"), pytest.approx(0.8))]
    found = Expectations(tuple(held_out), tuple(made), tried={"jm": {"pos": 0.8}})
    save_expected(tmp_path, found)
    assert load_expected(tmp_path) == found
    assert found.of(Cell("ner", "new")) is None
    assert load_expected(tmp_path / "none") is None
    (tmp_path / "expected.json").write_text("[]")
    with pytest.raises(CheckpointError, match="delete it"):
        load_expected(tmp_path)
