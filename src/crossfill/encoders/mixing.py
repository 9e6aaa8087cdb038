"""A learned mean of a network's layers."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class LayerMix(nn.Module):
    """γ Σₖ softmax(w)ₖ hₖ over layers k, as ELMo mixes them; starts as the plain mean."""

    def __init__(self, n_layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(n_layers))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, states: Float[Tensor, "words layers features"]) -> Float[Tensor, "words features"]:
        return self.gamma * torch.einsum("k,wkf->wf", self.weights.softmax(0), states)
