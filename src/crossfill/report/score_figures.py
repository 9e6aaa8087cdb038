"""Scores of cells: by language, and as a grid."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from crossfill.evaluation.results import CellResult, grouped, mean_by
from crossfill.grid.cells import Cell
from crossfill.report.drawing import Drawing, canvas, look
from crossfill.report.rendering import method_label
from crossfill.studies.run_folder import ResultEntry, StudyResults

PER_ROW = 14
COLOURS = "viridis"
Scores = dict[tuple[str, str], tuple[float, bool]]


def draw_bars(results: StudyResults) -> list[Drawing]:
    """Draw one figure for each task."""
    by_task = {task: _place_scores(results, task) for task in results.tasks}
    return [_draw_task(scores, task) for task, scores in by_task.items() if scores]


def _draw_task(scores: dict[str, dict[str, list[float]]], task: str) -> Drawing:
    places = sorted({place for by_place in scores.values() for place in by_place})
    n_rows = -(-len(places) // PER_ROW)
    per_row = -(-len(places) // n_rows)
    with canvas(0.5 + 1.5 * n_rows) as figure:
        width = 0.84 / len(scores)
        for k, axes in enumerate(figure.subplots(n_rows, 1, squeeze=False, sharey=True)[:, 0]):
            row = places[k * per_row : (k + 1) * per_row]
            for i, (method, by_place) in enumerate(scores.items()):
                bars = [by_place.get(place, []) for place in row]
                x = np.arange(len(row)) + (i - (len(scores) - 1) / 2) * width
                spreads = [np.std(values, ddof=1) if len(values) > 1 else 0.0 for values in bars]
                axes.bar(
                    x, [np.mean(values) if values else 0.0 for values in bars], width * 0.9,
                    label=method_label(method), color=look(method).colour,
                    yerr=spreads if any(spreads) else None, error_kw={"linewidth": 0.6, "ecolor": "#333333"},
                )  # fmt: skip
            axes.set_xticks(range(len(row)), row)
            axes.set(xlim=(-0.6, per_row - 0.4), ylim=(0, 100))
            axes.tick_params(axis="x", length=0)
        figure.axes[0].legend(ncols=len(scores), loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2)
        figure.supylabel(f"{task}: score on unseen cells, %", fontsize=8)
    means = ", ".join(f"{method_label(m)} {np.mean([np.mean(v) for v in scores[m].values()]):.1f}" for m in scores)
    best = {p: max(float(np.mean(by_place[p])) for by_place in scores.values() if p in by_place) for p in places}
    low, high = min(places, key=lambda place: best[place]), max(places, key=lambda place: best[place])
    alt = (
        f"Bars of the scores of {len(scores)} methods in {len(places)} unseen {task} cells. Means: {means}. "
        f"The best method of a cell has least in {low} ({best[low]:.0f}) and most in {high} ({best[high]:.0f})."
    )
    return Drawing(f"bars-{task.replace(':', '-')}", f"Scores per language: {task}", alt, figure)


def _place_scores(results: StudyResults, task: str) -> dict[str, dict[str, list[float]]]:
    """Return scores in percent by method and place: a language, with its corpus if it has several; one per seed."""
    unseen = {m: of_method for m in results.methods if (of_method := results.unseen(results.proper(m), task))}
    corpora = grouped({r.cell_corpus for of_method in unseen.values() for r in of_method}, lambda place: place[0])

    def place(result: CellResult) -> str:
        language = result.cell.language
        return language if len(corpora[result.cell]) == 1 else f"{language}\n{result.corpus.split('-')[-1][:8]}"

    return {
        method: {name: [100 * r.score for r in group] for name, group in grouped(of_method, place).items()}
        for method, of_method in unseen.items()
    }


def draw_heatmap(results: StudyResults) -> list[Drawing]:
    """Draw one panel per partition: tasks × languages, unseen cells framed; method in focus, mean over seeds."""
    partitions = grouped(results.proper(results.focus), lambda entry: entry.partition)
    by_partition = {name: _cell_scores(results, entries) for name, entries in partitions.items()}
    languages = sorted({language for scores in by_partition.values() for _, language in scores})
    if not languages:
        return []
    tasks, means = results.tasks, []
    with canvas(0.75 + len(partitions) * (0.45 + 0.28 * len(tasks))) as figure:
        panels = figure.subplots(len(partitions), 1, squeeze=False)[:, 0]
        for axes, (partition, scores) in zip(panels, by_partition.items(), strict=True):
            _draw_cells(axes, scores, tasks, languages)
            axes.set_title(f"partition {partition}: {method_label(results.focus)}")
            seen, unseen = ([s for s, is_seen in scores.values() if is_seen == which] for which in (True, False))
            if not (np.isnan(seen).all() or np.isnan(unseen).all()):
                means.append(
                    f"{partition}: {np.nanmean(seen):.0f} % on seen, {np.nanmean(unseen):.0f} % on unseen cells"
                )
        scale = ScalarMappable(Normalize(0, 100), COLOURS)
        figure.colorbar(scale, ax=list(panels), shrink=0.9, aspect=30, pad=0.01).set_label("score, %")
        figure.supxlabel("framed: unseen cells;  grey: seen, but its test set trained;  white: no data", fontsize=7)
    alt = f"Heat-maps of scores over {len(tasks)} tasks and {len(languages)} languages. Means: {'; '.join(means)}."
    return [Drawing("grid", "The grid, seen and unseen", alt, figure)]


def _draw_cells(axes: Axes, scores: Scores, tasks: list[str], languages: list[str]) -> None:
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


def _cell_scores(results: StudyResults, entries: Sequence[ResultEntry]) -> Scores:
    """Return the mean score of every cell, NaN where its test set trained, and whether it is seen."""
    seen = {Cell.parse(cell): True for entry in entries for cell in results.jobs[entry.job]["seen"]}
    evaluated = [result for entry in entries for result in results.cells(entry)]
    seen |= {result.cell: result.seen for result in evaluated}
    means = mean_by(evaluated, lambda r: r.cell, lambda r: 100 * r.score)
    return {(cell.task, cell.language): (means.get(cell, math.nan), is_seen) for cell, is_seen in seen.items()}
