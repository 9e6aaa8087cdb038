"""What benchmarks measure, against cases computed by hand."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import annotate
import bridges


def test_the_area_under_a_learning_curve_is_its_mean_height():
    assert annotate.area([0, 10, 20], [0, 1, 1], 20) == pytest.approx(0.75)
    assert annotate.area([0, 10, 20], [0, 1, 1], 5) == pytest.approx(0.25)  # a curve that is cut off between two places
    assert annotate.area([0, 160], [0.4, 0.4], 160) == pytest.approx(0.4)


def test_a_curve_is_compared_by_sentences_and_by_the_words_that_both_reach():
    chosen = {"zero_shot": 0.0, "scores": [1.0, 1.0], "words": [100, 200]}
    random = {"zero_shot": 0.0, "scores": [0.5, 1.0], "words": [50, 100]}
    by_sentences, by_words = annotate.gain(chosen, random, [10, 20])
    assert by_sentences == pytest.approx(0.75 - 0.5)
    assert by_words == pytest.approx(0.0)  # both rise by 0.01 a word
    assert annotate.gain(random, random, [10, 20]) == (0.0, 0.0)


def test_bridges_are_compared_on_the_cells_that_are_always_unseen():
    found = {
        bridges.Job("jm", 0, 1, 1): {"ner/a": 0.2, "pos/b": 0.5, "pos/c": 0.9},
        bridges.Job("jm", 5, 1, 1): {"ner/a": 0.3, "pos/b": 0.6},
        bridges.Job("jm", 0, 2, 1): {"ner/a": 0.4, "pos/b": 0.7},
        bridges.Job("jm", 5, 2, 1): {"ner/a": 0.3, "pos/b": 0.6},
    }
    assert bridges.table(found) == {
        "0": {"jm": {"ner": [30.0, 14.1], "pos": [60.0, 14.1]}},
        "5": {"jm": {"ner": [30.0, 0.0], "pos": [60.0, 0.0]}},
    }
