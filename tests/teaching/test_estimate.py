"""Estimates against heads that were adapted one by one, against simulation, and against a curve that is known."""

import math

import numpy as np
import pytest

from crossfill.adaptation.examples import Examples
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus
from crossfill.measures.metrics import score
from crossfill.prediction.calibration import Calibration, TaskCalibration, rule_for
from crossfill.prediction.rules import Rule
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.estimate import NEXT, estimate, interval, worth
from tests.teaching.conftest import unseen


@pytest.mark.parametrize(("task", "offset"), [("pos", 0.0), ("ner", -3.0)])
def test_every_sentence_is_labelled_as_by_a_tagger_adapted_to_the_others(tagger: Tagger, task: str, offset: float):
    cell, corpus = unseen(task)
    few = corpus[:6]
    of_task = {task: TaskCalibration(1, 1, 1.0, (), (), offsets={"f1": offset})}
    tagger.calibration = Calibration(of_task, of_task)
    rule = rule_for(tagger.calibration.of(task, 0), "metric")
    examples = Examples.of(tagger.model, cell, few)
    found = estimate(tagger.model, cell, examples, rule)
    assert found is not None
    assert (found == estimate(tagger.model, cell, examples, Rule())) == (task == "pos")
    assert [point.sentences for point in found.curve] == [0, 1, 2, 5]
    known = tagger.model.inventory.task(cell.task)
    gold = examples.labels.numpy()
    for point in found.curve:
        chosen = []
        for i in range(len(few)):
            others = [s for j, s in enumerate(few) if j != i][: point.sentences]
            if others:
                tagger.adapt(others, cell)
            chosen += [known.labels.index(label) for label in tagger.tag(few[i], cell, samples=0).labels]
            if others:
                tagger.forget(cell)
        lengths = np.array([len(s) for s in few])
        assert point.score.value == pytest.approx(score(gold, np.array(chosen), known, lengths))
    assert found.score == found.curve[-1].score


def test_one_sentence_is_enough_for_a_score_but_not_for_an_interval(tagger: Tagger, taught: tuple[Cell, Corpus]):
    cell, corpus = taught
    found = estimate(tagger.model, cell, Examples.of(tagger.model, cell, corpus[:1]), Rule())
    assert found is not None
    assert [point.sentences for point in found.curve] == [0]
    assert (found.score.low, found.worth) == (None, None)
    two = Examples.of(tagger.model, cell, corpus[:2])
    assert estimate(tagger.model, cell, two, Rule(), given_up=lambda: True) is None


@pytest.mark.parametrize(("n", "right"), [(5, 0.8), (10, 0.6), (10, 0.95), (40, 0.8)])
def test_intervals_hold_what_they_promise(n: int, right: float):
    """Sentences of different difficulty: 95 % intervals hold the mean accuracy in 92 % of simulations or more."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(400):
        lengths = rng.integers(3, 20, size=n)
        ease = rng.beta(8 * right, 8 * (1 - right), size=n)
        hits = rng.binomial(lengths, ease)
        found = interval(np.stack([hits, lengths, lengths], axis=1))
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.value <= found.high <= 1
        held += found.low <= right <= found.high
    assert held / 400 >= 0.92


def test_worth_is_that_of_the_curve_that_made_the_counts():
    budgets, words = [0, 1, 2, 5, 10, 20, 40], 10_000
    scores = 0.5 + 0.08 * np.log1p(budgets)
    hits = np.round(words * scores).astype(np.int64)
    counts = np.stack([np.stack([np.full(8, h), np.full(8, words), np.full(8, words)], axis=1) for h in hits])
    found = worth(budgets, counts)
    assert found is not None
    assert found.value == pytest.approx(0.08 * math.log((41 + NEXT) / 41), abs=1e-3)
    assert found.low == pytest.approx(found.value, abs=1e-3)
    falling = worth(budgets, counts[::-1])
    assert falling is not None
    assert falling.value == 0
    assert worth([0, 1], counts[:2]) is None
