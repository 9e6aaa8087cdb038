"""Reliability diagrams: how often predictions of a confidence are right, on unseen cells."""

import numpy as np
from jaxtyping import Float

from crossfill.experiments.averages import shown
from crossfill.experiments.results import Results, unseen
from crossfill.figures.style import DASHES, MARKERS, WIDTH, Drawing, canvas, colour, legend_above, row_of_axes

N_BINS = 15
LEAST_SHARE = 0.001
"""Bins with a smaller share of the words say nothing, and are not drawn."""


def draw(results: Results) -> list[Drawing]:
    """One panel for each task, words of all unseen cells together, averaged prediction."""
    found = {task: {m: pooled(results, m, task) for m in results.methods} for task in results.tasks}
    told = []
    with canvas(WIDTH, 0.4 + WIDTH / max(2.2, len(found))) as figure:
        for axes, (task, methods) in zip(row_of_axes(figure, len(found), sharey=True), found.items(), strict=True):
            axes.plot([0, 1], [0, 1], color="#777777", linewidth=0.8, dashes=(2, 2))
            errors = []
            for method, bins in methods.items():
                kept = bins[:, 0] > LEAST_SHARE * bins[:, 0].sum()
                x, y = bins[kept, 1] / bins[kept, 0], bins[kept, 2] / bins[kept, 0]
                axes.plot(
                    x, y, color=colour(method), marker=MARKERS.get(method, "o"), markersize=3, linewidth=1.1,
                    dashes=DASHES.get(method, (1, 0)), label=shown(method),
                )  # fmt: skip
                total = bins[:, 0].sum()
                error = float(np.abs(bins[:, 1] - bins[:, 2]).sum() / total) if total else float("nan")
                errors.append(f"{shown(method)} {error:.2f}")
            told.append(f"{task}: {', '.join(errors)}")
            axes.set(title=task, xlim=(0, 1), ylim=(0, 1), xlabel="confidence", aspect="equal")
            axes.grid(visible=True, axis="both")
        figure.axes[0].set_ylabel("share that is right")
        legend_above(figure, len(results.methods), handlelength=2.4)
    alt = (
        "Reliability diagrams: accuracy against confidence in 15 bins (those with over 0.1 % of the words), "
        "words of all unseen cells together, averaged prediction; on the diagonal confidence is right. "
        f"Expected calibration errors: {'; '.join(told)}."
    )
    return [Drawing("reliability", "Reliability on unseen cells", alt, figure)]


def pooled(results: Results, method: str, task: str) -> Float[np.ndarray, "bins 3"]:
    """Count, summed confidence and hits of each bin over all words of a task's unseen cells."""
    total = np.zeros((N_BINS, 3))
    for entry in results.proper(method):
        for cell in unseen(results.cells(entry)):
            if cell["cell"].startswith(f"{task}/"):
                bins = {
                    name: np.nan_to_num(np.array(values, dtype=float)) for name, values in cell["reliability"].items()
                }
                total += np.stack(
                    [bins["count"], bins["count"] * bins["confidence"], bins["count"] * bins["accuracy"]], axis=1
                )
    return total
