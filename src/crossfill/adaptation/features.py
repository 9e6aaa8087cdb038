"""What a head's parameters are multiplied by: the features that its affine layer sees, and a one for the bias."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossfill.errors import DataError
from crossfill.methods.baselines.joint_deep import DeepHead
from crossfill.model import Classifier, Head

Body = Callable[[Float[Tensor, "words features"]], Float[Tensor, "words hidden"]]
"""The layers below an affine head."""


def affine(classifier: Classifier) -> tuple[Body | None, Head]:
    """The affine head of a classifier, its last layer, and the layers below it if there are any."""
    if isinstance(classifier, DeepHead):
        *below, last = classifier.network
        return nn.Sequential(*below), Head.of(last)
    if isinstance(classifier, Head):
        return None, classifier
    raise DataError(f"expected a method with affine heads, got {type(classifier).__name__}")


def with_ones(features: Float[Tensor, "words features"]) -> Float[Tensor, "words features_and_bias"]:
    """Features in float64, with the constant that the bias is multiplied by."""
    given = features.double().cpu()
    return torch.cat([given, torch.ones_like(given[:, :1])], 1)
