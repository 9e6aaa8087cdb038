"""The generator's output layers against nn.Linear."""

import copy

import pytest
import torch
from torch import nn

from crossfill.methods.factorized.generator import OutputLayer


def pair(dtype: torch.dtype = torch.float64) -> tuple[OutputLayer, nn.Linear]:
    torch.manual_seed(0)
    ours, plain = OutputLayer(5, 7, dtype=dtype), nn.Linear(5, 7, dtype=dtype)
    plain.load_state_dict(ours.state_dict())
    return ours, plain


@pytest.mark.parametrize("uses", [1, 2])
def test_values_and_gradients_are_those_of_an_affine_layer(uses: int):
    found = []
    for layer in pair():
        torch.manual_seed(1)
        x = torch.randn(3, 2, 5, dtype=torch.float64, requires_grad=True)
        (sum(layer(x * (i + 1)) for i in range(uses)) ** 2).sum().backward()
        found.append((layer(x).detach(), x.grad, layer.weight.grad, layer.bias.grad))
    for ours, plain in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-12, atol=1e-12)


def test_steps_share_the_memory_of_the_gradient_and_forget_its_content():
    ours, plain = pair()
    places = set()
    for seed in range(4):
        for layer in (ours, plain):
            torch.manual_seed(seed)
            layer.zero_grad(set_to_none=True)
            layer(torch.randn(4, 5, dtype=torch.float64)).square().sum().backward()
        assert ours.weight.grad is not None
        places.add(ours.weight.grad.data_ptr())
        torch.testing.assert_close(ours.weight.grad, plain.weight.grad)
    assert len(places) == 1


def test_it_is_saved_and_copied_as_an_affine_layer():
    ours, plain = pair()
    ours(torch.randn(4, 5, dtype=torch.float64)).sum().backward()
    assert ours.state_dict().keys() == plain.state_dict().keys()
    other = copy.deepcopy(ours)
    other.zero_grad(set_to_none=True)
    other(torch.ones(4, 5, dtype=torch.float64)).sum().backward()
    assert other.weight.grad is not None
    assert ours.weight.grad is not None
    assert other.weight.grad.data_ptr() != ours.weight.grad.data_ptr()
    assert not torch.equal(other.weight.grad, ours.weight.grad)


def test_frozen_and_converted_layers():
    ours, plain = pair()
    ours(torch.randn(4, 5, dtype=torch.float64)).sum().backward()
    ours.zero_grad(set_to_none=True)
    ours.float()
    ours(torch.ones(2, 5)).sum().backward()
    assert ours.weight.grad is not None
    assert ours.weight.grad.dtype == torch.float32
    ours.weight.requires_grad_(False)
    x = torch.ones(2, 5, requires_grad=True)
    ours(x).sum().backward()
    torch.testing.assert_close(x.grad, plain.weight.float().sum(0).expand(2, 5))
