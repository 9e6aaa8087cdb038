"""The Gaussian process over languages: against a dense computation, and as data come in."""

import numpy as np
import pytest
import torch

from crossfill.grid.cells import Cell
from crossfill.methods.gaussian_process import GaussianProcessHeads, evidence
from crossfill.prediction.predict import predict_features
from tests.scenarios import INVENTORY, N_FEATURES, small_model

VECTORS = {"aaa": (1.0, 0.0, 0.0), "bbb": (0.8, 0.6, 0.0), "ccc": (0.0, 0.0, 1.0)}
CELLS = {language: Cell("pos", language) for language in VECTORS}


def words(n: int, seed: int = 0) -> torch.Tensor:
    mixing = torch.randn(N_FEATURES, N_FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(n, N_FEATURES, dtype=torch.float64, generator=rng) @ mixing


def with_one(features: torch.Tensor) -> torch.Tensor:
    return torch.cat([features, torch.ones_like(features[:, :1])], 1)


def heads(slope: float = 0.3) -> GaussianProcessHeads:
    found = small_model("gp").heads
    assert isinstance(found, GaussianProcessHeads)
    found.kernel.describe({language: np.array(vector) for language, vector in VECTORS.items()})
    torch.manual_seed(1)
    for slopes in found.kernel.slopes:
        torch.nn.init.normal_(slopes, std=slope)
    return found


def test_variances_are_those_of_a_dense_posterior():
    found, data = heads(), {"aaa": words(30), "bbb": words(50, 1)}
    found.fit("pos", {language: [with_one(x[:20]), with_one(x[20:])] for language, x in data.items()})
    basis, prior = found.get_buffer("basis_1"), found.prior_variances[1]
    torch.testing.assert_close(basis.T @ basis, torch.eye(N_FEATURES + 1, dtype=torch.float64))
    label, place = 2, 3
    precision = np.diag([1 / prior[0].item()] + [1 / prior[1].item()] * 3)
    for language, x in data.items():
        z = torch.cat([x, torch.ones(len(x), 1, dtype=torch.float64)], 1)
        p = (z @ found.plug_in([CELLS[language]])[0].parameters[0].T).softmax(-1)[:, label]
        information = (p * (1 - p) * (z @ basis)[:, place] ** 2).sum().item()
        v = np.array([1.0, *VECTORS[language]])
        precision += information * np.outer(v, v)
    covariance = np.linalg.inv(precision)
    for language, vector in VECTORS.items():
        v = np.array([1.0, *vector])
        assert found.variance(CELLS[language])[label, place].item() == pytest.approx(v @ covariance @ v, rel=1e-4)


def test_prior_variances_are_a_fixed_point_and_recover_those_that_made_the_weights():
    rng = torch.Generator().manual_seed(0)
    true, n, size = torch.tensor([0.5, 0.02], dtype=torch.float64), 4000, 4
    scale = torch.cat([true[:1], true[1:].expand(size - 1)]).sqrt()
    weights = torch.randn(n, size, dtype=torch.float64, generator=rng) * scale
    vectors = torch.randn(6, size, dtype=torch.float64, generator=rng)
    information = 100.0 * torch.einsum("ci,cj->ij", vectors, vectors).expand(n, -1, -1)
    noise = torch.randn(n, 6, dtype=torch.float64, generator=rng)
    # the mode under the true prior, of Gaussian observations of v · w with precision 100
    target = 100.0 * (weights @ vectors.T + noise / 10.0) @ vectors
    mode = torch.linalg.solve(information[0] + torch.diag(scale**-2), target.T).T
    found, covariance = evidence(information, mode[:, 0].square().sum(), mode[:, 1:].square().sum())
    torch.testing.assert_close(found, true, rtol=0.1, atol=0)
    determined = 1 - covariance[:, 0, 0] / found[0]
    assert mode[:, 0].square().sum() / determined.sum() == pytest.approx(found[0].item(), rel=0.02)


def test_a_posterior_moves_with_data_of_its_language_and_of_similar_ones():
    few, many = heads(), heads()
    few.fit("pos", {"aaa": [with_one(words(10))]})
    many.fit("pos", {"aaa": [with_one(words(1000))]})

    def sure(found: GaussianProcessHeads, language: str) -> float:
        return 1 / found.variance(CELLS[language]).mean().item()

    assert sure(many, "aaa") > 5 * sure(few, "aaa")
    assert sure(many, "aaa") > sure(many, "bbb") > sure(many, "ccc")  # bbb is like aaa, ccc is not
    x = words(200, 3)
    small_model_few, doubt = small_model("gp"), []
    for found in (few, many):
        small_model_few.heads = found
        doubt.append(predict_features(small_model_few, x, CELLS["aaa"], 200).mutual_information.mean().item())
    assert doubt[0] > 2 * doubt[1]


def test_draws_have_the_variance_and_the_mean_of_the_head():
    found = heads()
    found.fit("pos", {"aaa": [with_one(words(40))]})
    drawn = found.sample([CELLS["bbb"]], 20_000, torch.Generator().manual_seed(0))[0].parameters
    mean = found.plug_in([CELLS["bbb"]])[0].parameters[0]
    rotated = (drawn - mean) @ found.get_buffer("basis_1")
    torch.testing.assert_close(rotated.square().mean(0), found.variance(CELLS["bbb"]), rtol=0.06, atol=0)
    torch.testing.assert_close(drawn.mean(0), mean, atol=0.05, rtol=0)
    assert found.training_draw([CELLS["aaa"]], 3)[0].divergences == []
    assert INVENTORY.tasks[1] == "pos"
