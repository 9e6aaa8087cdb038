"""Learning curves by number of labelled sentences, and training curves by step."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from crossfill.evaluation.results import mean
from crossfill.report.few_shot import ANNOTATED, SCRATCH, curves, head_name, mean_over, shared_cells
from crossfill.report.figures.style import WIDTH, Drawing, canvas, legend_above, look, plot, row_of_axes
from crossfill.report.rendering import method_label, true_minus
from crossfill.studies.run_folder import StudyResults


def draw_learning_curves(results: StudyResults) -> list[Drawing]:
    """Draw one panel per task, one line per method; dotted from scratch, dashed with chosen sentences."""
    by_task = {task: scores for task in results.tasks if (scores := curves(results, task))}
    if not by_task:
        return []
    descriptions = []
    with canvas(WIDTH, 2.8) as figure:
        for axes, (task, scores) in zip(row_of_axes(figure, len(by_task)), by_task.items(), strict=True):
            cells = shared_cells(scores)
            for kind, by_k in scores.items():
                line = [(k, 100 * y) for k in by_k if not math.isnan(y := mean_over(by_k, k, cells.get(k, ())))]
                if not line:
                    continue
                special = {SCRATCH: ("#777777", (1, 1)), ANNOTATED: ("#000000", (4, 2))}
                colour, dashes = special.get(kind, (look(kind).colour, look(kind).dashes))
                x, y = zip(*line, strict=True)
                axes.plot(x, y, color=colour, dashes=dashes, marker=".", label=head_name(kind))
                ends = f"from {y[0]:.1f} at {x[0]} to {y[-1]:.1f} at {x[-1]} sentences"
                descriptions.append(f"{task}, {head_name(kind)}: {ends}")
            numbers = sorted(cells)
            axes.set_xscale("symlog", linthresh=1)
            axes.set_xticks(numbers, [str(k) for k in numbers])
            axes.minorticks_off()
            axes.set(title=task, xlabel="labelled sentences", ylabel="score, %")
        legend_above(figure, columns=6)
    alt = f"Mean scores of unseen cells by number of labelled sentences. {'. '.join(descriptions)}."
    return [Drawing("learning-curves", "Learning curves of unseen cells", alt, figure)]


PANELS: dict[str, Callable[[Mapping[str, Any]], float | None]] = {
    "log-likelihood per word": lambda entry: -entry["nll"],
    "KL of all latents, nats": lambda entry: entry["kl"] or None,
    "score on dev data, %": lambda entry: 100 * entry["scores"]["mean"] if entry["scores"] else None,
}


def draw_training_curves(results: StudyResults) -> list[Drawing]:
    """Draw a thin line for each training, and a thick one for the mean of a method at the steps that all reach."""
    descriptions = []
    with canvas(WIDTH, 2.7) as figure:
        for axes, (title, read) in zip(row_of_axes(figure, len(PANELS)), PANELS.items(), strict=True):
            for method in results.methods:
                jobs = dict.fromkeys(entry.job for entry in results.proper(method))
                histories = [
                    {e["step"]: value for e in results.jobs[job]["history"] if (value := read(e)) is not None}
                    for job in jobs
                ]
                histories = [history for history in histories if history]
                for history in histories:
                    axes.plot([*history], [*history.values()], color=look(method).colour, linewidth=0.4, alpha=0.4)
                if steps := sorted(set.intersection(*map(set, histories))) if histories else []:
                    y = [mean([history[step] for history in histories]) for step in steps]
                    plot(axes, method, steps, y, linewidth=1.5)
                    descriptions.append(true_minus(f"{method_label(method)}, {title}: from {y[0]:.3g} to {y[-1]:.3g}"))
            axes.set(title=title, xlabel="step")
            axes.margins(x=0.02)
            axes.ticklabel_format(axis="x", style="plain")
        legend_above(figure, len(results.methods), handlelength=2.6)
    alt = f"Curves over training steps. {'. '.join(descriptions)}."
    return [Drawing("training", "Training curves", alt, figure)]
