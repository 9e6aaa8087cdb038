"""Prediction: averaging against a naive loop, chunks, seeds, and the measures of doubt."""

import pytest
import torch
from torch.distributions import Categorical

from crossfill.grid.cells import Cell
from crossfill.prediction import predict as predict_module
from crossfill.prediction.predict import CellWords, classify, draw_head, predict
from tests.scenarios import labelled, small_model

CELL = Cell("pos", "ccc")  # unseen
DATA = labelled(CELL, [4, 1, 7])


@pytest.mark.parametrize("method", ["pf-d", "pf-lr"])
def test_averaging_equals_a_loop_over_samples(method):
    model = small_model(method)
    found = predict(model, DATA.inputs, CELL, n_samples=9, seed=4)
    head = draw_head(model, CELL, 9, seed=4)
    for word, x in enumerate(DATA.inputs.features):
        samples = [torch.softmax(w[:, :-1] @ x + w[:, -1], -1) for w in head.parameters]
        mean = torch.stack(samples).mean(0)
        torch.testing.assert_close(found.probabilities[word], mean)
        entropy = Categorical(mean).entropy()
        expected = torch.stack([Categorical(p).entropy() for p in samples]).mean()
        torch.testing.assert_close(found.entropy[word], entropy)
        torch.testing.assert_close(found.mutual_information[word], entropy - expected)
    assert (found.mutual_information > 0).all()
    assert (found.labels == found.probabilities.argmax(-1)).all()
    torch.testing.assert_close(found.confidence, found.probabilities.max(-1).values)


def test_plug_in_uses_posterior_means_and_has_no_epistemic_part():
    model = small_model()
    found = predict(model, DATA.inputs, CELL, n_samples=0)
    head = model.heads.plug_in([CELL])[0]
    torch.testing.assert_close(found.probabilities, head.logits(DATA.inputs.features)[0].softmax(-1))
    assert found.mutual_information.abs().max() < 1e-12


def test_chunks_do_not_change_the_result(monkeypatch):
    model = small_model()
    whole = predict(model, DATA.inputs, CELL, n_samples=5)
    monkeypatch.setattr(predict_module, "CHUNK_NUMBERS", 60)
    monkeypatch.setattr(predict_module, "CHUNK_SENTENCES", 2)
    parts = predict(model, DATA.inputs, CELL, n_samples=5)
    torch.testing.assert_close(whole.probabilities, parts.probabilities)
    torch.testing.assert_close(whole.mutual_information, parts.mutual_information)


def test_a_seed_fixes_the_samples_and_leaves_the_callers_random_state_alone():
    model = small_model()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one, two = (predict(model, DATA.inputs, CELL, 5, seed=3).probabilities for _ in range(2))
    other = predict(model, DATA.inputs, CELL, 5, seed=4).probabilities
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(before, torch.get_rng_state())


def test_no_words_give_an_empty_prediction():
    model = small_model()
    found = classify([CellWords(torch.zeros(0, 5, dtype=torch.float64), draw_head(model, CELL, 3))])
    assert found.probabilities.shape == (0, 4)


def test_the_mode_is_restored_also_when_encoding_fails(monkeypatch: pytest.MonkeyPatch):
    model = small_model().train()

    def fail(_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(model.encoder, "forward", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        predict_module.encode(model, DATA.inputs, CELL.task)
    assert model.training
