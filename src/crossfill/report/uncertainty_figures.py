"""Uncertainty: entropies and entropy against score, reliability, risk against coverage, posteriors of languages."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from crossfill.evaluation.results import entropy_correlation, entropy_points, grouped
from crossfill.measures.significance import pca
from crossfill.report import drawing
from crossfill.report.comparisons import pooled_reliability
from crossfill.report.rendering import method_label, true_minus
from crossfill.studies.run_folder import StudyResults

N_SAMPLES, N_DIMENSIONS = 1000, 4
"""Of the densities of posteriors."""
LEAST_SHARE = 0.001
"""Bins with a smaller share of the words are too noisy, and are not drawn."""
_DASHES = ((1, 0), (4, 1.5), (1, 1), (5, 1, 1, 1))


def draw_entropies(results: StudyResults) -> list[drawing.Drawing]:
    """Draw box plots of each cell, sorted by median, one row per task, for the method in focus."""
    unseen = [r for r in results.unseen(results.proper(results.focus)) if r.entropies]
    tasks = grouped(sorted(unseen, key=lambda r: r.cell.task), lambda r: r.cell.task)
    if not tasks:
        return []
    medians = {}
    with drawing.canvas(0.4 + 1.55 * len(tasks)) as figure:
        rows = figure.subplots(len(tasks), 1, squeeze=False)[:, 0]
        for axes, (task, of_task), colour in zip(rows, tasks.items(), drawing.TASK_COLOURS * len(tasks), strict=False):
            by_language = {
                language: [entropy for r in of_cell for entropy in r.entropies]
                for language, of_cell in grouped(of_task, lambda r: r.cell.language).items()
            }
            of_languages = {language: float(np.median(values)) for language, values in by_language.items()}
            medians |= {f"{task}/{language}": median for language, median in of_languages.items()}
            languages = sorted(by_language, key=lambda language: of_languages[language])
            axes.boxplot(
                [by_language[language] for language in languages], whis=(5, 95), showfliers=False, widths=0.7,
                patch_artist=True, medianprops={"color": "black", "linewidth": 1.2}, whiskerprops={"linewidth": 0.7},
                showcaps=False, boxprops={"facecolor": colour, "alpha": 0.45, "linewidth": 0.7},
            )  # fmt: skip
            axes.set_xticks(range(1, len(languages) + 1), languages, rotation=90 if len(languages) > 20 else 0)
            axes.tick_params(axis="x", length=0)
            axes.set_title(task)
            axes.set_ylim(bottom=0)
        figure.supylabel(f"entropy of {method_label(results.focus)}'s predictions, nats", fontsize=8)
    least, most = min(medians, key=lambda c: medians[c]), max(medians, key=lambda c: medians[c])
    alt = (
        f"Box plots of the entropy of up to 800 words in each of {len(medians)} unseen cells, sorted by median. "
        f"Boxes hold half the words, whiskers nine tenths. Least in {least} (median {medians[least]:.2f} nats), most "
        f"in {most} ({medians[most]:.2f})."
    )
    return [drawing.Drawing("entropies", "Entropy of predictions in unseen cells", alt, figure)]


def draw_entropy_scores(results: StudyResults) -> list[drawing.Drawing]:
    """Draw one panel each for the method in focus and its rival."""
    methods = dict.fromkeys((results.focus, results.rival))
    chosen = [method for method in methods if entropy_points(results.unseen(results.proper(method)))]
    if not chosen:
        return []
    with drawing.canvas(3.1) as figure:
        panels = zip(drawing.row_of_axes(figure, len(chosen), sharey=True), chosen, strict=True)
        descriptions = [scatter(axes, results, method) for axes, method in panels]
        figure.axes[0].set_ylabel("score, %")
    alt = "Scatter plots of the mean entropy of each unseen cell against its score. " + " ".join(descriptions)
    return [drawing.Drawing("entropy-score", "Entropy against score", alt, figure)]


def scatter(axes: Axes, results: StudyResults, method: str) -> str:
    """Draw a method's entropies against scores; return a description of it for the alternative text."""
    name, unseen = method_label(method), results.unseen(results.proper(method))
    labels = []
    for i, task in enumerate(results.tasks):
        points = entropy_points(unseen, task)
        r = entropy_correlation(points).r
        labels.append(task if math.isnan(r) else task + true_minus(f", r = {r:.2f}"))
        axes.scatter(
            [x for x, _ in points.values()], [100 * y for _, y in points.values()], s=16, alpha=0.85, linewidth=0,
            color=drawing.TASK_COLOURS[i % len(drawing.TASK_COLOURS)],
            marker=drawing.TASK_MARKERS[i % len(drawing.TASK_MARKERS)], label=labels[-1],
        )  # fmt: skip
    pooled, p, _ = entropy_correlation(entropy_points(unseen))
    pooled_text = true_minus(f"pooled r = {pooled:.2f}")
    axes.set_title(f"{name}: {pooled_text} (p = {p:.1g})".replace("e-", "e−"))
    axes.set(xlabel="mean entropy of a cell's predictions, nats", ylim=(0, 100))
    axes.set_xlim(left=0)
    axes.grid(visible=True, axis="both")
    axes.legend(handletextpad=0.2, frameon=True, framealpha=0.85, edgecolor="none")
    return f"{name}: {'; '.join(labels)}; {pooled_text}."


