"""The inputs of an adapted head's parameters: features, the one of the bias, and a one for each word known by heart.

Where a method has layers below its affine heads, features here are what the last of them gives.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.adaptation.words import lexicon, looked_up
from crossfill.errors import DataError
from crossfill.methods.baselines.joint_deep import DeepHead
from crossfill.model import Classifier, Head

Body = nn.Sequential
"""The layers below an affine head."""


def affine(classifier: Classifier) -> tuple[Body | None, Head]:
    """The affine head of a classifier, its last layer, and the layers below it if there are any."""
    if isinstance(classifier, DeepHead):
        *below, last = classifier.network
        return nn.Sequential(*below), Head.of(last)
    if isinstance(classifier, Head):
        return None, classifier
    raise DataError(f"expected a method with affine heads, got {type(classifier).__name__}")


def with_parameters(classifier: Classifier, parameters: Float[Tensor, "labels features_and_bias"]) -> Classifier:
    """An affine classifier with other parameters; a deeper one as it is."""
    body, head = affine(classifier)
    return classifier if body is not None else Head(parameters.unsqueeze(0).to(head.parameters))


@dataclass(frozen=True)
class Design:
    """The inputs of an adapted head's parameters, in this order: features, bias, words."""

    lexicon: Int[Tensor, "known"]
    """The words that are known by heart, sorted by their numbers."""

    @classmethod
    def of(cls, features: Float[Tensor, "words features_and_number"], learn_words: bool) -> "Design":
        """The design for these words; none is learnt by heart unless `learn_words`."""
        return cls(lexicon(features[:, -1] if learn_words else features[:0, -1]))

    def __call__(self, features: Float[Tensor, "words features_and_number"]) -> Float[Tensor, "words parameters"]:
        """One row per word, in float64."""
        given = features[:, :-1].double().cpu()
        ones = torch.zeros(len(given), 1 + len(self.lexicon), dtype=given.dtype)
        ones[:, 0] = 1
        words, places = looked_up(features[:, -1].cpu(), self.lexicon)
        ones[words, 1 + places] = 1
        return torch.cat([given, ones], 1)
