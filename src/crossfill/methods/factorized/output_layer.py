"""The generator's output layers: nearly all of its weights, and most of the time of a training step."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class OutputLayer(nn.Linear):
    """An affine layer that writes the gradient of its weight into memory that it keeps from step to step.

    A head has labels × features parameters, so that this gradient is tens of megabytes; asking the system for fresh
    memory of that size, page by page, takes longer than filling it. The gradient is in `weight.grad` after the backward
    pass, as ever, until the next one; `torch.autograd.grad` cannot ask for it.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - as nn.Linear has it
        """W x + b."""
        if torch.is_grad_enabled() and self.weight.requires_grad:
            return _Affine.apply(input, self.weight, self.bias, self)
        return functional.linear(input, self.weight, self.bias)

    def add_gradient(self, outer: Tensor, inner: Tensor) -> None:
        """Add outerᵀ · inner to the weight's gradient."""
        if self.weight.grad is not None:
            self.weight.grad.addmm_(outer.T, inner)
            return
        kept: Tensor | None = self.__dict__.get("_kept")
        if kept is None or kept.device != self.weight.device or kept.dtype != self.weight.dtype:
            kept = self.__dict__["_kept"] = torch.empty_like(self.weight)  # no buffer: it is no part of the model
        self.weight.grad = torch.mm(outer.T, inner, out=kept)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}


class _Affine(torch.autograd.Function):
    """W x + b, whose backward pass leaves the gradient of W to its layer."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, layer: OutputLayer) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.layer = layer
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, Tensor, None]:
        x, weight = ctx.saved_tensors
        outer = gradients[0].flatten(0, -2).to(weight.dtype)
        ctx.layer.add_gradient(outer, x.flatten(0, -2).to(weight.dtype))
        inner = (outer @ weight).view_as(x) if ctx.needs_input_grad[0] else None
        return inner, None, outer.sum(0), None
