"""Entropy of predicted distributions, and mutual information between labels and parameters."""

from jaxtyping import Float
from torch import Tensor


def entropy(probabilities: Float[Tensor, "*batch labels"]) -> Float[Tensor, "*batch"]:
    """H(p) = −Σ p ln p, in nats."""
    return -(probabilities * probabilities.clamp_min(1e-30).log()).sum(-1)


def mutual_information(
    mean: Float[Tensor, "words labels"], samples: Float[Tensor, "samples words labels"]
) -> Float[Tensor, "words"]:
    """I(y; θ) = H(E p) − E H(p): the epistemic part of the entropy; `mean` is E p over the samples."""
    return (entropy(mean) - entropy(samples).mean(0)).clamp_min(0)
