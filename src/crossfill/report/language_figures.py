"""Posteriors of languages as densities."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from crossfill.measures.significance import pca
from crossfill.report.drawing import TASK_COLOURS, Drawing, canvas, legend_above, row_of_axes
from crossfill.studies.run_folder import StudyResults

N_SAMPLES, N_DIMENSIONS = 1000, 4
DASHES = ((1, 0), (4, 1.5), (1, 1), (5, 1, 1, 1))


def draw_posteriors(results: StudyResults) -> list[Drawing]:
    """Draw the densities along each dimension, from the first partition and seed of the method in focus."""
    from scipy.stats import gaussian_kde

    posterior = next((p for e in results.proper(results.focus) if (p := results.jobs[e.job]["posteriors"])), None)
    if not posterior or not posterior["chosen"]:
        return []
    samples = {language: sample(q, seed) for seed, (language, q) in enumerate(sorted(posterior["chosen"].items()))}
    projected, shares, _ = pca(np.concatenate(list(samples.values())), N_DIMENSIONS)
    parts = dict(zip(samples, np.split(projected, len(samples)), strict=True))
    with canvas(2.3) as figure:
        for d, axes in enumerate(row_of_axes(figure, projected.shape[1])):
            grid = np.linspace(projected[:, d].min(), projected[:, d].max(), 200)
            for i, (language, points) in enumerate(parts.items()):
                density = gaussian_kde(points[:, d])(grid)  # bandwidth: Scott's
                colour = TASK_COLOURS[i % len(TASK_COLOURS)]
                axes.plot(grid, density, color=colour, dashes=DASHES[i % len(DASHES)], label=language, linewidth=1.4)
                axes.fill_between(grid, density, color=colour, alpha=0.12, linewidth=0)
            axes.set(title=f"dimension {d + 1} ({shares[d]:.0%})", yticks=[])
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
    """Draw samples m + δ ⊙ ε + B ζ of a posterior, with ε and ζ ~ N(0, I)."""
    rng = np.random.default_rng(seed)
    mean, scale = np.array(posterior["mean"]), np.sqrt(posterior["variance"])
    factor = np.array(posterior["factor"]).reshape(len(mean), -1)
    epsilon, zeta = rng.standard_normal((N_SAMPLES, len(mean))), rng.standard_normal((N_SAMPLES, factor.shape[1]))
    return mean + scale * epsilon + zeta @ factor.T
