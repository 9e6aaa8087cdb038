"""Risk–coverage curves: the error rate that is left if a method abstains on the words it is least sure of."""

import numpy as np

from crossfill.report.figures.style import WIDTH, Drawing, canvas, legend_above, look, row_of_axes
from crossfill.report.rendering import shown
from crossfill.studies.run_folder import Results


def draw(results: Results) -> list[Drawing]:
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
