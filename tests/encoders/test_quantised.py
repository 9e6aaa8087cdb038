"""Affine layers in eight bits, against sums over whole numbers one by one, and against the layers themselves."""

import pytest
import torch
from torch import nn

from crossfill.encoders.huggingface import QuantisedLinear, quantise


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 24), (7, 24), (2, 3, 24)])
def test_outputs_are_those_of_whole_numbers(bias: bool, shape: tuple[int, ...]):
    torch.manual_seed(0)
    layer, values = nn.Linear(24, 16, bias=bias), torch.randn(shape)
    weight, rows = layer.weight.tolist(), values.reshape(-1, 24).tolist()
    expected = []
    for row in rows:
        s = max(map(abs, row)) / 127
        outputs = []
        for column, weights in enumerate(weight):
            scale = max(map(abs, weights)) / 127
            total = sum(round(x / s) * round(w / scale) for x, w in zip(row, weights, strict=True))
            outputs.append(total * s * scale + (layer.bias[column].item() if bias else 0.0))
        expected.append(outputs)
    with torch.inference_mode():
        quantised = QuantisedLinear(layer)(values)
    torch.testing.assert_close(quantised, torch.tensor(expected).reshape(*shape[:-1], 16), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(quantised, layer(values).detach(), rtol=0.05, atol=0.02)


def test_rows_of_zeros_give_the_bias():
    layer = nn.Linear(8, 8)
    torch.testing.assert_close(QuantisedLinear(layer)(torch.zeros(3, 8)), layer.bias.expand(3, 8))


def test_all_affine_layers_of_a_network_are_replaced():
    network = nn.ModuleDict({"first": nn.Linear(8, 8), "rest": nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8))})
    quantise(network)
    kinds = [type(module) for module in network.modules()]
    assert nn.Linear not in kinds
    assert kinds.count(QuantisedLinear) == 2
