"""The figures of a report, in one style: a palette safe for colour-blind readers, sizes for print."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from crossfill.evaluation.results import CellResult, entropy_correlation, entropy_points, grouped, mean_by
from crossfill.grid.cells import Cell
from crossfill.measures.significance import pca
from crossfill.report.comparisons import pooled_reliability
from crossfill.report.rendering import method_label, true_minus
from crossfill.studies.run_folder import ResultEntry, StudyResults

WIDTH = 7.2
"""Inches: the text width of a two-column page."""


class Look(NamedTuple):
    """How a method is drawn, the same in every figure."""

    colour: str
    marker: str
    dashes: tuple[float, ...]


# Okabe and Ito's palette and relatives of it; markers and dashes tell methods apart in greyscale
LOOKS = {
    "bea": Look("#999999", "v", (1, 1)),
    "ns": Look("#CC79A7", "P", (4, 1, 1, 1)),
    "ls": Look("#E69F00", "s", (3, 2)),
    "jm": Look("#D55E00", "D", (6, 2)),
    "jm-embedding": Look("#B8860B", "X", (8, 2)),
    "jm-kernel": Look("#8C3B00", "d", (6, 1, 1, 1)),
    "pf-d": Look("#56B4E9", "^", (5, 1)),
    "pf-lr": Look("#0072B2", "o", (1, 0)),
}
OTHER = Look("#555555", "8", (1, 2))
TASK_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
TASK_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
COLOURS = "viridis"
PER_ROW = 14
"""Bars of languages in a row of the figure."""
N_SAMPLES, N_DIMENSIONS = 1000, 4
"""Of the densities of posteriors."""
LEAST_SHARE = 0.001
"""Bins with a smaller share of the words are too noisy, and are not drawn."""
_DASHES = ((1, 0), (4, 1.5), (1, 1), (5, 1, 1, 1))
Scores = dict[tuple[str, str], tuple[float, bool]]
"""The score of each task and language, and whether the cell is seen."""


@dataclass(frozen=True)
class Drawing:
    """A figure with its file name, its title and its alternative text."""

    name: str
    title: str
    alt: str
    figure: Figure

    def save(self, folder: Path) -> bytes:
        """Write it as PDF for print and as PNG, and return the latter."""
        folder.mkdir(parents=True, exist_ok=True)
        picture = folder / f"{self.name}.png"
        with _style():
            self.figure.draw_without_rendering()
            self.figure.set_layout_engine("none")  # keep the layout: computing it again for each file is slow
            self.figure.savefig(picture.with_suffix(".pdf"), metadata={"CreationDate": None})
            self.figure.savefig(picture, dpi=180)
        return picture.read_bytes()


def _style() -> Any:
    return mpl.rc_context(fname=str(files("crossfill.report").joinpath("figures.mplstyle")))


@contextmanager
def canvas(height: float) -> Iterator[Figure]:
    """Make an empty figure in the shared style."""
    with _style():
        yield Figure(figsize=(WIDTH, height), layout="constrained")


def row_of_axes(figure: Figure, n: int, sharey: bool = False) -> list[Axes]:
    """Make axes side by side."""
    return list(figure.subplots(1, n, squeeze=False, sharey=sharey)[0])


def look(method: str) -> Look:
    """Return how a method is drawn."""
    return LOOKS.get(method, OTHER)


def plot(axes: Axes, method: str, x: ArrayLike, y: ArrayLike, **more: Any) -> None:
    """Draw a method's line in its colour and dashes."""
    axes.plot(x, y, color=look(method).colour, dashes=look(method).dashes, label=method_label(method), **more)


def legend_above(figure: Figure, columns: int, **more: Any) -> None:
    """Put one legend above all panels, with the entries of the first, which they share."""
    entries = figure.axes[0].get_legend_handles_labels()
    figure.legend(*entries, loc="outside upper right", ncols=columns, **more)


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


