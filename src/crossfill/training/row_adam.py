"""Adam for tables of which a step draws only some rows: every row counts its own steps."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from crossfill.errors import CheckpointError

_SLOTS = ("mean", "square", "steps")


class RowAdam(torch.optim.Optimizer):
    """Adam in which a row that was not drawn stays as it is, and one that was takes the step it would take alone.

        m ← m + (1 − β₁)(g − m),  v ← v + (1 − β₂)(g² − v)
        row ← row − lr · m / (1 − β₁ⁿ) / (√(v / (1 − β₂ⁿ)) + ε)        n: how often this row was drawn

    With one count for all rows, as in torch's `SparseAdam`, a row that is first drawn late in training takes a step
    that is (1 − β₁) / √(1 − β₂) times too long: about three. Gradients have to be sparse.
    """

    def __init__(
        self, params: Iterable[nn.Parameter], lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Update the rows that have a gradient."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad.coalesce(), group)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        for slots in state_dict["state"].values():
            if set(slots) != set(_SLOTS):
                found = ", ".join(sorted(slots))
                raise CheckpointError(
                    f"expected {', '.join(_SLOTS)} of every row in the optimiser's state, got {found}: the run was "
                    "started by another version; start it again without --resume"
                )
        super().load_state_dict(state_dict)

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
