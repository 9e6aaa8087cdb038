"""Learning curves: scores of unseen cells by number of labelled sentences."""

from crossfill.report.few_shot import ANNOTATED, SCRATCH, curves, mean_over, shared_cells
from crossfill.report.figures.style import WIDTH, Drawing, canvas, legend_above, look, row_of_axes
from crossfill.report.rendering import shown
from crossfill.studies.run_folder import Results


def draw(results: Results) -> list[Drawing]:
    """One panel per task, one line per method; dotted from scratch, dashed with chosen sentences."""
    by_task = {task: found for task in results.tasks if (found := curves(results, task))}
    if not by_task:
        return []
    told = []
    with canvas(WIDTH, 2.8) as figure:
        for axes, (task, found) in zip(row_of_axes(figure, len(by_task)), by_task.items(), strict=True):
            cells = shared_cells(found)
            for kind, by_k in found.items():
                line = [(k, 100 * y) for k in by_k if (y := mean_over(by_k, k, cells.get(k, ()))) is not None]
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
