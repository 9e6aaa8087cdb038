"""Dropout for wide features on a CPU, where drawing the mask is most of the work of `nn.Dropout`."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Dropout(nn.Module):
    """Sets numbers to zero at random and scales the rest to keep the mean; one random byte decides for each number.

    So the share is a multiple of 1/256: the nearest to the one asked for. One call of the generator serves eight
    numbers; on a CPU that takes about a fifth of the time of `nn.Dropout`.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.dropped = min(255, round(256 * share))
        """Of 256 numbers, those set to zero on average."""

    def forward(self, features: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch features"]:
        if not self.training or not self.dropped:
            return features
        n_words = -(-features.numel() // 8)
        limits = torch.iinfo(torch.int64)
        words = torch.empty(n_words, dtype=torch.int64, device=features.device).random_(limits.min, None)
        kept = words.view(torch.uint8)[: features.numel()].view(features.shape) >= self.dropped
        return features * kept * (256 / (256 - self.dropped))

    def extra_repr(self) -> str:
        return f"{self.dropped}/256"
