"""The per-language bar charts: one figure per task, all methods side by side, unseen cells."""

import numpy as np

from crossfill.report.figures.style import WIDTH, Drawing, canvas, chunks, look
from crossfill.report.rendering import shown
from crossfill.studies.run_folder import Results

PER_ROW = 14


def draw(results: Results) -> list[Drawing]:
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
