"""The entropy of predictions in every unseen cell, as in the paper's analysis of entropy."""

import numpy as np

from crossfill.report.figures.style import TASK_COLOURS, WIDTH, Drawing, canvas
from crossfill.report.rendering import shown
from crossfill.studies.run_folder import Results


def draw(results: Results) -> list[Drawing]:
    """Box plots of each cell, sorted by median, one row per task, for the method in focus."""
    method = results.focus
    found = _entropies(results, method)
    if not found:
        return []
    with canvas(WIDTH, 0.4 + 1.55 * len(found)) as figure:
        rows = figure.subplots(len(found), 1, squeeze=False)[:, 0]
        for axes, (task, cells), colour in zip(rows, found.items(), TASK_COLOURS * len(found), strict=False):
            languages = sorted(cells, key=lambda language: float(np.median(cells[language])))
            values = [cells[language] for language in languages]
            drawn = axes.boxplot(
                values, whis=(5, 95), showfliers=False, widths=0.7, patch_artist=True,
                medianprops={"color": "black", "linewidth": 1.2}, whiskerprops={"linewidth": 0.7}, showcaps=False,
            )  # fmt: skip
            for patch in drawn["boxes"]:
                patch.set(facecolor=colour, alpha=0.45, linewidth=0.7)
            axes.set_xticks(range(1, len(languages) + 1), languages, rotation=90 if len(languages) > 20 else 0)
            axes.tick_params(axis="x", length=0)
            axes.set_title(task)
            axes.set_ylim(bottom=0)
        figure.supylabel(f"entropy of {shown(method)}'s predictions, nats", fontsize=8)
    medians = {f"{t}/{l}": float(np.median(v)) for t, cells in found.items() for l, v in cells.items()}
    least, most = min(medians, key=lambda c: medians[c]), max(medians, key=lambda c: medians[c])
    alt = (
        f"Box plots of the entropy of up to 800 words in each of {len(medians)} unseen cells, sorted by median. "
        f"Boxes hold half the words, whiskers nine tenths. Least in {least} (median {medians[least]:.2f} nats), most "
        f"in {most} ({medians[most]:.2f})."
    )
    return [Drawing("entropies", "Entropy of predictions in unseen cells", alt, figure)]


def _entropies(results: Results, method: str) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    for result in results.unseen(results.proper(method)):
        if result.entropies:
            found.setdefault(result.cell.task, {}).setdefault(result.cell.language, []).extend(result.entropies)
    return dict(sorted(found.items()))
