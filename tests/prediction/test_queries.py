"""Queries tagged together against each tagged alone; bounds against numpy's quantiles."""

import itertools

import numpy as np
import pytest
import torch

from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.prediction.predict import CHUNK_NUMBERS, CellWords, classify, draw_head
from crossfill.prediction.tagging import TaggingOptions
from crossfill.tagger.tagger import Tagger
from tests.scenarios import N_FEATURES, SEEN, SMALL, small_grid, small_model


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    from crossfill.methods.registry import build_model

    made, partition = small_grid()
    torch.manual_seed(0)
    return Tagger(build_model(SMALL, made.grid.inventory, partition.seen), SMALL)


def test_mixed_queries_are_what_each_is_alone_and_every_sentence_is_encoded_once(tagger: Tagger, monkeypatch):
    texts = [("na", "le", "x"), ("mi",), ("na", "le", "x"), ("ka", "mi"), ()]
    doubts = [TaggingOptions(), TaggingOptions(interval=0.8)]
    asked = list(itertools.product(texts, tagger.cells[::3], (0, 4), doubts))
    queries = [tagger.query(list(text), cell, samples, doubt) for text, cell, samples, doubt in asked]
    seen = []
    prepare = type(tagger.model.encoder).prepare

    def counting(encoder, corpus, language=""):
        seen.append(len(corpus))
        return prepare(encoder, corpus, language)

    monkeypatch.setattr(type(tagger.model.encoder), "prepare", counting)
    together = tagger.tag_queries(queries)
    assert seen == [4]
    monkeypatch.undo()
    for tagging, (text, cell, samples, doubt) in zip(together, asked, strict=True):
        alone = tagger.tag(list(text), cell, samples, doubt)
        assert (tagging.cell, tagging.sentence, tagging.labels) == (cell, Sentence(text), alone.labels)
        assert [s.type for s in tagging.spans] == [s.type for s in alone.spans]
        for name in ("probabilities", "confidence", "entropy", "mutual_information"):
            np.testing.assert_allclose(getattr(tagging, name), getattr(alone, name), rtol=1e-4, atol=1e-6)
        assert (tagging.bounds is None) == (doubt.interval is None)


def test_heads_come_from_where_the_caller_says(tagger: Tagger):
    asked = []

    def head_of(cell, n_samples):
        asked.append((cell, n_samples))
        return tagger.head(cell, n_samples)

    cell = tagger.cells[0]
    tagger.tag_queries([tagger.query([word], cell, 3) for word in "abc"], head_of)
    assert asked == [(cell, 3)]


@pytest.mark.parametrize("n_samples", [0, 1, 2, 7])
def test_bounds_are_quantiles_over_the_samples(n_samples):
    model, cell = small_model(), Cell("pos", "aaa")
    features = torch.randn(9, N_FEATURES, dtype=torch.float64)
    head = draw_head(model, cell, n_samples)
    found = classify([CellWords(features, head)], interval=0.9).bounds
    samples = head.logits(features).softmax(-1).detach().numpy()
    assert found is not None
    np.testing.assert_allclose(found.numpy(), np.quantile(samples, [0.05, 0.95], axis=0), rtol=1e-12)


def test_long_runs_are_cut_and_short_ones_joined():
    model = small_model()
    cells = sorted(cell for cell in SEEN if cell.task == "pos")
    heads = [draw_head(model, cell, 50) for cell in cells]
    lengths = [3, CHUNK_NUMBERS // (50 * 4) + 5, 1]
    runs = [CellWords(torch.randn(n, N_FEATURES).double(), heads[i % 2]) for i, n in enumerate(lengths)]
    found = classify(runs, 0.9)
    alone = [classify([run]) for run in runs]
    torch.testing.assert_close(found.probabilities, torch.cat([one.probabilities for one in alone]))
    torch.testing.assert_close(found.mutual_information, torch.cat([one.mutual_information for one in alone]))
    assert found.bounds is not None
    assert (found.bounds[0] <= found.probabilities + 1e-9).float().mean() > 0.9
    assert found.bounds.shape == (2, sum(lengths), 4)


def test_voters_vote_for_each_cell_alone():
    from crossfill.prediction.predict import predict_runs

    model = small_model("bea")
    head = draw_head(model, Cell("pos", "ccc"), 0)
    features = torch.randn(6, N_FEATURES).double()
    found = predict_runs([CellWords(features, head), CellWords(features[:2], head)], model.heads.vote, 0.9)
    alone = [predict_runs([CellWords(part, head)], model.heads.vote) for part in (features, features[:2])]
    torch.testing.assert_close(found.probabilities, torch.cat([one.probabilities for one in alone]))
    assert found.bounds is not None
    torch.testing.assert_close(found.bounds[0], found.probabilities)


def test_an_interval_is_a_share(tagger: Tagger):
    with pytest.raises(DataError, match="expected an interval between 0 and 1"):
        tagger.tag(["a"], tagger.cells[0], options=TaggingOptions(interval=90))