def draw_entropies(results: StudyResults) -> list[Drawing]:
    """Draw box plots of each cell, sorted by median, one row per task, for the method in focus."""
    unseen = [r for r in results.unseen(results.proper(results.focus)) if r.entropies]
    tasks = grouped(sorted(unseen, key=lambda r: r.cell.task), lambda r: r.cell.task)
    if not tasks:
        return []
    medians = {}
    with canvas(0.4 + 1.55 * len(tasks)) as figure:
        rows = figure.subplots(len(tasks), 1, squeeze=False)[:, 0]
        for axes, (task, of_task), colour in zip(rows, tasks.items(), TASK_COLOURS * len(tasks), strict=False):
            by_language = {
                language: [entropy for r in of_cell for entropy in r.entropies]
                for language, of_cell in grouped(of_task, lambda r: r.cell.language).items()
            }
            of_languages = {language: float(np.median(values)) for language, values in by_language.items()}
            medians |= {f"{task}/{language}": median for language, median in of_languages.items()}
            languages = sorted(by_language, key=lambda language: of_languages[language])
            axes.boxplot(
                [by_language[language] for language in languages], whis=(5, 95), showfliers=False, widths=0.7,
                patch_artist=True, medianprops={"color": "black", "linewidth": 1.2}, whiskerprops={"linewidth": 0.7},
                showcaps=False, boxprops={"facecolor": colour, "alpha": 0.45, "linewidth": 0.7},
            )  # fmt: skip
            axes.set_xticks(range(1, len(languages) + 1), languages, rotation=90 if len(languages) > 20 else 0)
            axes.tick_params(axis="x", length=0)
            axes.set_title(task)
            axes.set_ylim(bottom=0)
        figure.supylabel(f"entropy of {method_label(results.focus)}'s predictions, nats", fontsize=8)
    least, most = min(medians, key=lambda c: medians[c]), max(medians, key=lambda c: medians[c])
    alt = (
        f"Box plots of the entropy of up to 800 words in each of {len(medians)} unseen cells, sorted by median. "
        f"Boxes hold half the words, whiskers nine tenths. Least in {least} (median {medians[least]:.2f} nats), most "
        f"in {most} ({medians[most]:.2f})."
    )
    return [Drawing("entropies", "Entropy of predictions in unseen cells", alt, figure)]


def draw_entropy_scores(results: StudyResults) -> list[Drawing]:
    """Draw one panel each for the method in focus and its rival."""
    methods = dict.fromkeys((results.focus, results.rival))
    chosen = [method for method in methods if entropy_points(results.unseen(results.proper(method)))]
    if not chosen:
        return []
    with canvas(3.1) as figure:
        panels = zip(row_of_axes(figure, len(chosen), sharey=True), chosen, strict=True)
        descriptions = [scatter(axes, results, method) for axes, method in panels]
        figure.axes[0].set_ylabel("score, %")
    alt = "Scatter plots of the mean entropy of each unseen cell against its score. " + " ".join(descriptions)
    return [Drawing("entropy-score", "Entropy against score", alt, figure)]


def scatter(axes: Axes, results: StudyResults, method: str) -> str:
    """Draw a method's entropies against scores; return a description of it for the alternative text."""
    name, unseen = method_label(method), results.unseen(results.proper(method))
    labels = []
    for i, task in enumerate(results.tasks):
        points = entropy_points(unseen, task)
        r = entropy_correlation(points).r
        labels.append(task if math.isnan(r) else task + true_minus(f", r = {r:.2f}"))
        axes.scatter(
            [x for x, _ in points.values()], [100 * y for _, y in points.values()], s=16, alpha=0.85, linewidth=0,
            color=TASK_COLOURS[i % len(TASK_COLOURS)],
            marker=TASK_MARKERS[i % len(TASK_MARKERS)], label=labels[-1],
        )  # fmt: skip
    pooled, p, _ = entropy_correlation(entropy_points(unseen))
    pooled_text = true_minus(f"pooled r = {pooled:.2f}")
    axes.set_title(f"{name}: {pooled_text} (p = {p:.1g})".replace("e-", "e−"))
    axes.set(xlabel="mean entropy of a cell's predictions, nats", ylim=(0, 100))
    axes.set_xlim(left=0)
    axes.grid(visible=True, axis="both")
    axes.legend(handletextpad=0.2, frameon=True, framealpha=0.85, edgecolor="none")
    return f"{name}: {'; '.join(labels)}; {pooled_text}."


def draw_reliability(results: StudyResults) -> list[Drawing]:
    """Draw one panel for each task, words of all unseen cells together, averaged prediction."""
    tasks, descriptions = results.tasks, []
    with canvas(0.4 + WIDTH / max(2.2, len(tasks))) as figure:
        for axes, task in zip(row_of_axes(figure, len(tasks), sharey=True), tasks, strict=True):
            axes.plot([0, 1], [0, 1], color="#777777", linewidth=0.8, dashes=(2, 2))
            errors = []
            for method in results.methods:
                if unseen := results.unseen(results.proper(method), task):
                    bins = pooled_reliability(unseen)
                    is_drawn = bins.count > LEAST_SHARE * bins.count.sum()
                    x, y = bins.confidence[is_drawn], bins.accuracy[is_drawn]
                    plot(axes, method, x, y, marker=look(method).marker, markersize=3, linewidth=1.1)
                    errors.append(f"{method_label(method)} {bins.error():.2f}")
            descriptions.append(f"{task}: {', '.join(errors)}")
            axes.set(title=task, xlim=(0, 1), ylim=(0, 1), xlabel="confidence", aspect="equal")
            axes.grid(visible=True, axis="both")
        figure.axes[0].set_ylabel("share that is right")
        legend_above(figure, len(results.methods), handlelength=2.4)
    alt = (
        "Reliability diagrams: accuracy against confidence in 15 bins (those with over 0.1 % of the words), "
        "words of all unseen cells together, averaged prediction; on the diagonal confidence is right. "
        f"Expected calibration errors: {'; '.join(descriptions)}."
    )
    return [Drawing("reliability", "Reliability on unseen cells", alt, figure)]


