"""Scores of cells: bar charts by language, and the grid as a heat-map."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from crossfill.report.figures.style import WIDTH, Drawing, canvas, chunks, look
from crossfill.report.rendering import shown
from crossfill.studies.run_folder import Results

PER_ROW = 14


def draw_bars(results: Results) -> list[Drawing]:
    """One figure for each task."""
    return [drawing for task in results.tasks if (drawing := _draw_task(results, task)) is not None]


def _draw_task(results: Results, task: str) -> Drawing | None:
    scores = _scores(results, task)
    places = sorted({place for found in scores.values() for place in found})
    if not places:
        return None
    rows = chunks(places, PER_ROW)
    methods = [method for method in results.methods if scores[method]]
    with canvas(WIDTH, 0.5 + 1.5 * len(rows)) as figure:
        width = 0.84 / len(methods)
        for axes, row in zip(figure.subplots(len(rows), 1, squeeze=False, sharey=True)[:, 0], rows, strict=True):
            for i, method in enumerate(methods):
                found = [scores[method].get(place, []) for place in row]
                x = np.arange(len(row)) + (i - (len(methods) - 1) / 2) * width
                means = [np.mean(values) if values else 0.0 for values in found]
                spreads = [np.std(values, ddof=1) if len(values) > 1 else 0.0 for values in found]
                axes.bar(
                    x, means, width * 0.9, label=shown(method), color=look(method).colour,
                    yerr=spreads if any(spreads) else None, error_kw={"linewidth": 0.6, "ecolor": "#333333"},
                )  # fmt: skip
            axes.set_xticks(range(len(row)), row)
            axes.set_xlim(-0.6, len(rows[0]) - 0.4)
            axes.set_ylim(0, 100)
            axes.tick_params(axis="x", length=0)
        figure.axes[0].legend(ncols=len(methods), loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2)
        figure.supylabel(f"{task}: score on unseen cells, %", fontsize=8)
    best = {method: np.mean([np.mean(v) for v in scores[method].values()]) for method in methods}
    told = ", ".join(f"{shown(method)} {best[method]:.1f}" for method in methods)
    low, high = min(places, key=lambda p: _top(scores, p)), max(places, key=lambda p: _top(scores, p))
    alt = (
        f"Bars of the scores of {len(methods)} methods in {len(places)} unseen {task} cells. Means: {told}. "
        f"The best method of a cell has least in {low} ({_top(scores, low):.0f}) and most in {high} "
        f"({_top(scores, high):.0f})."
    )
    return Drawing(f"bars-{task.replace(':', '-')}", f"Scores per language: {task}", alt, figure)


def _top(scores: dict[str, dict[str, list[float]]], place: str) -> float:
    return max(float(np.mean(found[place])) for found in scores.values() if place in found)


def _scores(results: Results, task: str) -> dict[str, dict[str, list[float]]]:
    """Scores in percent by method and place, one per seed; a place is a language, with its corpus if it has several."""
    corpora: dict[str, set[str]] = {}
    cells = []
    for entry in results.proper():
        for result in results.unseen([entry], task):
            corpora.setdefault(result.cell.language, set()).add(result.corpus)
            cells.append((entry.method, result.cell.language, result.corpus, 100 * result.score))
    found: dict[str, dict[str, list[float]]] = {method: {} for method in results.methods}
    for method, language, corpus, score in cells:
        place = language if len(corpora[language]) == 1 else f"{language}\n{corpus.split('-')[-1][:8]}"
        found[method].setdefault(place, []).append(score)
    return found


COLOURS = "viridis"
Scores = dict[tuple[str, str], tuple[float, bool]]


def draw_heatmap(results: Results) -> list[Drawing]:
    """One panel per partition: tasks × languages, unseen cells framed; for the method in focus, mean over seeds."""
    method = results.focus
    partitions = list(dict.fromkeys(entry.partition for entry in results.proper(method)))
    found = {partition: _cell_scores(results, method, partition) for partition in partitions}
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


def _cell_scores(results: Results, method: str, partition: str) -> Scores:
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
