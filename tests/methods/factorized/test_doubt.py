"""What the generator's last layer leaves open, against a dense posterior, and that it grows away from seen cells."""

from pathlib import Path

import pytest
import torch

from crossfill.grid.cells import Cell
from crossfill.methods.factorized.doubt import open_variance, prior_variances
from crossfill.methods.factorized.heads import FactorizedHeads
from crossfill.prediction.predict import predict
from crossfill.tagger.folder import load_model
from crossfill.tagger.train import train_model
from tests.methods.grids import GRID, SEEN, SETTINGS
from tests.scenarios import labelled, small_model

DOUBLE = torch.float64


def made(n_cells: int = 7, n_weights: int = 5, n_parameters: int = 9) -> tuple[torch.Tensor, ...]:
    rng = torch.Generator().manual_seed(0)
    design = torch.randn(n_cells, n_weights, dtype=DOUBLE, generator=rng)
    design[:, 0] = 1
    information = 20 * torch.rand(4, n_parameters, dtype=DOUBLE, generator=rng)
    return design, torch.tensor([0, 2, 3, 5]), information, torch.tensor([4.0, 30.0], dtype=DOUBLE)


def test_variances_are_those_of_a_dense_posterior_over_the_weights():
    design, seen, information, squares = made()
    found = open_variance(design, seen, information, squares)
    variances = prior_variances(design[seen], information, squares)
    prior = torch.diag(1 / torch.cat([variances[:1], variances[1:].expand(design.shape[1] - 1)]))
    for p in range(information.shape[1]):
        precision = prior + design[seen].T @ torch.diag(information[:, p]) @ design[seen]
        expected = (design @ torch.linalg.inv(precision) @ design.T).diagonal()
        torch.testing.assert_close(found[:, p], expected, rtol=1e-6, atol=1e-9)


def test_prior_variances_are_a_fixed_point():
    design, seen, information, squares = made(n_parameters=200)
    found = prior_variances(design[seen], information, squares)
    size = design.shape[1]
    prior = torch.cat([found[:1], found[1:].expand(size - 1)])
    determined = torch.zeros(2, dtype=DOUBLE)
    for p in range(information.shape[1]):
        precision = torch.diag(1 / prior) + design[seen].T @ torch.diag(information[:, p]) @ design[seen]
        left = 1 - torch.linalg.inv(precision).diagonal() / prior
        determined += torch.stack([left[0], left[1:].sum()])
    torch.testing.assert_close(squares / determined, found, rtol=0.05, atol=0)


def test_a_cell_unlike_all_seen_ones_is_the_most_doubtful():
    design, seen, information, squares = made()
    design[6, 1:] *= 10
    found = open_variance(design, seen, information, squares).mean(1)
    assert found[6] == found.max()
    assert found[seen].max() < found[6]


def test_trained_heads_have_it_and_it_is_saved(tmp_path: Path):
    config = SETTINGS.change({"generator.doubt": True})
    model = train_model(GRID, SEEN, config, tmp_path / "model").model
    heads = model.heads
    assert isinstance(heads, FactorizedHeads)
    assert heads.doubt is not None
    assert all((heads.doubt.variance(task) > 0).any() for task in (0, 1))
    cell = Cell("pos", "bbb")
    drawn = heads.doubt.sample(1, 1, 20_000)
    torch.testing.assert_close((drawn @ heads.doubt.basis(1)).var(0), heads.doubt.variance(1)[1], rtol=0.1, atol=1e-4)
    plain = train_model(GRID, SEEN, SETTINGS).model
    seeds = [torch.Generator().manual_seed(5) for _ in range(2)]
    one, two = (m.heads.sample([cell], 400, seed)[0].parameters for m, seed in zip((model, plain), seeds, strict=True))
    assert one.var(0).sum() > two.var(0).sum()
    loaded, _ = load_model(tmp_path / "model")
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)


def test_without_it_nothing_changes():
    data = labelled(Cell("pos", "ccc"), [4, 1])
    first, second = (small_model("pf-lr", *more) for more in ((), ("generator.doubt=true",)))
    one, two = (predict(m, data.inputs, Cell("pos", "ccc"), 0).probabilities for m in (first, second))
    torch.testing.assert_close(one, two)
    assert "doubt" not in " ".join(first.state_dict())
    with pytest.raises(AttributeError):
        _ = first.heads.doubt.basis
