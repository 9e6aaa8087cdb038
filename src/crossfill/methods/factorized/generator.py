"""The network f that generates the head of a cell from its task and language vectors.

Its output layers have nearly all of its weights, and take most of the time of a training step (`OutputLayer`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from crossfill.config import GeneratorConfig
from crossfill.model import Head, affine_layers

VARIANCE_FLOOR = 1e-10


@dataclass(frozen=True)
class HeadDistribution:
    """q(θ | t, l) = N(f_ψ(t, l), diag f_φ(t, l)) of one cell, for each draw of (t, l)."""

    mean: Float[Tensor, "samples labels features_and_bias"]
    variance: Float[Tensor, "samples labels features_and_bias"]

    def sample(self, generator: torch.Generator | None = None) -> Head:
        """Take one re-parametrised draw of θ for each draw of (t, l)."""
        noise = torch.randn(self.mean.shape, dtype=self.mean.dtype, device=self.mean.device, generator=generator)
        return Head(self.mean + self.variance.sqrt() * noise)

    def kl(self) -> Float[Tensor, "samples"]:
        """Compute KL(q(θ | t, l) ‖ N(0, I)), for the untied prior."""
        return 0.5 * (self.mean**2 + self.variance - 1 - self.variance.log()).flatten(1).sum(-1)


class Generator(nn.Module):
    """f_ψ and f_φ: a trunk over t ⊕ l ⊕ (t − l) ⊕ (t ⊙ l), then one mean and one variance layer for each task."""

    def __init__(self, latent_size: int, shapes: Sequence[tuple[int, int]], config: GeneratorConfig) -> None:
        """`shapes` are the labels and features of each task's head."""
        super().__init__()
        widths = [4 * latent_size, *config.hidden]
        self.trunk = nn.Sequential(*affine_layers(widths, config.dropout))
        self.n_labels = tuple(labels for labels, _ in shapes)
        sizes = [labels * (features + 1) for labels, features in shapes]
        self.means = nn.ModuleList(OutputLayer(widths[-1], size) for size in sizes)
        self.variances = nn.ModuleList(OutputLayer(widths[-1], size) for size in sizes)
        self._initialise(config)

    def forward(
        self,
        tasks: Sequence[int],
        task_latents: Float[Tensor, "samples cells latent"],
        language_latents: Float[Tensor, "samples cells latent"],
    ) -> list[HeadDistribution]:
        """Return the distributions over these cells' heads; all cells and samples go through the trunk in one batch."""
        hidden = self.hidden(task_latents, language_latents)
        heads: dict[int, HeadDistribution] = {}
        for task in sorted(set(tasks)):
            cells = [i for i, other in enumerate(tasks) if other == task]
            shape = (len(hidden), len(cells), self.n_labels[task], -1)
            of_task = hidden.index_select(1, torch.tensor(cells).to(hidden.device))
            mean = self.means[task](of_task).reshape(shape)
            variance = functional.softplus(self.variances[task](of_task).reshape(shape)) + VARIANCE_FLOOR
            heads |= {cell: HeadDistribution(mean[:, i], variance[:, i]) for i, cell in enumerate(cells)}
        return [heads[i] for i in range(len(tasks))]

    def hidden(
        self, t: Float[Tensor, "*cells latent"], l: Float[Tensor, "*cells latent"]
    ) -> Float[Tensor, "*cells hidden"]:
        """Compute what the output layers read: the trunk over t ⊕ l ⊕ (t − l) ⊕ (t ⊙ l)."""
        return self.trunk(torch.cat([t, l, t - l, t * l], dim=-1))

    def deviations(self) -> list[nn.Parameter]:
        """List parameters that make a task's cells differ: all but the biases of the mean layers, which cells share."""
        shared = {id(layer.get_parameter("bias")) for layer in self.means}
        return [parameter for parameter in self.parameters() if id(parameter) not in shared]

    @torch.no_grad()
    def _initialise(self, config: GeneratorConfig) -> None:
        for layer in (*self.means, *self.variances):
            layer.get_parameter("weight").mul_(config.deviation)
        if config.initial_variance is not None:
            for layer in self.variances:
                layer.get_parameter("bias").fill_(math.log(math.expm1(config.initial_variance)))


class OutputLayer(nn.Linear):
    """An affine layer that writes the gradient of its weight into memory that it keeps from step to step.

    A head has labels × features parameters, so that this gradient is tens of megabytes; asking the system for fresh
    memory of that size, page by page, takes longer than filling it. The gradient is in `weight.grad` after the backward
    pass, as ever, until the next one; `torch.autograd.grad` cannot ask for it.
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - as nn.Linear has it
        """Compute W x + b."""
        if torch.is_grad_enabled() and self.weight.requires_grad:
            return _Affine.apply(input, self.weight, self.bias, self)
        return functional.linear(input, self.weight, self.bias)

    def add_gradient(self, outer: Tensor, inner: Tensor) -> None:
        """Add outerᵀ · inner to the weight's gradient."""
        if self.weight.grad is not None:
            self.weight.grad.addmm_(outer.T, inner)
            return
        memory: Tensor | None = self.__dict__.get("_memory")
        if memory is None or memory.device != self.weight.device or memory.dtype != self.weight.dtype:
            memory = self.__dict__["_memory"] = torch.empty_like(self.weight)  # no buffer: it is no part of the model
        self.weight.grad = torch.mm(outer.T, inner, out=memory)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_memory"}


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
