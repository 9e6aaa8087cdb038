"""The entropy of predictions in unseen cells: its distribution, and entropy against score."""

import math

import numpy as np
from matplotlib.axes import Axes

from crossfill.evaluation.results import entropy_correlation, entropy_points
from crossfill.report.figures.style import TASK_COLOURS, TASK_MARKERS, WIDTH, Drawing, canvas, row_of_axes, signed
from crossfill.report.rendering import shown
from crossfill.studies.run_folder import Results


def draw_entropies(results: Results) -> list[Drawing]:
    """Box plots of each cell, sorted by median, one row per task, for the method in focus."""
    method = results.focus
    found = _entropies(results, method)
    if not found:
        return []
    with canvas(WIDTH, 0.4 + 1.55 * len(found)) as figure:
        rows = figure.subplots(len(found), 1, squeeze=False)[:, 0]
        for axes, (task, cells), colour in zip(rows, found.items(), TASK_COLOURS * len(found), strict=False):
            languages = sorted(cells, key=lambda language: float(np.median(cells[language])))
            values = [cells[language] for language in languages]
            drawn = axes.boxplot(
                values, whis=(5, 95), showfliers=False, widths=0.7, patch_artist=True,
                medianprops={"color": "black", "linewidth": 1.2}, whiskerprops={"linewidth": 0.7}, showcaps=False,
            )  # fmt: skip
            for patch in drawn["boxes"]:
                patch.set(facecolor=colour, alpha=0.45, linewidth=0.7)
            axes.set_xticks(range(1, len(languages) + 1), languages, rotation=90 if len(languages) > 20 else 0)
            axes.tick_params(axis="x", length=0)
            axes.set_title(task)
            axes.set_ylim(bottom=0)
        figure.supylabel(f"entropy of {shown(method)}'s predictions, nats", fontsize=8)
    medians = {f"{t}/{l}": float(np.median(v)) for t, cells in found.items() for l, v in cells.items()}
    least, most = min(medians, key=lambda c: medians[c]), max(medians, key=lambda c: medians[c])
    alt = (
        f"Box plots of the entropy of up to 800 words in each of {len(medians)} unseen cells, sorted by median. "
        f"Boxes hold half the words, whiskers nine tenths. Least in {least} (median {medians[least]:.2f} nats), most "
        f"in {most} ({medians[most]:.2f})."
    )
    return [Drawing("entropies", "Entropy of predictions in unseen cells", alt, figure)]


def _entropies(results: Results, method: str) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    for result in results.unseen(results.proper(method)):
        if result.entropies:
            found.setdefault(result.cell.task, {}).setdefault(result.cell.language, []).extend(result.entropies)
    return dict(sorted(found.items()))


def draw_entropy_scores(results: Results) -> list[Drawing]:
    """One panel each for the method in focus and its rival."""
    methods = dict.fromkeys((results.focus, results.rival))
    chosen = [method for method in methods if entropy_points(results.unseen(results.proper(method)))]
    if not chosen:
        return []
    told = []
    with canvas(WIDTH, 3.1) as figure:
        for axes, method in zip(row_of_axes(figure, len(chosen), sharey=True), chosen, strict=True):
            told.append(scatter(axes, results, method))
        figure.axes[0].set_ylabel("score, %")
    alt = "Scatter plots of the mean entropy of each unseen cell against its score. " + " ".join(told)
    return [Drawing("entropy-score", "Entropy against score", alt, figure)]


def scatter(axes: Axes, results: Results, method: str) -> str:
    """Draw a method's panel; returns a description of it for the alternative text."""
    name, found = shown(method), results.unseen(results.proper(method))
    told = []
    for i, task in enumerate(results.tasks):
        points = entropy_points(found, task)
        r = entropy_correlation(points).r
        label = task if math.isnan(r) else f"{task}, r = {signed(r)}"
        axes.scatter(
            [x for x, _ in points.values()], [100 * y for _, y in points.values()], s=16, alpha=0.85, linewidth=0,
            color=TASK_COLOURS[i % len(TASK_COLOURS)], marker=TASK_MARKERS[i % len(TASK_MARKERS)], label=label,
        )  # fmt: skip
        told.append(label)
    pooled, p, _ = entropy_correlation(entropy_points(found))
    axes.set_title(f"{name}: pooled r = {signed(pooled)} (p = {p:.1g})".replace("e-", "e−"))
    axes.set_xlabel("mean entropy of a cell's predictions, nats")
    axes.set_ylim(0, 100)
    axes.set_xlim(left=0)
    axes.grid(visible=True, axis="both")
    axes.legend(handletextpad=0.2, frameon=True, framealpha=0.85, edgecolor="none")
    return f"{name}: {'; '.join(told)}; pooled r = {signed(pooled)}."
