"""Entropy against score, a point per unseen cell, with the correlation."""

import math

from matplotlib.axes import Axes

from crossfill.evaluation.results import entropy_correlation, entropy_points
from crossfill.report.figures.style import TASK_COLOURS, TASK_MARKERS, WIDTH, Drawing, canvas, row_of_axes, signed
from crossfill.report.rendering import shown
from crossfill.studies.run_folder import Results


def draw(results: Results) -> list[Drawing]:
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
