"""Learning curves by number of labelled sentences, and training curves by step."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crossfill.report.few_shot import ANNOTATED, SCRATCH, curves, mean_over, shared_cells
from crossfill.report.figures.style import WIDTH, Drawing, canvas, legend_above, look, row_of_axes
from crossfill.report.rendering import shown
from crossfill.studies.run_folder import Results


def draw_learning_curves(results: Results) -> list[Drawing]:
    """One panel per task, one line per method; dotted from scratch, dashed with chosen sentences."""
    by_task = {task: found for task in results.tasks if (found := curves(results, task))}
    if not by_task:
        return []
    told = []
    with canvas(WIDTH, 2.8) as figure:
        for axes, (task, found) in zip(row_of_axes(figure, len(by_task)), by_task.items(), strict=True):
            cells = shared_cells(found)
            for kind, by_k in found.items():
                line = [(k, 100 * y) for k in by_k if not math.isnan(y := mean_over(by_k, k, cells.get(k, ())))]
                if not line:
                    continue
                special = {SCRATCH: ("#777777", (1, 1)), ANNOTATED: ("#000000", (4, 2))}
                ink, stroke = special.get(kind, (look(kind).colour, look(kind).dashes))
                name = kind if kind in special else shown(kind)
                x, y = zip(*line, strict=True)
                axes.plot(x, y, color=ink, dashes=stroke, marker=".", label=name)
                told.append(f"{task}, {name}: from {y[0]:.1f} at {x[0]} to {y[-1]:.1f} at {x[-1]} sentences")
            numbers = sorted(cells)
            axes.set_xscale("symlog", linthresh=1)
            axes.set_xticks(numbers, [str(k) for k in numbers])
            axes.minorticks_off()
            axes.set(title=task, xlabel="labelled sentences", ylabel="score, %")
        legend_above(figure, columns=6)
    alt = f"Mean scores of unseen cells by number of labelled sentences. {'. '.join(told)}."
    return [Drawing("learning-curves", "Learning curves of unseen cells", alt, figure)]


PANELS: dict[str, Callable[[Mapping[str, Any]], float | None]] = {
    "log-likelihood per word": lambda entry: -entry["nll"],
    "KL of all latents, nats": lambda entry: entry["kl"] or None,
    "score on dev data, %": lambda entry: 100 * entry["scores"]["mean"] if entry["scores"] else None,
}


def draw_training_curves(results: Results) -> list[Drawing]:
    """A thin line for each training, a thick one for the mean of a method."""
    told = []
    with canvas(WIDTH, 2.7) as figure:
        for axes, (title, read) in zip(row_of_axes(figure, len(PANELS)), PANELS.items(), strict=True):
            for method in results.methods:
                curves = _curves(results, method, read)
                for curve in curves:
                    axes.plot(*zip(*curve, strict=True), color=look(method).colour, linewidth=0.4, alpha=0.4)
                mean = _mean(curves)
                if mean:
                    name = shown(method)
                    x, y = zip(*mean, strict=True)
                    axes.plot(x, y, color=look(method).colour, linewidth=1.5, dashes=look(method).dashes, label=name)
                    told.append(f"{name}, {title}: from {y[0]:.3g} to {y[-1]:.3g}".replace("-", "−"))
            axes.set(title=title, xlabel="step")
            axes.margins(x=0.02)
            axes.ticklabel_format(axis="x", style="plain")
        legend_above(figure, len(results.methods), handlelength=2.6)
    return [Drawing("training", "Training curves", f"Curves over training steps. {'. '.join(told)}.", figure)]


def _curves(
    results: Results, method: str, read: Callable[[Mapping[str, Any]], float | None]
) -> list[list[tuple[int, float]]]:
    curves = []
    for job in dict.fromkeys(entry.job for entry in results.proper(method)):
        points = [(e["step"], value) for e in results.jobs[job]["history"] if (value := read(e)) is not None]
        if points:
            curves.append(points)
    return curves


def _mean(curves: list[list[tuple[int, float]]]) -> list[tuple[int, float]]:
    """The mean over curves at the steps that all of them reach; early stopping ends some sooner."""
    if not curves:
        return []
    shared = set.intersection(*({step for step, _ in curve} for curve in curves))
    return [(step, float(np.mean([dict(curve)[step] for curve in curves]))) for step in sorted(shared)]