def draw_reliability(results: StudyResults) -> list[drawing.Drawing]:
    """Draw one panel for each task, words of all unseen cells together, averaged prediction."""
    tasks, descriptions = results.tasks, []
    with drawing.canvas(0.4 + drawing.WIDTH / max(2.2, len(tasks))) as figure:
        for axes, task in zip(drawing.row_of_axes(figure, len(tasks), sharey=True), tasks, strict=True):
            axes.plot([0, 1], [0, 1], color="#777777", linewidth=0.8, dashes=(2, 2))
            errors = []
            for method in results.methods:
                if unseen := results.unseen(results.proper(method), task):
                    bins = pooled_reliability(unseen)
                    is_drawn = bins.count > LEAST_SHARE * bins.count.sum()
                    x, y = bins.confidence[is_drawn], bins.accuracy[is_drawn]
                    drawing.plot(axes, method, x, y, marker=drawing.look(method).marker, markersize=3, linewidth=1.1)
                    errors.append(f"{method_label(method)} {bins.error():.2f}")
            descriptions.append(f"{task}: {', '.join(errors)}")
            axes.set(title=task, xlim=(0, 1), ylim=(0, 1), xlabel="confidence", aspect="equal")
            axes.grid(visible=True, axis="both")
        figure.axes[0].set_ylabel("share that is right")
        drawing.legend_above(figure, len(results.methods), handlelength=2.4)
    alt = (
        "Reliability diagrams: accuracy against confidence in 15 bins (those with over 0.1 % of the words), "
        "words of all unseen cells together, averaged prediction; on the diagonal confidence is right. "
        f"Expected calibration errors: {'; '.join(descriptions)}."
    )
    return [drawing.Drawing("reliability", "Reliability on unseen cells", alt, figure)]


def draw_risk_coverage(results: StudyResults) -> list[drawing.Drawing]:
    """Draw one panel for each task: the mean curve over unseen cells, averaged prediction."""
    descriptions = []
    with drawing.canvas(2.8) as figure:
        for axes, task in zip(drawing.row_of_axes(figure, len(results.tasks)), results.tasks, strict=True):
            ends = []
            for method in results.methods:
                if curves := [result.risk_coverage for result in results.unseen(results.proper(method), task)]:
                    risk = 100 * np.mean(curves, axis=0)
                    drawing.plot(axes, method, 100 * np.arange(1, len(risk) + 1) / len(risk), risk, linewidth=1.4)
                    half, full = risk[len(risk) // 2 - 1], risk[-1]
                    ends.append(f"{method_label(method)} {half:.0f} % at half, {full:.0f} % at full coverage")
            descriptions.append(f"{task}: {'; '.join(ends)}")
            axes.set(title=task, xlabel="words answered, %", xlim=(0, 100))
            axes.set_ylim(bottom=0)
            axes.grid(visible=True, axis="both")
        figure.axes[0].set_ylabel("errors among them, %")
        drawing.legend_above(figure, len(results.methods), handlelength=2.6)
    alt = f"Risk–coverage curves, means over unseen cells, lower is better. Errors: {'. '.join(descriptions)}."
    return [drawing.Drawing("risk-coverage", "Risk and coverage on unseen cells", alt, figure)]


def draw_posteriors(results: StudyResults) -> list[drawing.Drawing]:
    """Draw the densities along each dimension, from the first partition and seed of the method in focus."""
    from scipy.stats import gaussian_kde

    posterior = next((p for e in results.proper(results.focus) if (p := results.jobs[e.job]["posteriors"])), None)
    if not posterior or not posterior["chosen"]:
        return []
    samples = {language: sample(q, seed) for seed, (language, q) in enumerate(sorted(posterior["chosen"].items()))}
    projected, shares, _ = pca(np.concatenate(list(samples.values())), N_DIMENSIONS)
    parts = dict(zip(samples, np.split(projected, len(samples)), strict=True))
    with drawing.canvas(2.3) as figure:
        for d, axes in enumerate(drawing.row_of_axes(figure, projected.shape[1])):
            grid = np.linspace(projected[:, d].min(), projected[:, d].max(), 200)
            for i, (language, points) in enumerate(parts.items()):
                density = gaussian_kde(points[:, d])(grid)  # bandwidth: Scott's
                colour = drawing.TASK_COLOURS[i % len(drawing.TASK_COLOURS)]
                axes.plot(grid, density, color=colour, dashes=_DASHES[i % len(_DASHES)], label=language, linewidth=1.4)
                axes.fill_between(grid, density, color=colour, alpha=0.12, linewidth=0)
            axes.set(title=f"dimension {d + 1} ({shares[d]:.0%})", yticks=[])
            axes.spines["left"].set_visible(False)
            axes.set_ylim(bottom=0)
        drawing.legend_above(figure, len(parts))
    spread = ", ".join(f"{language} {float(np.std(points[:, 0], ddof=1)):.2f}" for language, points in parts.items())
    alt = (
        f"Densities of {N_SAMPLES:,} samples from the posteriors of {', '.join(parts)}, along the first "
        f"{projected.shape[1]} principal components. Standard deviations along the first: {spread}."
    )
    return [drawing.Drawing("posteriors", "Posteriors of languages", alt, figure)]


def sample(posterior: Mapping[str, Any], seed: int) -> Float[np.ndarray, "samples latent"]:
    """Draw samples m + δ ⊙ ε + B ζ of a posterior, with ε and ζ ~ N(0, I)."""
    rng = np.random.default_rng(seed)
    mean, scale = np.array(posterior["mean"]), np.sqrt(posterior["variance"])
    factor = np.array(posterior["factor"]).reshape(len(mean), -1)
    epsilon, zeta = rng.standard_normal((N_SAMPLES, len(mean))), rng.standard_normal((N_SAMPLES, factor.shape[1]))
    return mean + scale * epsilon + zeta @ factor.T
