"""The model: rows, slices, plug-in and sampled heads, latent dropout, and cells it does not know."""

import numpy as np
import pytest
import torch

from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.methods.factorized.posteriors import DiagonalPosterior, LowRankPosterior
from tests.scenarios import INVENTORY, N_FEATURES, small_model

CELLS = [Cell(task, language) for task in INVENTORY.tasks for language in INVENTORY.languages]


def test_method_chooses_the_posterior():
    assert isinstance(small_model("pf-d").heads.languages, DiagonalPosterior)
    assert isinstance(small_model("pf-lr").heads.languages, LowRankPosterior)


@pytest.mark.parametrize("method", ["pf-d", "pf-lr", "jm"])
def test_heads_of_all_cells_come_from_one_call(method):
    model = small_model(method)
    together = model.heads.plug_in(CELLS)
    for cell, head in zip(CELLS, together, strict=True):
        assert head.parameters.shape == (1, len(INVENTORY.task(cell.task).labels), N_FEATURES + 1)
        torch.testing.assert_close(head.parameters, model.heads.plug_in([cell])[0].parameters)


def test_cells_of_one_language_share_its_draw():
    """With the task vectors and the generator's noise gone, what is left is the draw of l."""
    model = small_model("pf-lr")
    with torch.no_grad():
        model.heads.tasks.mean.zero_()
        model.heads.tasks.rho.fill_(-200)
        model.heads.tasks.factor.zero_()
        for layer in model.heads.generator.variances:
            layer.weight.zero_()
            layer.bias.fill_(-200)
    one, other = model.heads.sample([Cell("pos", "aaa"), Cell("pos", "bbb")], 3)
    assert not torch.allclose(one.parameters, other.parameters)
    same, again = model.heads.sample([Cell("pos", "aaa"), Cell("pos", "aaa")], 3)
    torch.testing.assert_close(same.parameters, again.parameters, rtol=1e-3, atol=1e-4)


def test_a_language_without_a_seen_cell_keeps_the_prior():
    heads = small_model("pf-lr").heads
    kl = heads.languages.kl(torch.arange(3))
    assert kl[2].item() == pytest.approx(0, abs=1e-6)  # ccc
    assert kl[0].item() > 0.01


def test_latent_dropout_draws_languages_from_the_prior():
    """With certainty posteriors, the only spread left is that of the prior draws."""
    model = small_model("pf-d", "latents.dropout=0.5", "generator.initial_variance=1e-8", "generator.deviation=1.0")
    with torch.no_grad():
        for posterior in (model.heads.tasks, model.heads.languages):
            posterior.rho.fill_(-200)
        for layer in model.heads.generator.variances:
            layer.weight.zero_()
    head = model.heads.training_draw([Cell("pos", "aaa")], 400)[0].head
    at_mean = model.heads.plug_in([Cell("pos", "aaa")])[0].parameters
    near = ((head.parameters - at_mean).flatten(1).abs().amax(1) < 2e-2).double().mean().item()
    assert 0.35 < near < 0.65


@pytest.mark.parametrize("method", ["pf-lr", "jm"])
def test_unknown_cells_are_refused(method):
    heads = small_model(method).heads
    with pytest.raises(DataError, match="unknown task 'poss'; did you mean 'pos'"):
        heads.plug_in([Cell("poss", "aaa")])
    with pytest.raises(DataError, match="unknown language 'aab'; did you mean 'aaa'"):
        heads.sample([Cell("pos", "aab")], 2)


@pytest.mark.parametrize("method", ["pf-d", "pf-lr"])
def test_an_anchor_moves_the_prior_and_costs_nothing(method):
    """Moving a language's anchor by a and its posterior mean by −a leaves every head where it was."""
    model = small_model(method)
    cells, anchor = [Cell("pos", "aaa"), Cell("ner", "bbb")], np.linspace(-1, 1, model.heads.anchors.shape[1])
    before, kl = model.heads.plug_in(cells), model.heads.languages.kl(torch.arange(3))
    model.heads.anchor({"aaa": anchor})
    moved = model.heads.plug_in(cells)
    assert not torch.allclose(moved[0].parameters, before[0].parameters)
    torch.testing.assert_close(moved[1].parameters, before[1].parameters)
    torch.testing.assert_close(model.heads.languages.kl(torch.arange(3)), kl)
    with torch.no_grad():
        model.heads.languages.mean[0] -= torch.from_numpy(anchor)
    torch.testing.assert_close(model.heads.plug_in(cells)[0].parameters, before[0].parameters)
    torch.manual_seed(0)
    sampled = model.heads.sample(cells, 200)[0].parameters
    torch.testing.assert_close(sampled.mean(0), before[0].parameters[0], atol=0.5, rtol=0)
