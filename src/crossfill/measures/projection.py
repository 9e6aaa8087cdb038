"""Principal component analysis."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Projection(NamedTuple):
    """Points projected onto their principal components."""

    points: Float[np.ndarray, "points components"]
    shares: Float[np.ndarray, "components"]
    """Share of the variance that each component explains."""
    directions: Float[np.ndarray, "components latent"]


def pca(points: Float[np.ndarray, "points latent"], n: int) -> Projection:
    """Project the points onto their first n principal components."""
    centred = points - points.mean(0)
    _, values, directions = np.linalg.svd(centred, full_matrices=False)
    total = (values**2).sum()
    shares = values**2 / total if total else np.zeros_like(values)
    return Projection(centred @ directions[:n].T, shares[:n], directions[:n])
