"""Fisher's information of heads in their training words, for posteriors that are computed in closed form."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.encoders.base import Inputs
from crossfill.model import Model

CHUNK_SENTENCES = 256
"""Even, so that the sentences of a pair stay together."""


@torch.no_grad()
def encoded(model: Model, inputs: Inputs, task: str) -> Iterator[Float[Tensor, "_ inputs"]]:
    """The features of all words, or of what else the task labels, each with a 1 for the bias, some at a time."""
    for sentences in torch.arange(len(inputs.lengths)).split(CHUNK_SENTENCES):
        features = model.features(inputs.take(sentences), task)
        yield torch.cat([features, torch.ones_like(features[:, :1])], 1)


def uncorrelated(parts: Sequence[Float[Tensor, "_ inputs"]]) -> Float[Tensor, "inputs inputs"]:
    """The basis, one vector a column, in which the features of these words are uncorrelated."""
    return torch.linalg.eigh(torch.stack([part.T @ part for part in parts]).sum(0)).eigenvectors


def information(
    theta: Float[Tensor, "labels inputs"],
    parts: Sequence[Float[Tensor, "_ inputs"]],
    basis: Float[Tensor, "inputs inputs"],
) -> Float[Tensor, "labels inputs"]:
    """h = Σ p (1 − p) z²: the diagonal of Fisher's information in the basis, z = x · basis, summed over words."""
    found = torch.zeros_like(theta)
    for part in parts:
        p = (part @ theta.T).softmax(-1)
        found += (p * (1 - p)).T @ (part @ basis).square()
    return found
