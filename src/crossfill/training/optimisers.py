"""Adam for dense parameters, and Adam row by row for the posteriors, which updates only the rows drawn in a step."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from crossfill.config import TrainingConfig
from crossfill.model import Model

_SLOTS = ("mean", "square", "steps")


class Optimisers:
    """Both optimisers, with one learning-rate schedule and one gradient norm over all parameters."""

    def __init__(self, model: Model, config: TrainingConfig) -> None:
        sparse = [p for p in model.heads.rows if p.requires_grad]
        slow = list(model.heads.deviations) if config.deviation_learning_rate else []
        separate = config.encoder_learning_rate is not None
        encoder = [p for p in model.encoder.parameters() if p.requires_grad] if separate else []
        known = {id(parameter) for parameter in (*sparse, *slow, *encoder)}
        dense = [p for p in model.parameters() if id(p) not in known and p.requires_grad]
        self.config = config
        self.parameters = [*dense, *slow, *encoder, *sparse]
        rate = config.learning_rate
        groups = [
            {"params": dense, "lr": rate},
            {"params": slow, "lr": config.deviation_learning_rate or rate},
            {"params": encoder, "lr": config.encoder_learning_rate or rate},
        ]
        groups = [group for group in groups if group["params"]]
        self.optimisers: list[torch.optim.Optimizer] = []
        if groups:
            self.optimisers.append(torch.optim.AdamW(groups, weight_decay=config.weight_decay, fused=True))
        if sparse:
            self.optimisers.append(RowAdam(sparse, lr=config.latent_learning_rate or rate))
        self.rates = [[group["lr"] for group in optimiser.param_groups] for optimiser in self.optimisers]

    def step(self, step: int) -> None:
        """Clip the gradients, update the parameters, and clear the gradients."""
        clip_gradients(self.parameters, self.config.clip)
        share = 1.0 if self.config.decay == "constant" else 1.0 - step / self.config.steps
        for optimiser, rates in zip(self.optimisers, self.rates, strict=True):
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * share
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """Return the state of the optimisers, as named tensors."""
        return {
            f"{which}/{parameter}/{name}": torch.as_tensor(value)
            for which, optimiser in enumerate(self.optimisers)
            for parameter, slots in optimiser.state_dict()["state"].items()
            for name, value in slots.items()
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore the state that `state` returned."""
        for which, optimiser in enumerate(self.optimisers):
            state = optimiser.state_dict()
            state["state"] = {}
            for name, tensor in tensors.items():
                owner, parameter, slot = name.split("/")
                if int(owner) == which:
                    state["state"].setdefault(int(parameter), {})[slot] = tensor
            optimiser.load_state_dict(state)


@torch.no_grad()
def clip_gradients(parameters: list[nn.Parameter], limit: float) -> None:
    """Scale all gradients, sparse ones included, so that their joint norm is at most `limit`."""
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            gradients.append(parameter.grad.values())
        elif parameter.grad is not None:
            gradients.append(parameter.grad)
    norm = torch.nn.utils.get_total_norm(gradients)
    if norm > limit:
        for gradient in gradients:
            gradient.mul_(limit / norm)


class RowAdam(torch.optim.Optimizer):
    """Adam in which a row that was not drawn stays as it is, and one that was takes the step it would take alone.

        m ← m + (1 − β₁)(g − m),  v ← v + (1 − β₂)(g² − v)
        row ← row − lr · m / (1 − β₁ⁿ) / (√(v / (1 − β₂ⁿ)) + ε)        n: how often this row was drawn

    With one count for all rows, as in torch's `SparseAdam`, a row that is first drawn late in training takes a step
    that is (1 − β₁) / √(1 − β₂) times too long: about three. Gradients have to be sparse.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: float) -> None:
        super().__init__(params, {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-8})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Update the rows that have a gradient."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad.coalesce(), group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state, (beta1, beta2) = self.state[parameter], group["betas"]
        if not state:
            state["mean"], state["square"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            state["steps"] = torch.zeros(len(parameter), dtype=parameter.dtype, device=parameter.device)
        rows, g = gradient.indices()[0], gradient.values()
        n = state["steps"].index_select(0, rows).add_(1)
        m = state["mean"].index_select(0, rows).lerp_(g, 1 - beta1)
        v = state["square"].index_select(0, rows).mul_(beta2).addcmul_(g, g, value=1 - beta2)
        for slot, value in zip(_SLOTS, (m, v, n), strict=True):
            state[slot].index_copy_(0, rows, value)
        n = n.unsqueeze(1)
        scale = v.div_(1 - beta2**n).sqrt_().add_(group["eps"])
        parameter.index_add_(0, rows, m.div_(scale.mul_(1 - beta1**n)), alpha=-group["lr"])
