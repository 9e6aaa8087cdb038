"""Similarity of languages by posterior means, against URIEL (or true settings, on the artificial grid)."""

import numpy as np
from jaxtyping import Float

from crossfill.measures.significance import correlation
from crossfill.report.figures.style import WIDTH, Drawing, canvas, look, row_of_axes, signed
from crossfill.studies.run_folder import Results


def draw(results: Results) -> list[Drawing]:
    """Two similarity matrices in the same order, and a scatter plot of all pairs of languages."""
    known = results.similarity
    means = [p["means"] for e in results.proper(results.focus) if (p := results.jobs[e.job]["posteriors"])]
    if known is None or not means:
        return []
    languages = [language for language in known["languages"] if all(language in m for m in means)]
    rows = [known["languages"].index(language) for language in languages]
    typology = np.array(known["similarity"])[np.ix_(rows, rows)]
    order = _ordered(typology)
    languages, typology = [languages[i] for i in order], typology[np.ix_(order, order)]
    latent = np.mean([cosines(np.array([m[language] for language in languages])) for m in means], axis=0)
    upper = np.triu_indices(len(languages), 1)
    r = correlation(typology[upper], latent[upper]).r
    with canvas(WIDTH, 2.5) as figure:
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
        scatter.set(xlabel=known["source"], ylabel="posterior means", title=f"pairs: r = {signed(r)}")
        scatter.grid(visible=True, axis="both")
    alt = (
        f"Cosine similarities of {len(languages)} languages by posterior mean and by {known['source']}, as matrices in "
        f"the same order and as a scatter plot of pairs. Correlation over pairs: {signed(r)}."
    )
    return [Drawing("language-similarity", "Languages by posterior and by typology", alt, figure)]


def cosines(vectors: Float[np.ndarray, "rows latent"]) -> Float[np.ndarray, "rows rows"]:
    """Cosine similarity of all pairs after centring: what all languages share does not tell them apart."""
    centred = vectors - vectors.mean(0)
    unit = centred / np.maximum(1e-12, np.linalg.norm(centred, axis=1, keepdims=True))
    return unit @ unit.T


def _ordered(similarity: Float[np.ndarray, "rows rows"]) -> list[int]:
    """A greedy order: each language is followed by the most similar one not yet placed."""
    left = set(range(1, len(similarity)))
    order = [0]
    while left:
        order.append(max(left, key=lambda i: similarity[order[-1], i]))
        left.remove(order[-1])
    return order
