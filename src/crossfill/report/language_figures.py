"""Posteriors of languages: densities, and similarities by posterior means against typology."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from crossfill.measures.significance import correlation, pca
from crossfill.report.drawing import TASK_COLOURS, Drawing, canvas, legend_above, look, row_of_axes
from crossfill.report.rendering import true_minus
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


def draw_language_similarity(results: StudyResults) -> list[Drawing]:
    """Draw two similarity matrices in the same order, and a scatter plot of all pairs of languages."""
    known = results.similarity
    means = [p["means"] for e in results.proper(results.focus) if (p := results.jobs[e.job]["posteriors"])]
    if known is None or not means:
        return []
    rows = [row for row, language in enumerate(known["languages"]) if all(language in m for m in means)]
    typology = np.array(known["similarity"])
    left, rows = rows[1:], rows[:1]
    while left:  # each language is followed by the most similar one that is left
        rows.append(left.pop(int(typology[rows[-1], left].argmax())))
    languages, typology = [known["languages"][row] for row in rows], typology[np.ix_(rows, rows)]
    latent = np.mean([cosines(np.array([m[language] for language in languages])) for m in means], axis=0)
    upper = np.triu_indices(len(languages), 1)
    r = true_minus(f"{correlation(typology[upper], latent[upper]).r:.2f}")
    with canvas(2.5) as figure:
        first, second, scatter = row_of_axes(figure, 3, widths=(1, 1, 0.85))
        for axes, matrix, title in ((first, latent, "posterior means"), (second, typology, known["source"])):
            image = axes.imshow(matrix, cmap="PuOr_r", vmin=-1, vmax=1, interpolation="nearest")
            axes.set_title(title)
            axes.grid(visible=False)
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0, labelsize=min(6.0, 130 / len(languages)))
            axes.set_xticks(range(len(languages)), languages, rotation=90)
            axes.set_yticks(range(len(languages)), languages)
        figure.colorbar(image, ax=second, shrink=0.75, aspect=18, pad=0.03, ticks=(-1, 0, 1)).set_label("cosine")
        scatter.scatter(typology[upper], latent[upper], s=5, alpha=0.5, linewidth=0, color=look(results.focus).colour)
        scatter.set(xlabel=known["source"], ylabel="posterior means", title=f"pairs: r = {r}")
        scatter.grid(visible=True, axis="both")
    alt = (
        f"Cosine similarities of {len(languages)} languages by posterior mean and by {known['source']}, as matrices in "
        f"the same order and as a scatter plot of pairs. Correlation over pairs: {r}."
    )
    return [Drawing("language-similarity", "Languages by posterior and by typology", alt, figure)]


def cosines(vectors: Float[np.ndarray, "rows latent"]) -> Float[np.ndarray, "rows rows"]:
    """Compute the cosine similarity of all pairs after centring: what all languages share does not tell them apart."""
    centred = vectors - vectors.mean(0)
    unit = centred / np.maximum(1e-12, np.linalg.norm(centred, axis=1, keepdims=True))
    return unit @ unit.T
