"""The demo's figure: scores of the methods on unseen cells, and entropy against score."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = {"pf-lr": "#0072B2", "pf-d": "#56B4E9", "jm": "#E69F00"}  # Okabe and Ito's, safe for the colour-blind
TASK_COLOURS = ("#009E73", "#D55E00", "#CC79A7", "#0072B2")
MARKERS = ("o", "s", "^", "D")


def draw_demo(results: Mapping[str, Any], path: Path) -> None:
    """Draw the figure of a demo's results into a file."""
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        bars, scatter = figure.subplots(1, 2, width_ratios=(1, 1))
        _scores(bars, results)
        _entropies(scatter, results)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)


def _scores(axes: Axes, results: Mapping[str, Any]) -> None:
    tasks = list(results["methods"][0]["unseen"])
    width = 0.8 / len(results["methods"])
    for i, run in enumerate(results["methods"]):
        heights = [100 * run["unseen"][task] for task in tasks]
        places = [j + (i - (len(results["methods"]) - 1) / 2) * width for j in range(len(tasks))]
        drawn = axes.bar(places, heights, width * 0.92, label=run["method"], color=COLOURS[run["method"]])
        axes.bar_label(drawn, fmt="%.0f", fontsize=7, padding=1)
    axes.set_xticks(range(len(tasks)), tasks)
    axes.set_ylim(0, 112)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel("score on unseen cells")
    axes.legend(frameon=False, ncols=3, loc="upper left", fontsize=8)
    axes.set_title("How well empty cells are filled", loc="left", fontsize=10)


def _entropies(axes: Axes, results: Mapping[str, Any]) -> None:
    run = results["methods"][0]
    tasks = list(run["unseen"])
    for task, marker, colour in zip(tasks, MARKERS, TASK_COLOURS, strict=False):
        cells = [cell for cell in run["cells"] if cell["cell"].startswith(f"{task}/") and not cell["seen"]]
        label = f"{task}  r = {run['entropy_correlations'][task]:.2f}".replace("-", "−")
        entropies, scores = [c["study_entropy"] for c in cells], [100 * c["averaged"]["score"] for c in cells]
        axes.scatter(entropies, scores, s=16, marker=marker, color=colour, alpha=0.8, label=label)
    axes.set_xlabel(f"mean entropy of {run['method']}'s predictions in a cell, in nats")
    axes.set_ylabel("score in that cell")
    axes.legend(frameon=False, fontsize=8)
    axes.set_title("Does doubt foretell error?", loc="left", fontsize=10)
