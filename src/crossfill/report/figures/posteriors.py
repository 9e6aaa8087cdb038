"""Posterior densities of some languages: 1,000 samples each, reduced to 4 dimensions by PCA."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from crossfill.measures.projection import pca
from crossfill.report.figures.style import TASK_COLOURS, WIDTH, Drawing, canvas, legend_above, row_of_axes
from crossfill.studies.run_folder import Results

N_SAMPLES, N_DIMENSIONS = 1000, 4
DASHES = ((1, 0), (4, 1.5), (1, 1), (5, 1, 1, 1))


def draw(results: Results) -> list[Drawing]:
    """The densities along each dimension, from the first partition and seed of the method in focus."""
    found = next((p for e in results.proper(results.focus) if (p := results.jobs[e.job]["posteriors"])), None)
    if not found or not found["chosen"]:
        return []
    samples = {language: sample(q, seed) for seed, (language, q) in enumerate(sorted(found["chosen"].items()))}
    projected, shares, _ = pca(np.concatenate(list(samples.values())), N_DIMENSIONS)
    parts = dict(zip(samples, np.split(projected, len(samples)), strict=True))
    with canvas(WIDTH, 2.3) as figure:
        for d, axes in enumerate(row_of_axes(figure, projected.shape[1])):
            grid = np.linspace(projected[:, d].min(), projected[:, d].max(), 200)
            for i, (language, points) in enumerate(parts.items()):
                density = kernel_density(points[:, d], grid)
                colour = TASK_COLOURS[i % len(TASK_COLOURS)]
                axes.plot(grid, density, color=colour, dashes=DASHES[i % len(DASHES)], label=language, linewidth=1.4)
                axes.fill_between(grid, density, color=colour, alpha=0.12, linewidth=0)
            axes.set_title(f"dimension {d + 1} ({shares[d]:.0%})")
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            axes.set_ylim(bottom=0)
        legend_above(figure, len(parts))
    spread = ", ".join(f"{language} {float(np.std(points[:, 0], ddof=1)):.2f}" for language, points in parts.items())
    alt = (
        f"Densities of {N_SAMPLES:,} samples from the posteriors of {', '.join(parts)}, along the first "
        f"{projected.shape[1]} principal components. Standard deviations along the first: {spread}."
    )
    return [Drawing("posteriors", "Posteriors of languages", alt, figure)]


def sample(posterior: Mapping[str, Any], seed: int) -> Float[np.ndarray, "samples latent"]:
    """Samples m + δ ⊙ ε + B ζ of a posterior, with ε and ζ ~ N(0, I)."""
    rng = np.random.default_rng(seed)
    mean, scale = np.array(posterior["mean"]), np.sqrt(posterior["variance"])
    factor = np.array(posterior["factor"]).reshape(len(mean), -1)
    epsilon, zeta = rng.standard_normal((N_SAMPLES, len(mean))), rng.standard_normal((N_SAMPLES, factor.shape[1]))
    return mean + scale * epsilon + zeta @ factor.T


def kernel_density(
    points: Float[np.ndarray, "points"], grid: Float[np.ndarray, "places"]
) -> Float[np.ndarray, "places"]:
    """Gaussian kernel density estimate, with Scott's bandwidth."""
    width = max(float(points.std(ddof=1)), 1e-9) * len(points) ** -0.2
    z = (grid[:, None] - points) / width
    return np.exp(-0.5 * z**2).mean(1) / (width * np.sqrt(2 * np.pi))
