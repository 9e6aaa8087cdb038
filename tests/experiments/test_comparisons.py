"""Comparisons of methods on results made by hand, and what is measured of a corpus against the parts it is made of."""

import math
from dataclasses import replace

import numpy as np
import pytest

from crossfill import uncertainty
from crossfill.config import Config
from crossfill.errors import DataError
from crossfill.experiments import comparisons
from crossfill.experiments.cell_results import CellResult, average, entropy_correlations, task_means
from crossfill.experiments.parameters import parameter_counts
from crossfill.experiments.scoring import STUDY_WORDS, evaluate_corpus, study_entropies
from crossfill.grid import Cell
from crossfill.metrics import score
from crossfill.predict import encode, predict
from crossfill.training import prepare
from tests.baselines.grids import GRID, SEEN, SETTINGS
from tests.scenarios import labelled, small_model

MEASURES = ("nll", "brier", "ece", "ece_adaptive", "aurc", "entropy", "mutual_information")


def result(cell: str, score: float, corpus: str = "c", seen: bool = False, entropies: list[float] | None = None):
    """A result with a score, and ten sentences of which that share is right."""
    name = "span_f1" if cell.startswith("ner") else "accuracy"
    measures = {"score": score, name: score} | dict.fromkeys(MEASURES, 0.5)
    counts = [[1, 1, 1]] * round(10 * score) + [[0, 1, 1]] * (10 - round(10 * score))
    bins = {"count": [10], "confidence": [0.9], "accuracy": [score]}
    return CellResult(
        Cell.parse(cell), corpus, seen, 10, 10, measures, measures, {}, entropies or [1 - score], bins, [], counts
    )


def run(*scores: float) -> list[CellResult]:
    """pos in aaa (two treebanks), bbb, ccc; ner in ddd."""
    names = (("pos/aaa", "one"), ("pos/aaa", "two"), ("pos/bbb", "c"), ("pos/ccc", "c"), ("ner/ddd", "c"))
    return [result(cell, value, corpus) for (cell, corpus), value in zip(names, scores, strict=True)]


RUNS = {
    "pf-lr": [run(0.8, 0.5, 0.6, 0.4, 0.5), run(0.6, 0.5, 0.6, 0.4, 0.3)],
    "pf-d": [run(0.6, 0.6, 0.6, 0.2, 0.6), run(0.6, 0.6, 0.6, 0.2, 0.6)],
    "jm": [[*run(0.5, 0.5, 0.5, 0.5, 0.5), result("pos/eee", 1.0, seen=True)]],
}


def test_wins_count_corpora_and_share_ties():
    rows = {row.task: row for row in comparisons.wins(RUNS)}
    assert rows["pos"].n == 4
    assert rows["pos"].wins == pytest.approx({"pf-lr": 1.5, "pf-d": 1.5, "jm": 1.0})
    assert rows["ner"].wins == {"pf-lr": 0, "pf-d": 1, "jm": 0}


def test_differences_are_means_over_corpora_with_wins_and_losses():
    rows = {(row.task, row.method): row for row in comparisons.differences(RUNS, "jm")}
    row = rows["pos", "pf-lr"]
    assert row.comparison.difference == pytest.approx(np.mean([0.2, 0.0, 0.1, -0.1]))
    assert (row.wins, row.losses, row.n) == (2, 1, 4)
    assert row.adjusted_p >= row.comparison.p_value
    (lone, _) = comparisons.differences(RUNS, "pf-d", ["pf-lr"], "bootstrap")[::-1]
    assert (lone.task, lone.method, lone.against) == ("pos", "pf-lr", "pf-d")
    with pytest.raises(DataError, match="unknown method 'jmm'; did you mean 'jm'"):
        comparisons.differences(RUNS, "jmm")


def test_sentences_within_corpora_count_with_their_mean_over_runs():
    found = comparisons.within_corpora(RUNS["pf-lr"], RUNS["jm"])
    comparison, adjusted = found[Cell("pos", "aaa"), "one"]
    assert comparison.difference == pytest.approx((0.8 + 0.6) / 2 - 0.5)
    assert adjusted >= comparison.p_value
    assert len(found) == 5
    better = [[replace(result("pos/aaa", 0.5), counts=[[1, 1, 1]] * 12)]]
    worse = [[replace(result("pos/aaa", 0.5), counts=[[0, 1, 1]] * 12)]]
    (comparison, p), *_ = comparisons.within_corpora(better, worse).values()
    assert comparison.difference == 1
    assert p == pytest.approx(2 * 0.5**12, abs=2e-3)  # all sentences swapped, or none


