"""What is measured of a corpus against the parts it is made of, and means over results made by hand."""

import numpy as np
import pytest

from crossfill.evaluation.results import average, entropy_correlation, entropy_points, task_means
from crossfill.evaluation.scoring import STUDY_WORDS, evaluate_corpus, study_entropies
from crossfill.grid.cells import Cell
from crossfill.measures import uncertainty
from crossfill.measures.metrics import score
from crossfill.prediction.predict import encode, predict
from crossfill.prediction.rules import viterbi
from crossfill.training.labelled import prepare
from tests.evaluation.made_results import RUNS, result
from tests.methods.grids import GRID, SEEN, SETTINGS
from tests.scenarios import labelled, small_model


def test_scores_are_averaged_over_treebanks_for_tags_and_languages_for_spans():
    assert task_means(RUNS["pf-lr"]["random", 0]) == {"pos": pytest.approx((0.8 + 0.5 + 0.6 + 0.4) / 4), "ner": 0.5}
    spans = [result("ner/aaa", 0.2, "one"), result("ner/aaa", 0.4, "two"), result("ner/bbb", 0.9)]
    assert average(spans) == pytest.approx((0.3 + 0.9) / 2)
    assert task_means([*spans, result("ner/ccc", 1.0, seen=True)], seen=True) == {"ner": 1.0}


def test_entropy_correlations_are_over_unseen_cells():
    cells = [
        result(f"pos/{c * 3}", s, entropies=[1 - s, 3 - 3 * s]) for c, s in zip("abc", (0.1, 0.5, 0.6), strict=True)
    ]
    seen = result("pos/ddd", 0.0, seen=True, entropies=[0.0])
    for task in ("pos", None):
        found = entropy_correlation(entropy_points([*cells, seen], task))
        assert (found.r, found.n) == (pytest.approx(-1), 3)
    assert entropy_points([*cells, seen], "ner") == {}


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
    from crossfill.methods.registry import build_model

    model = build_model(SETTINGS, GRID.inventory, SEEN).eval()
    cell = Cell("ner", "ddd")
    corpus = GRID[cell][0].test
    found = evaluate_corpus(model, cell, "x", corpus, SETTINGS)
    data = prepare(model.encoder, model.inventory, cell, corpus)
    assert encode(model, data.inputs, cell.task).shape[0] == found.n_words == corpus.n_words
    for measures, n_samples in ((found.plug_in, 0), (found.averaged, SETTINGS.prediction.samples)):
        prediction = predict(model, data.inputs, cell, n_samples)
        gold, labels = data.labels.numpy(), prediction.labels.numpy()
        task, lengths = model.inventory.task("ner"), corpus.lengths
        decoded = viterbi(np.log(prediction.probabilities.numpy()), lengths, task.labels)
        assert measures["score"] == score(gold, decoded, task, lengths)
        assert measures["argmax"] == score(gold, labels, task, lengths)
        assert measures["nll"] == pytest.approx(uncertainty.nll(prediction.probabilities.numpy(), gold))
        assert measures["entropy"] == pytest.approx(float(prediction.entropy.mean()))
        assert measures["aurc"] == pytest.approx(uncertainty.aurc(prediction.confidence.numpy(), labels == gold))
    assert (found.seen, found.n_sentences, len(found.counts)) == (False, 8, 8)
    assert sum(found.reliability["count"]) == found.n_words
    assert len(found.risk_coverage) == 20
    assert found.averaged["mutual_information"] > 0 == found.plug_in["mutual_information"]
