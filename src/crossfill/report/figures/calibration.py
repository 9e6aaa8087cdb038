"""Reliability diagrams and risk–coverage curves on unseen cells."""

import numpy as np

from crossfill.report.comparisons import pooled_reliability
from crossfill.report.figures.style import WIDTH, Drawing, canvas, legend_above, look, row_of_axes
from crossfill.report.rendering import shown
from crossfill.studies.run_folder import Results

LEAST_SHARE = 0.001
"""Bins with a smaller share of the words are too noisy, and are not drawn."""


def draw_reliability(results: Results) -> list[Drawing]:
    """One panel for each task, words of all unseen cells together, averaged prediction."""
    found = {task: {m: results.unseen(results.proper(m), task) for m in results.methods} for task in results.tasks}
    told = []
    with canvas(WIDTH, 0.4 + WIDTH / max(2.2, len(found))) as figure:
        for axes, (task, methods) in zip(row_of_axes(figure, len(found), sharey=True), found.items(), strict=True):
            axes.plot([0, 1], [0, 1], color="#777777", linewidth=0.8, dashes=(2, 2))
            errors = []
            for method, own in methods.items():
                if not own:
                    continue
                bins = pooled_reliability(own)
                kept = bins.count > LEAST_SHARE * bins.count.sum()
                axes.plot(
                    bins.confidence[kept], bins.accuracy[kept], color=look(method).colour, marker=look(method).marker,
                    markersize=3, linewidth=1.1, dashes=look(method).dashes, label=shown(method),
                )  # fmt: skip
                errors.append(f"{shown(method)} {bins.error():.2f}")
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


def draw_risk_coverage(results: Results) -> list[Drawing]:
    """One panel for each task: the mean curve over unseen cells, averaged prediction."""
    told = []
    with canvas(WIDTH, 2.8) as figure:
        for axes, task in zip(row_of_axes(figure, len(results.tasks)), results.tasks, strict=True):
            ends = []
            for method in results.methods:
                curves = [result.risk_coverage for result in results.unseen(results.proper(method), task)]
                if not curves:
                    continue
                mean = 100 * np.mean(curves, axis=0)
                coverage = 100 * np.arange(1, len(mean) + 1) / len(mean)
                name = shown(method)
                axes.plot(
                    coverage, mean, color=look(method).colour, dashes=look(method).dashes, label=name, linewidth=1.4
                )
                ends.append(f"{name} {mean[len(mean) // 2 - 1]:.0f} % at half, {mean[-1]:.0f} % at full coverage")
            told.append(f"{task}: {'; '.join(ends)}")
            axes.set(title=task, xlabel="words answered, %", xlim=(0, 100))
            axes.set_ylim(bottom=0)
            axes.grid(visible=True, axis="both")
        figure.axes[0].set_ylabel("errors among them, %")
        legend_above(figure, len(results.methods), handlelength=2.6)
    alt = f"Risk–coverage curves, means over unseen cells, lower is better. Errors: {'. '.join(told)}."
    return [Drawing("risk-coverage", "Risk and coverage on unseen cells", alt, figure)]
