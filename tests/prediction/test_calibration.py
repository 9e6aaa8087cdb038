"""Temperature against a grid search, and conformal sets against their definition and by simulation."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossfill.checkpoint import CALIBRATION
from crossfill.errors import CheckpointError, DataError
from crossfill.grid.task import Task
from crossfill.model import CellDecision
from crossfill.prediction.calibration import (
    LEVELS,
    Calibration,
    TaskCalibration,
    fit_temperature,
    load_calibration,
    rule_for,
    save_calibration,
    tempered,
)
from crossfill.prediction.rules import Rule, Sample

TASK = Task("pos", ("A", "B", "C", "D", "E"))


def words(n: int, temperature: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Distributions, and labels drawn from them made flatter or sharper."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(5, 0.4), size=n)
    truth = tempered(p, temperature)
    return p, np.array([rng.choice(5, p=row) for row in truth])


@pytest.mark.parametrize("temperature", [0.7, 1.0, 2.5])
def test_temperature_is_the_best_of_a_grid_and_the_truth(temperature: float):
    p, gold = words(4000, temperature, seed=1)
    found = fit_temperature(p, gold)

    def nll(value: float) -> float:
        return -np.log(tempered(p, value)[np.arange(len(gold)), gold]).mean()

    assert nll(found) <= min(nll(value) for value in np.geomspace(0.2, 5, 400)) + 1e-7
    assert found == pytest.approx(temperature, rel=0.1)


def test_thresholds_are_order_statistics():
    p, gold = words(57, 1.0, seed=2)
    calibration = TaskCalibration.of([Sample(p, gold, np.array([50, 7]))], TASK)
    scores = np.sort(1 - p[np.arange(57), gold])
    for alpha in (0.05, 0.1, 0.25, 0.5):
        expected = scores[int(np.ceil(58 * (1 - alpha) - 1e-9)) - 1]
        kept = calibration.sets(p, alpha)
        np.testing.assert_array_equal(kept, (1 - p <= expected + 1e-7) | (p == p.max(1, keepdims=True)))
    assert calibration.sets(p, 0.001).all()  # 57 words cannot vouch for 99.9 %
    assert calibration.doubtful(p, 0.2).mean() == pytest.approx(0.2, abs=0.02)
    assert not calibration.doubtful(p, 0.0).any()


def test_coverage_holds_on_average_over_calibration_sets():
    covered, doubted = [], []
    for seed in range(60):
        p, gold = words(80, 2.0, seed=seed)
        new, new_gold = words(400, 2.0, seed=1000 + seed)
        calibration = TaskCalibration.of([Sample(p, gold, np.array([80]))], TASK)
        covered.append(calibration.sets(new, 0.1)[np.arange(400), new_gold].mean())
        doubted.append(calibration.doubtful(new, 0.3).mean())
    assert 0.895 <= np.mean(covered) <= 0.93
    assert np.mean(doubted) == pytest.approx(0.3, abs=0.03)


def test_a_cell_counts_the_same_whatever_its_size():
    """Against the definition: the mean over cells of the share of words up to the threshold, one more word included."""
    cells = []
    for seed, n in ((0, 30), (1, 300), (2, 77)):
        p, gold = words(n, 0.5 + seed, seed=seed)
        cells.append(Sample(p, gold, np.array([n])))
    calibration = TaskCalibration.of(cells, TASK)
    assert (calibration.n_cells, calibration.n_words, calibration.n_sentences) == (3, 407, 3)

    def reached(threshold: float) -> float:
        shares = [((1 - s.probabilities[np.arange(len(s.gold)), s.gold]) <= threshold).sum() for s in cells]
        return float(np.mean([share / (len(s.gold) + 1) for share, s in zip(shares, cells, strict=True)]))

    for level in (100, 500, 900):
        threshold = calibration.scores[level]
        assert reached(threshold) >= level / LEVELS > reached(threshold - 2e-7)
    temperatures = [fit_temperature(s.probabilities, s.gold) for s in cells]
    assert min(temperatures) < calibration.temperature < max(temperatures)


def test_coverage_of_cells_that_are_yet_to_come():
    """Cells differ in how wrongly sure the model is; a new one is covered as promised, on average over cells."""
    rng = np.random.default_rng(0)
    covered = []
    for seed in range(40):
        made = [words(60, float(rng.uniform(1, 4)), seed=100 * seed + j) for j in range(16)]
        calibration = TaskCalibration.of([Sample(p, gold, np.array([60])) for p, gold in made[1:]], TASK)
        p, gold = made[0]
        covered.append(calibration.sets(p, 0.1)[np.arange(60), gold].mean())
    assert 0.9 - 1 / 16 <= np.mean(covered) <= 0.94


def test_rules_come_from_the_calibration_only_where_the_metric_decides():
    p, gold = words(20, 1.0, seed=3)
    task = replace(TaskCalibration.of([Sample(p, gold, np.array([20]))], TASK), offsets={"f1": -0.5, "recall": -1.0})
    task = replace(task, pairs=((0.1, 0.2), (0.1, 0.1), (0.2, 0.3)))
    counts = ((1.0, 0.0), (0.0, 2.0), (0.0, 1.0))
    assert rule_for(task, "metric") == Rule(-0.5, pairs=task.pairs)
    assert rule_for(task, "metric", "recall", CellDecision(0.2, counts)) == Rule(-0.8, pairs=task.pairs, counts=counts)
    assert rule_for(task, "metric", "precision") == Rule(pairs=task.pairs)
    assert rule_for(None, "metric") == rule_for(task, "valid") == Rule()
    assert rule_for(task, "argmax", "recall") == Rule(valid=False)


def test_saved_and_loaded(tmp_path: Path):
    p, gold = words(200, 1.0, seed=3)
    task = TaskCalibration.of(
        [Sample(p[:90], gold[:90], np.array([90])), Sample(p[90:], gold[90:], np.array([110]))], TASK
    )
    task = replace(task, offsets={"f1": -0.5, "recall": -1.0})
    calibration = Calibration({"pos": task}, {"pos": replace(task, temperature=1.5)})
    assert load_calibration(tmp_path) is None
    save_calibration(tmp_path, calibration)
    assert load_calibration(tmp_path) == calibration
    assert calibration.of("pos", 0) == task
    assert calibration.of("ner", 0) is None
    whole = json.loads((tmp_path / CALIBRATION).read_text())
    for key, value in (
        ("temperature", 0),
        ("temperature", "x"),
        ("scores", [0.5]),
        ("offsets", {"f1": 99}),
        ("scores", [2.0] * (LEVELS + 1)),
    ):
        broken = {**whole, "averaged": {"pos": {**whole["averaged"]["pos"], key: value}}}
        (tmp_path / CALIBRATION).write_text(json.dumps(broken))
        with pytest.raises(CheckpointError, match=r"expected JSON|expected the calibration of a model"):
            load_calibration(tmp_path)
    for text in ("[", "[]", "{}", "[" * 100_000):
        (tmp_path / CALIBRATION).write_text(text)
        with pytest.raises(CheckpointError, match=r"expected JSON|expected the calibration of a model"):
            load_calibration(tmp_path)
    for wrong in (0.0, 1.0, -1.0):
        with pytest.raises(DataError, match="alpha"):
            task.sets(p, wrong)
