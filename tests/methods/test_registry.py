"""Every method by name: heads, training, files; and one training that serves two methods."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from crossfill.encoders.base import build_encoder
from crossfill.errors import ConfigError, DataError
from crossfill.evaluation.results import CellResult
from crossfill.evaluation.scoring import evaluate
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.task import Unit
from crossfill.methods.baselines.bea import bea
from crossfill.methods.registry import Plan, all_methods, as_method, build_model, find_method
from crossfill.model import n_parameters
from crossfill.prediction.predict import predict, predict_features
from crossfill.tagger.model_folder import load_model
from crossfill.tagger.train import train_model
from tests.methods.grids import GRID, SEEN, SETTINGS, write_vectors
from tests.scenarios import INVENTORY, SMALL, labelled, small_model
from tests.scenarios import SEEN as SMALL_SEEN

NAMES = ("bea", "jm", "jm-embedding", "jm-kernel", "ls", "ns", "pf-d", "pf-lr")
UNSEEN = Cell("pos", "ccc")
DATA = labelled(UNSEEN, [4, 1, 7])


def test_methods_are_found_and_others_refused():
    assert tuple(all_methods()) == NAMES
    with pytest.raises(ConfigError, match=r"unknown method 'pf-ld'; did you mean 'pf-\w+'\? known: bea, jm, "):
        find_method("pf-ld")


def test_a_new_method_is_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from crossfill.methods import baselines

    source = Path(baselines.__path__[0]) / "joint.py"
    (tmp_path / "seventh.py").write_text(
        source.read_text().replace('"jm', '"seventh').replace("trained_as", "trained_as")
    )
    monkeypatch.setattr(baselines, "__path__", [*baselines.__path__, str(tmp_path)])
    all_methods.cache_clear()
    try:
        assert "seventh" in all_methods()
        assert small_model("seventh").heads.plug_in([UNSEEN])[0].n_samples == 1
    finally:
        all_methods.cache_clear()


@pytest.mark.parametrize("hidden", [[], [6, 5]])
@pytest.mark.parametrize("method", NAMES)
def test_every_method_trains_is_scored_and_comes_back_from_its_folder(method: str, hidden: list[int], tmp_path: Path):
    vectors = write_vectors(tmp_path / "vectors")
    config = SETTINGS.change({"method": method, "sources.vectors": vectors, "sources.largest": "aaa"})
    config = config.change({"latents.similarity": ["own"], "heads.hidden": hidden})
    model = train_model(GRID, SEEN, config, tmp_path / "model").model
    results = evaluate(model, GRID, config)
    assert {r.cell for r in results if not r.seen} == set(GRID.cells) - set(SEEN)
    loaded, read = load_model(tmp_path / "model")
    assert read == config
    again = evaluate(loaded, GRID, config)
    assert [r.as_dict() for r in again] == [r.as_dict() for r in results]
    for result in results:
        assert result.plug_in.keys() == result.averaged.keys()
        assert all(np.isfinite(list(result.plug_in.values())))
        hits, gold, predicted = np.array(result.counts).sum(0)
        assert result.score == pytest.approx(2 * hits / max(1, gold + predicted))
        assert CellResult.from_dict(result.as_dict()) == result


def test_nearest_source_uses_the_head_of_the_served_language():
    model = small_model("ns")
    with pytest.raises(DataError, match="pos/ccc: no source language was chosen"):
        predict(model, DATA.inputs, UNSEEN, 0)
    find_method("ns").prepare(model, Plan(Grid({}), SMALL_SEEN, SMALL_SEEN, {UNSEEN: "bbb"}), SMALL)
    found = predict(model, DATA.inputs, UNSEEN, 0).probabilities
    torch.testing.assert_close(found, predict(model, DATA.inputs, Cell("pos", "bbb"), 0).probabilities)
    other = predict(model, DATA.inputs, Cell("pos", "aaa"), 0).probabilities
    assert not torch.allclose(found, other)


def test_sources_vote_on_all_words_given():
    model = small_model("bea")
    prediction = predict(model, DATA.inputs, UNSEEN, 0)
    voters = [predict(model, DATA.inputs, Cell("pos", language), 0).labels for language in ("aaa", "bbb")]
    torch.testing.assert_close(prediction.probabilities, bea(torch.stack(voters), 4))
    assert not prediction.mutual_information.any()
    # with one source there is nothing to vote on, and a seen cell has its own head
    own = predict(model, DATA.inputs, Cell("ner", "ccc"), 0).probabilities
    torch.testing.assert_close(own, predict(model, DATA.inputs, Cell("ner", "aaa"), 0).probabilities)


def test_one_training_serves_both_methods():
    config = SETTINGS.change({"method": "ns"})
    model = small_model("ns")
    voting, changed = as_method(model, config, "bea")
    assert changed.method == "bea"
    fresh = small_model("bea")
    fresh.heads.load_state_dict(model.heads.state_dict())
    one, two = (predict_features(m, DATA.inputs.features, UNSEEN, 0).probabilities for m in (voting, fresh))
    assert torch.equal(one, two)
    with pytest.raises(ConfigError, match="expected a method that trains as ns does: bea, ns; got 'jm'"):
        as_method(model, config, "jm")


def test_heads_read_the_last_hidden_layer_as_a_naive_loop_computes_it():
    model = small_model("jm", "heads.hidden=[6, 3]")
    (head,) = model.heads.plug_in([UNSEEN])
    network = model.hidden[INVENTORY.task_index("pos")]
    found = predict(model, DATA.inputs, UNSEEN, 0).probabilities
    for place, row in enumerate(DATA.inputs.features):
        for layer in (network.get_submodule("0"), network.get_submodule("2")):
            weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
            row = torch.stack([max(w @ row + b, torch.zeros(()).double()) for w, b in zip(weight, bias, strict=True)])
        logits = head.parameters[0] @ torch.cat([row, torch.ones(1).double()])
        torch.testing.assert_close(found[place], logits.softmax(-1))
    assert (
        model.width("pos", Unit.WORD)
        == small_model("jm", "heads.hidden=[6, 3]", "heads.dropout=0.5").width("pos", Unit.WORD)
        == 3
    )
    assert n_parameters(model.hidden) == 2 * ((5 + 1) * 6 + (6 + 1) * 3)


def test_jm_over_hidden_layers_learns_as_a_network_for_each_task_does():
    """A training step by step against networks from features to labels."""
    model = small_model("jm", "heads.hidden=[6]", "encoder.dropout=0")
    task = INVENTORY.task_index("pos")
    whole = copy.deepcopy(torch.nn.Sequential(*model.hidden[task], model.heads.heads[task]))
    cell, features = Cell("pos", "aaa"), DATA.inputs.features
    optimisers = [torch.optim.SGD(module.parameters(), lr=0.1) for module in (model, whole)]
    for _ in range(5):
        head = model.heads.training_draw([cell], 1)[0].head
        losses = [
            torch.nn.functional.cross_entropy(logits, DATA.labels)
            for logits in (head.logits(model.features(DATA.inputs, "pos"))[0], whole(features))
        ]
        for loss, optimiser in zip(losses, optimisers, strict=True):
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        torch.testing.assert_close(*losses)
    torch.testing.assert_close(predict(model, DATA.inputs, cell, 0).probabilities, whole(features).softmax(-1))


def test_hidden_units_are_dropped_in_training_alone():
    model = small_model("jm", "heads.hidden=[400]", "heads.dropout=0.5", "encoder.dropout=0")
    units = [model.train(training).features(DATA.inputs, "pos") for training in (False, True)]
    whole, kept = units[0][units[1] > 0], units[1][units[1] > 0]
    torch.testing.assert_close(kept, 2 * whole)
    assert 0.4 < len(kept) / float((units[0] > 0).sum()) < 0.6


def test_an_encoder_built_first_is_the_same_for_the_same_seed():
    first = build_encoder(SMALL, INVENTORY.languages)
    torch.rand(3)  # whatever else has drawn random numbers in between
    second, other = (
        build_encoder(SMALL, INVENTORY.languages),
        build_encoder(SMALL.change({"training.seed": 1}), INVENTORY.languages),
    )
    for name, weights in first.state_dict().items():
        torch.testing.assert_close(second.state_dict()[name], weights, rtol=0, atol=0)
    assert any(not weights.equal(other.state_dict()[name]) for name, weights in first.state_dict().items())
    alone = build_model(SMALL, INVENTORY, SMALL_SEEN)
    torch.testing.assert_close(alone.encoder.state_dict(), first.state_dict(), rtol=0, atol=0)