def test_scores_are_averaged_over_treebanks_for_tags_and_languages_for_spans():
    assert task_means(RUNS["pf-lr"][0]) == {"pos": pytest.approx((0.8 + 0.5 + 0.6 + 0.4) / 4), "ner": 0.5}
    spans = [result("ner/aaa", 0.2, "one"), result("ner/aaa", 0.4, "two"), result("ner/bbb", 0.9)]
    assert average(spans) == pytest.approx((0.3 + 0.9) / 2)
    assert task_means([*spans, result("ner/ccc", 1.0, seen=True)], seen=True) == {"ner": 1.0}


def test_score_against_size_and_knowledge():
    words = {"pos": {"aaa": 1000, "bbb": 100, "ccc": 10}}
    rows = {(row.task, row.method): row for row in comparisons.score_against_size(RUNS, words)}
    row = rows["pos", "pf-lr"]
    assert row.points["ccc c"] == (pytest.approx(math.log(10)), pytest.approx(0.4))
    logs = np.log([1000, 1000, 100, 10])
    assert row.found.r == pytest.approx(np.corrcoef(logs, [0.7, 0.5, 0.6, 0.4])[0, 1])
    assert rows["ner", "jm"].found.n == 0
    known = {(row.task, row.method): row for row in comparisons.score_by_encoder_knowledge(RUNS, ["aaa", "ddd"])}
    row = known["pos", "pf-lr"]
    assert (row.known, row.unknown) == (pytest.approx(0.6), pytest.approx(0.5))
    assert (row.n_known, row.n_unknown) == (2, 2)
    assert math.isnan(known["ner", "jm"].unknown)


def test_entropy_correlations_are_over_unseen_cells():
    cells = [
        result(f"pos/{c * 3}", s, entropies=[1 - s, 3 - 3 * s]) for c, s in zip("abc", (0.1, 0.5, 0.6), strict=True)
    ]
    seen = result("pos/ddd", 0.0, seen=True, entropies=[0.0])
    found = entropy_correlations([*cells, seen])
    assert found["pos"].r == found["pooled"].r == pytest.approx(-1)
    assert found["pos"].n == 3


def test_a_corpus_is_measured_as_its_parts_say():
    model, cell = small_model("pf-lr"), Cell("pos", "ccc")
    data = labelled(cell, [5] * 300)
    features = data.inputs.features
    plug_in = predict(model, data.inputs, cell, 0)
    found = study_entropies(model, features, cell, plug_in, seed=3)
    everything = np.sort(predict(model, data.inputs, cell, 10, seed=3).entropy.numpy())
    assert len(found) == STUDY_WORDS
    places = np.searchsorted(everything, np.array(found) - 1e-9)
    np.testing.assert_allclose(everything[places], found, atol=1e-8)
    assert len(study_entropies(model, features[:7], cell, plug_in, seed=3)) == 7


def test_evaluation_agrees_with_prediction():
    from crossfill.baselines.methods import build_model

    model = build_model(SETTINGS, GRID.inventory, SEEN).eval()
    cell = Cell("ner", "ddd")
    corpus = GRID[cell][0].test
    found = evaluate_corpus(model, cell, "x", corpus, SETTINGS)
    data = prepare(model.encoder, model.inventory, cell, corpus)
    assert encode(model, data.inputs).shape[0] == found.n_words == corpus.n_words
    for measures, n_samples in ((found.plug_in, 0), (found.averaged, SETTINGS.prediction.samples)):
        prediction = predict(model, data.inputs, cell, n_samples)
        gold, labels = data.labels.numpy(), prediction.labels.numpy()
        assert measures["score"] == score(gold, labels, model.inventory.labels["ner"], corpus.lengths)
        assert measures["nll"] == pytest.approx(uncertainty.nll(prediction.probabilities.numpy(), gold))
        assert measures["entropy"] == pytest.approx(float(prediction.entropy.mean()))
        assert measures["aurc"] == pytest.approx(uncertainty.aurc(prediction.confidence.numpy(), labels == gold))
    assert (found.seen, found.n_sentences, len(found.counts)) == (False, 8, 8)
    assert sum(found.reliability["count"]) == found.n_words
    assert len(found.risk_coverage) == 20
    assert found.averaged["mutual_information"] > 0 == found.plug_in["mutual_information"]


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


def test_parameters_grow_with_languages_as_the_paper_says():
    counts = parameter_counts(Config(), [33, 34, 60])
    h, rank, heads = 100, 10, 769 * (9 + 17)
    assert counts["jm"] == counts["ls"] == [heads] * 3
    assert counts["ns"] == counts["bea"] == [33 * heads, 34 * heads, 60 * heads]
    assert counts["pf-d"][1] - counts["pf-d"][0] == 2 * h
    assert counts["pf-lr"][1] - counts["pf-lr"][0] == (2 + rank) * h
    assert counts["jm-deep"] == pytest.approx(counts["pf-lr"], rel=0.001)
