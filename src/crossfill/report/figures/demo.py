"""The demo's figure: scores of the methods on unseen cells, and entropy against score."""

from crossfill.evaluation.results import task_means
from crossfill.report.figures.entropies import scatter
from crossfill.report.figures.style import WIDTH, Drawing, canvas, look, row_of_axes
from crossfill.report.rendering import shown
from crossfill.studies.run_folder import Results


def draw(results: Results) -> Drawing:
    """Both panels side by side."""
    means = {method: task_means(results.unseen(results.proper(method))) for method in results.methods}
    width = 0.8 / len(means)
    with canvas(WIDTH, 3.1) as figure:
        bars, points = row_of_axes(figure, 2)
        for i, (method, scores) in enumerate(means.items()):
            places = [j + (i - (len(means) - 1) / 2) * width for j in range(len(results.tasks))]
            heights = [100 * scores[task] for task in results.tasks]
            drawn = bars.bar(places, heights, width * 0.92, label=shown(method), color=look(method).colour)
            bars.bar_label(drawn, fmt="%.0f", fontsize=6, padding=1)
        bars.set_xticks(range(len(results.tasks)), results.tasks)
        bars.set_ylim(0, 112)
        bars.set_yticks(range(0, 101, 20))
        bars.set(title="How well empty cells are filled", ylabel="score on unseen cells, %")
        bars.legend(ncols=len(means), loc="upper left")
        told = scatter(points, results, results.focus)
        points.set_ylabel("score in that cell, %")
    alt = f"Mean scores of {len(means)} methods on unseen cells, and entropy against score. {told}"
    return Drawing("demo", "The demo", alt, figure)
