"""Comparisons of methods on results made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from crossfill.measures import uncertainty
from crossfill.measures.significance import over_trainings_and_cells
from crossfill.report import comparisons
from tests.evaluation.made_results import RUNS, result, run


def test_wins_count_corpora_and_share_ties():
    shares, n_corpora = comparisons.wins(RUNS, "pos")
    assert n_corpora == 4
    assert shares == pytest.approx({"pf-lr": 1.5, "pf-d": 1.5, "jm": 1.0})
    assert comparisons.wins(RUNS, "ner") == ({"pf-lr": 0, "pf-d": 1, "jm": 0}, 1)


def test_differences_are_means_over_corpora_with_wins_and_losses():
    rows = {(row.task, row.method): row for row in comparisons.differences(RUNS, "jm")}
    row = rows["pos", "pf-lr"]
    assert row.comparison.difference == pytest.approx(np.mean([0.2, 0.0, 0.1, -0.1]))
    assert (row.wins, row.losses) == (2, 1)
    # seeds × corpora: a two-way analysis of variance, by hand in tests/measures
    parts = [np.array([[0.8, 0.5, 0.6, 0.4], [0.6, 0.5, 0.6, 0.4]]) - 0.5]
    np.testing.assert_allclose(row.comparison, over_trainings_and_cells(parts))
    assert rows["ner", "pf-lr"].comparison.p_value == 1  # one corpus
    (lone, _) = comparisons.differences(RUNS, "pf-d", ["pf-lr"])[::-1]
    assert (lone.task, lone.method, lone.against) == ("pos", "pf-lr", "pf-d")


def test_methods_are_compared_where_both_have_the_partition_and_the_seed():
    first = {("a", 0): run(0.9, 0.5, 0.6, 0.4, 0.5), ("a", 1): run(0.7, 0.5, 0.7, 0.4, 0.5), ("b", 0): run(*[1.0] * 5)}
    second = {("a", 1): run(0.5, 0.5, 0.5, 0.5, 0.5), ("a", 0): run(0.4, 0.5, 0.5, 0.5, 0.5)}
    row = next(r for r in comparisons.differences({"pf-lr": first, "jm": second}, "jm") if r.task == "pos")
    assert row.comparison.difference == pytest.approx(np.mean([0.5, 0, 0.1, -0.1, 0.2, 0, 0.2, -0.1]))


def test_scores_are_correlated_with_the_logarithm_of_training_words():
    words = {"aaa": 1000, "bbb": 100, "ccc": 10}
    r, _, n = comparisons.size_correlation(comparisons.corpus_scores(RUNS["pf-lr"], "pos"), words)
    assert r == pytest.approx(np.corrcoef(np.log([1000, 1000, 100, 10]), [0.7, 0.5, 0.6, 0.4])[0, 1])
    assert n == 4
    assert comparisons.size_correlation(comparisons.corpus_scores(RUNS["jm"], "ner"), words).n == 0


def test_pooled_reliability_is_that_of_all_words_together():
    rng = np.random.default_rng(0)
    sure, right = [rng.uniform(0.3, 1, n) for n in (50, 200)], [rng.integers(2, size=n) == 1 for n in (50, 200)]
    results = []
    for confidence, is_right in zip(sure, right, strict=True):
        bins = uncertainty.reliability(confidence, is_right)
        values = {name: getattr(bins, name).tolist() for name in ("count", "confidence", "accuracy")}
        results.append(replace(result("pos/aaa", 0.5), n_words=len(confidence), reliability=values))
    expected = uncertainty.reliability(np.concatenate(sure), np.concatenate(right)).error()
    assert comparisons.pooled_reliability(results).error() == pytest.approx(expected)
