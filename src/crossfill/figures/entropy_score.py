"""Entropy against score, a point per unseen cell, with the correlation."""

import math

from matplotlib.axes import Axes

from crossfill.experiments.averages import entropy_points, foresight, shown
from crossfill.experiments.results import Results
from crossfill.figures.style import TASK_COLOURS, TASK_MARKERS, WIDTH, Drawing, canvas, row_of_axes, signed


def draw(results: Results) -> list[Drawing]:
    """The Bayesian method beside the best of the point estimates."""
    chosen = [method for method in dict.fromkeys((results.bayesian, results.rival)) if entropy_points(results, method)]
    if not chosen:
        return []
    told = []
    with canvas(WIDTH, 3.1) as figure:
        for axes, method in zip(row_of_axes(figure, len(chosen), sharey=True), chosen, strict=True):
            told.append(_scatter(axes, results, method))
        figure.axes[0].set_ylabel("score, %")
    alt = "Scatter plots of the mean entropy of each unseen cell against its score. " + " ".join(told)
    return [Drawing("entropy-score", "Entropy against score", alt, figure)]


def _scatter(axes: Axes, results: Results, method: str) -> str:
    name = shown(method)
    told = []
    for i, task in enumerate(results.tasks):
        points = entropy_points(results, method, task)
        r = foresight(points).r
        found = "" if math.isnan(r) else f", r = {signed(r)}"
        axes.scatter(
            [x for _, x, _ in points], [100 * y for _, _, y in points], s=16, alpha=0.85, linewidth=0,
            color=TASK_COLOURS[i % len(TASK_COLOURS)], marker=TASK_MARKERS[i % len(TASK_MARKERS)], label=task + found,
        )  # fmt: skip
        told.append(task + found)
    pooled, p, _ = foresight(entropy_points(results, method))
    axes.set_title(f"{name}: pooled r = {signed(pooled)} (p = {p:.1g})".replace("e-", "e−"))
    axes.set_xlabel("mean entropy of a cell's predictions, nats")
    axes.set_ylim(0, 100)
    axes.set_xlim(left=0)
    axes.grid(visible=True, axis="both")
    axes.legend(handletextpad=0.2, frameon=True, framealpha=0.85, edgecolor="none")
    return f"{name}: {'; '.join(told)}; pooled r = {signed(pooled)}."