def draw_risk_coverage(results: StudyResults) -> list[Drawing]:
    """Draw one panel for each task: the mean curve over unseen cells, averaged prediction."""
    descriptions = []
    with canvas(2.8) as figure:
        for axes, task in zip(row_of_axes(figure, len(results.tasks)), results.tasks, strict=True):
            ends = []
            for method in results.methods:
                if curves := [result.risk_coverage for result in results.unseen(results.proper(method), task)]:
                    risk = 100 * np.mean(curves, axis=0)
                    plot(axes, method, 100 * np.arange(1, len(risk) + 1) / len(risk), risk, linewidth=1.4)
                    half, full = risk[len(risk) // 2 - 1], risk[-1]
                    ends.append(f"{method_label(method)} {half:.0f} % at half, {full:.0f} % at full coverage")
            descriptions.append(f"{task}: {'; '.join(ends)}")
            axes.set(title=task, xlabel="words answered, %", xlim=(0, 100))
            axes.set_ylim(bottom=0)
            axes.grid(visible=True, axis="both")
        figure.axes[0].set_ylabel("errors among them, %")
        legend_above(figure, len(results.methods), handlelength=2.6)
    alt = f"Risk–coverage curves, means over unseen cells, lower is better. Errors: {'. '.join(descriptions)}."
    return [Drawing("risk-coverage", "Risk and coverage on unseen cells", alt, figure)]


def draw_posteriors(results: StudyResults) -> list[Drawing]:
    """Draw the densities along each dimension, from the first partition and seed of the method in focus."""
    from scipy.stats import gaussian_kde

    posterior = next((p for e in results.proper(results.focus) if (p := results.jobs[e.job]["posteriors"])), None)
    if not posterior or not posterior["chosen"]:
        return []
    samples = {language: sample(q, seed) for seed, (language, q) in enumerate(sorted(posterior["chosen"].items()))}
    projected, shares, _ = pca(np.concatenate(list(samples.values())), N_DIMENSIONS)
    parts = dict(zip(samples, np.split(projected, len(samples)), strict=True))
    with canvas(2.3) as figure:
        for d, axes in enumerate(row_of_axes(figure, projected.shape[1])):
            grid = np.linspace(projected[:, d].min(), projected[:, d].max(), 200)
            for i, (language, points) in enumerate(parts.items()):
                density = gaussian_kde(points[:, d])(grid)  # bandwidth: Scott's
                colour = TASK_COLOURS[i % len(TASK_COLOURS)]
                axes.plot(grid, density, color=colour, dashes=_DASHES[i % len(_DASHES)], label=language, linewidth=1.4)
                axes.fill_between(grid, density, color=colour, alpha=0.12, linewidth=0)
            axes.set(title=f"dimension {d + 1} ({shares[d]:.0%})", yticks=[])
            axes.spines["left"].set_visible(False)
            axes.set_ylim(bottom=0)
        legend_above(figure, len(parts))
    spread = ", ".join(f"{language} {float(np.std(points[:, 0], ddof=1)):.2f}" for language, points in parts.items())
    alt = (
        f"Densities of {N_SAMPLES:,} samples from the posteriors of {', '.join(parts)}, along the first "
        f"{projected.shape[1]} principal components. Standard deviations along the first: {spread}."
    )
    return [Drawing("posteriors", "Posteriors of languages", alt, figure)]


def sample(posterior: Mapping[str, Any], seed: int) -> Float[np.ndarray, "samples latent"]:
    """Draw samples m + δ ⊙ ε + B ζ of a posterior, with ε and ζ ~ N(0, I)."""
    rng = np.random.default_rng(seed)
    mean, scale = np.array(posterior["mean"]), np.sqrt(posterior["variance"])
    factor = np.array(posterior["factor"]).reshape(len(mean), -1)
    epsilon, zeta = rng.standard_normal((N_SAMPLES, len(mean))), rng.standard_normal((N_SAMPLES, factor.shape[1]))
    return mean + scale * epsilon + zeta @ factor.T
