"""Learning curves of chosen and of random sentences, from the curves that `benchmarks/annotate.py` writes."""

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

COLOURS = {"random": "#777777", "entropy": "#0072B2", "bald": "#D55E00", "diversity": "#009E73"}


def draw_annotation(curves: Path, path: Path) -> None:
    """Draw a column for each task: mean score over cells and seeds by annotated sentences, and by annotated words."""
    found = json.loads(curves.read_text(encoding="utf-8"))
    runs, budgets = found["curves"], found["budgets"]
    tasks = sorted({run["cell"].partition("/")[0] for run in runs})
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(4.2 * len(tasks), 6), layout="constrained")
        axes = figure.subplots(2, len(tasks), squeeze=False)
        for column, task in enumerate(tasks):
            own = [run for run in runs if run["cell"].startswith(f"{task}/")]
            for strategy in dict.fromkeys(run["strategy"] for run in own):
                chosen = [run for run in own if run["strategy"] == strategy]
                look = {"color": COLOURS.get(strategy, "#000000"), "marker": "o", "markersize": 3, "label": strategy}
                line = "--" if strategy == "random" else "-"
                scores = 100 * np.mean([run["scores"] for run in chosen], axis=0)
                words = np.mean([run["words"] for run in chosen], axis=0)
                axes[0, column].plot(budgets, scores, line, **look)
                axes[1, column].plot(words, scores, line, **look)
            zero = 100 * float(np.mean([run["zero_shot"] for run in own]))
            for row, unit in enumerate(("sentences", "words")):
                axes[row, column].axhline(zero, color="#BBBBBB", linewidth=0.8)
                axes[row, column].set(xscale="log", xlabel=f"annotated {unit}", ylabel="score on test data")
                axes[row, column].xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axes[row, column].xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
                axes[row, column].xaxis.set_minor_locator(NullLocator())
            n_cells, n_seeds = len({run["cell"] for run in own}), len({run["seed"] for run in own})
            axes[0, column].set_title(f"{task}: {n_cells} unseen cells, {n_seeds} seeds; grey line: zero-shot")
        axes[0, 0].legend(frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
