"""The grid as a heat-map: scores of every cell, seen and unseen, in each partition."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from crossfill.report.figures.style import WIDTH, Drawing, canvas
from crossfill.report.rendering import shown
from crossfill.studies.run_folder import Results

COLOURS = "viridis"
Scores = dict[tuple[str, str], tuple[float, bool]]


def draw(results: Results) -> list[Drawing]:
    """One panel per partition: tasks × languages, unseen cells framed; for the method in focus, mean over seeds."""
    method = results.focus
    partitions = list(dict.fromkeys(entry.partition for entry in results.proper(method)))
    found = {partition: _scores(results, method, partition) for partition in partitions}
    languages = sorted({language for scores in found.values() for _, language in scores})
    if not languages:
        return []
    tasks = results.tasks
    with canvas(WIDTH, 0.75 + len(partitions) * (0.45 + 0.28 * len(tasks))) as figure:
        axes_rows = figure.subplots(len(partitions), 1, squeeze=False)[:, 0]
        for axes, (partition, scores) in zip(axes_rows, found.items(), strict=True):
            _panel(axes, scores, tasks, languages)
            axes.set_title(f"partition {partition}: {shown(method)}")
        scale = ScalarMappable(Normalize(0, 100), COLOURS)
        bar = figure.colorbar(scale, ax=list(axes_rows), shrink=0.9, aspect=30, pad=0.01)
        bar.set_label("score, %")
        figure.supxlabel("framed: unseen cells;  grey: seen, but its test set trained;  white: no data", fontsize=7)
    means = [
        f"{partition}: {np.nanmean([s for s, seen in scores.values() if seen]):.0f} % on seen, "
        f"{np.nanmean([s for s, seen in scores.values() if not seen]):.0f} % on unseen cells"
        for partition, scores in found.items()
        if len({seen for score, seen in scores.values() if not np.isnan(score)}) == 2
    ]
    alt = f"Heat-maps of scores over {len(tasks)} tasks and {len(languages)} languages. Means: {'; '.join(means)}."
    return [Drawing("grid", "The grid, seen and unseen", alt, figure)]


def _panel(axes: Axes, scores: Scores, tasks: list[str], languages: list[str]):
    values = np.full((len(tasks), len(languages)), np.nan)
    for (task, language), (score, _) in scores.items():
        values[tasks.index(task), languages.index(language)] = score
    axes.imshow(values, cmap=COLOURS, vmin=0, vmax=100, aspect="auto", interpolation="nearest")
    for (task, language), (score, seen) in scores.items():
        i, j = tasks.index(task), languages.index(language)
        if np.isnan(score):
            axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor="#cccccc", edgecolor="none"))
            continue
        shade = "white" if score < 60 else "black"
        axes.text(j, i, f"{score:.0f}", ha="center", va="center", fontsize=5 if len(languages) > 16 else 7, color=shade)
        if not seen:
            axes.add_patch(Rectangle((j - 0.44, i - 0.42), 0.88, 0.84, fill=False, edgecolor="#D55E00", linewidth=1.1))
    axes.set_xticks(range(len(languages)), languages, rotation=90 if len(languages) > 20 else 0)
    axes.set_yticks(range(len(tasks)), tasks)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def _scores(results: Results, method: str, partition: str) -> Scores:
    entries = [entry for entry in results.proper(method) if entry.partition == partition]
    found: dict[tuple[str, str], list[float]] = {}
    seen: dict[tuple[str, str], bool] = {}
    for entry in entries:
        for cell in results.jobs[entry.job]["seen"]:
            task, _, language = cell.partition("/")
            seen[task, language] = True
            found.setdefault((task, language), [])
        for result in results.cells(entry):
            place = (result.cell.task, result.cell.language)
            seen[place] = result.seen
            found.setdefault(place, []).append(100 * result.score)
    return {place: (float(np.mean(v)) if v else float("nan"), seen[place]) for place, v in found.items()}
