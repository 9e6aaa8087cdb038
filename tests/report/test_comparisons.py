"""Comparisons of methods on results made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.measures import uncertainty
from crossfill.measures.significance import over_trainings_and_cells
from crossfill.report import comparisons
from tests.evaluation.made_results import MEASURES, RUNS, result, run, trainings


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
    with pytest.raises(DataError, match="unknown method 'jmm'; did you mean 'jm'"):
        comparisons.differences(RUNS, "jmm")


def test_methods_are_compared_where_both_have_the_partition_and_the_seed():
    first = {("a", 0): run(0.9, 0.5, 0.6, 0.4, 0.5), ("a", 1): run(0.7, 0.5, 0.7, 0.4, 0.5), ("b", 0): run(*[1.0] * 5)}
    second = {("a", 1): run(0.5, 0.5, 0.5, 0.5, 0.5), ("a", 0): run(0.4, 0.5, 0.5, 0.5, 0.5)}
    row = next(r for r in comparisons.differences({"pf-lr": first, "jm": second}, "jm") if r.task == "pos")
    assert row.comparison.difference == pytest.approx(np.mean([0.5, 0, 0.1, -0.1, 0.2, 0, 0.2, -0.1]))


def test_sentences_within_corpora_count_with_their_mean_over_runs():
    found = comparisons.within_corpora(RUNS["pf-lr"], RUNS["jm"])
    comparison, adjusted = found[Cell("pos", "aaa"), "one"]
    assert comparison.difference == pytest.approx((0.8 + 0.6) / 2 - 0.5)
    assert adjusted >= comparison.p_value
    assert len(found) == 5
    better = trainings([replace(result("pos/aaa", 0.5), counts=[[1, 1, 1]] * 12)])
    worse = trainings([replace(result("pos/aaa", 0.5), counts=[[0, 1, 1]] * 12)])
    (comparison, p), *_ = comparisons.within_corpora(better, worse).values()
    assert comparison.difference == 1
    assert p == pytest.approx(2 * 0.5**12, abs=2e-3)  # all sentences swapped, or none


def test_scores_are_correlated_with_the_logarithm_of_training_words():
    words = {"aaa": 1000, "bbb": 100, "ccc": 10}
    r, _, n = comparisons.size_correlation(comparisons.corpus_scores(RUNS["pf-lr"], "pos"), words)
    assert r == pytest.approx(np.corrcoef(np.log([1000, 1000, 100, 10]), [0.7, 0.5, 0.6, 0.4])[0, 1])
    assert n == 4
    assert comparisons.size_correlation(comparisons.corpus_scores(RUNS["jm"], "ner"), words).n == 0


def test_pooled_measures_are_those_of_all_words_together():
    rng = np.random.default_rng(0)
    parts, results = [], []
    for n in (50, 200):
        probabilities = rng.dirichlet(np.ones(3), size=n)
        gold = rng.integers(3, size=n)
        sure, right = probabilities.max(1), probabilities.argmax(1) == gold
        bins = uncertainty.reliability(sure, right)
        measures = dict.fromkeys(MEASURES, 0.0) | {
            "nll": uncertainty.nll(probabilities, gold),
            "brier": uncertainty.brier(probabilities, gold),
        }
        kept = {name: getattr(bins, name).tolist() for name in ("count", "confidence", "accuracy")}
        results.append(replace(result("pos/aaa", 0.5), n_words=n, averaged=measures, reliability=kept))
        parts.append((probabilities, gold))
    probabilities, gold = (np.concatenate(column) for column in zip(*parts, strict=True))
    sure, right = probabilities.max(1), probabilities.argmax(1) == gold
    found = comparisons.pooled_uncertainty(results)
    assert found["nll"] == pytest.approx(uncertainty.nll(probabilities, gold))
    assert found["brier"] == pytest.approx(uncertainty.brier(probabilities, gold))
    assert found["ece"] == pytest.approx(uncertainty.reliability(sure, right).error())
    assert found["aurc"] == pytest.approx(uncertainty.aurc(np.floor(sure * 15), right))
