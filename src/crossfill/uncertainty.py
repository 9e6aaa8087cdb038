"""How sure a prediction is: entropy, and the part of it that more knowledge of the parameters would remove."""

import numpy as np
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


def correlation(first: Float[np.ndarray, "n"], second: Float[np.ndarray, "n"]) -> float:
    """Pearson's r; NaN where either side does not vary."""
    if len(first) < 2 or first.std() == 0 or second.std() == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])
