"""Do chosen sentences teach more than random ones? Learning curves in cells that a model has not seen.

    python benchmarks/annotate.py DATA MODEL --max-train 300 --max-dev 60 --max-test 150 [--cells 8] [--seeds 0 1 2]

MODEL is a folder of `crossfill train` over the same data and caps, with cells held out; features come from the cache.
In each of its unseen cells with training data, the sentences to annotate are chosen from a random nine tenths of the
training sentences (by seed), all at once, at random and by each strategy. The cell is then adapted to them, as
`crossfill adapt` does it. Scores are the task's metric on test data. Two orders stand for no choice at all: `again`, a
second random order, and `longest`, the longest sentences first. Each strategy is compared with random choice by the
area under the learning curve, that is the mean score over budgets from none (zero-shot) to the largest, by sentences
(`area`) and by words (`word_area`: over the words that both curves reach). Differences are in points, paired by cell
and seed, with a 95 % interval in which both are samples. A choice is worth something if its interval is above that of
`again`, whose difference is zero by nature.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from crossfill.adaptation.curves import Curve
from crossfill.adaptation.examples import Examples
from crossfill.data.folder import load_grid
from crossfill.data.splits import capped_grid
from crossfill.grid.sentence import Corpus
from crossfill.grid.text_keys import sentence_hashes
from crossfill.measures.significance import over_trainings_and_cells
from crossfill.prediction.calibration import rule_for
from crossfill.tagger.annotation import Candidates, candidates, choose
from crossfill.tagger.tagger import load

Run = dict[str, Any]
"""The learning curve of a cell, a seed and a strategy."""
_COLUMNS = {"scores": "adapted", "words": "words"}
COLOURS = {
    "random": "#777777",
    "again": "#AAAAAA",
    "longest": "#CC79A7",
    "coverage": "#E69F00",
    "entropy": "#0072B2",
    "bald": "#D55E00",
}


def draw_annotation(curves: Path, path: Path) -> None:
    """Draw a column for each task: mean score over cells and seeds by annotated sentences, and by annotated words."""
    found = json.loads(curves.read_text(encoding="utf-8"))
    runs, budgets = found["curves"], found["budgets"]
    tasks = sorted({run["cell"].partition("/")[0] for run in runs})
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(4.2 * len(tasks), 6), layout="constrained")
        axes = figure.subplots(2, len(tasks), squeeze=False)
        for column, task in enumerate(tasks):
            own = [run for run in runs if run["cell"].startswith(f"{task}/")]
            for strategy in dict.fromkeys(run["strategy"] for run in own):
                chosen = [run for run in own if run["strategy"] == strategy]
                look = {"color": COLOURS.get(strategy, "#000000"), "marker": "o", "markersize": 3, "label": strategy}
                line = "--" if strategy == "random" else "-"
                scores = 100 * np.mean([run["scores"] for run in chosen], axis=0)
                words = np.mean([run["words"] for run in chosen], axis=0)
                axes[0, column].plot(budgets, scores, line, **look)
                axes[1, column].plot(words, scores, line, **look)
            zero = 100 * float(np.mean([run["zero_shot"] for run in own]))
            for row, unit in enumerate(("sentences", "words")):
                axes[row, column].axhline(zero, color="#BBBBBB", linewidth=0.8)
                axes[row, column].set(xscale="log", xlabel=f"annotated {unit}", ylabel="score on test data")
                axes[row, column].xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axes[row, column].xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
                axes[row, column].xaxis.set_minor_locator(NullLocator())
            n_cells, n_seeds = len({run["cell"] for run in own}), len({run["seed"] for run in own})
            axes[0, column].set_title(f"{task}: {n_cells} unseen cells, {n_seeds} seeds; grey line: zero-shot")
        axes[0, 0].legend(frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)


def area(places: Sequence[float], scores: Sequence[float], end: float) -> float:
    """The mean height of a curve from its first place to `end`, by the trapezoidal rule; it ends at `end` or later."""
    inside = [place for place in places if place < end]
    xs = np.array([*inside, end])
    return float(np.trapezoid(np.interp(xs, places, scores), xs) / (end - places[0]))


def gain(curve: Run, base: Run, budgets: Sequence[int]) -> tuple[float, float]:
    """How far a curve is above another on average, by sentences and by words; both start at the zero-shot score."""
    heights = [(curve["zero_shot"], *curve["scores"]), (base["zero_shot"], *base["scores"])]
    words = [(0.0, *curve["words"]), (0.0, *base["words"])]
    end = min(words[0][-1], words[1][-1])
    sentences = [area((0.0, *map(float, budgets)), height, budgets[-1]) for height in heights]
    by_words = [area(place, height, end) for place, height in zip(words, heights, strict=True)]
    return sentences[0] - sentences[1], by_words[0] - by_words[1]


def taken(pool: Candidates, places: list[int]) -> Candidates:
    """Some of the candidates, in this order."""
    parts = np.split(pool.doubts, np.cumsum([len(sentence) for sentence in pool.sentences])[:-1])
    doubts = np.concatenate([parts[i] for i in places]) if places else pool.doubts[:0]
    sentences = [pool.sentences[i] for i in places]
    return Candidates(sentences, pool.entropy[places], pool.mutual_information[places], doubts)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--encoder")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--cells", type=int, default=8)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--budgets", type=int, nargs="+", default=[10, 20, 40, 80, 160])
    parser.add_argument("--strategies", nargs="+", default=["coverage", "entropy", "bald"])
    parser.add_argument("--cost", default="sentences")
    parser.add_argument("--curves", type=Path, help="File for the learning curves.")
    parser.add_argument("--figure", type=Path, help="File to draw them into; needs --curves.")
    for name in ("train", "dev", "test"):
        parser.add_argument(f"--max-{name}", type=int)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cache = arguments.cache or True
    tagger = load(arguments.model, arguments.encoder, cache)
    grid = load_grid(arguments.data, max_train=arguments.max_train, cache=cache)
    grid = capped_grid(grid, arguments.max_dev, arguments.max_test, 0)
    largest, model = max(arguments.budgets), tagger.model
    usable = [
        cell
        for cell in grid.cells
        if cell not in tagger.seen and len(grid.training(cell)) * 0.9 >= largest and grid.evaluation(cell, seen=True)
    ]
    by_task = [[cell for cell in usable if cell.task == task] for task in sorted({cell.task for cell in usable})]
    cells = [cell for group in by_task for cell in group[:: max(1, len(group) // (arguments.cells // len(by_task)))]]
    curves: list[Run] = []
    for cell in cells:
        corpus, tests = grid.training(cell), Corpus.joined(grid.evaluation(cell, seen=True).values())
        calibration = tagger.calibration.of(cell.task, 0) if tagger.calibration else None
        rule = rule_for(calibration, tagger.config.prediction.decision)
        curve = Curve.of(model, cell, Examples.of(model, cell, corpus), Examples.of(model, cell, tests), rule)
        texts = dict(zip(sentence_hashes(corpus), corpus, strict=True))
        everything = candidates(tagger, [texts[text] for text in curve.labelled.hashes], cell)
        (zero_shot,) = curve.points([], budgets=[0])
        for seed in arguments.seeds:
            kept = np.random.default_rng(seed).permutation(len(everything))[: int(0.9 * len(everything))].tolist()
            pool = taken(everything, kept)
            lengths = np.array([len(sentence) for sentence in pool.sentences])
            orders = {
                "random": list(range(len(kept))),
                "again": np.random.default_rng([seed, 1]).permutation(len(kept)).tolist(),
                "longest": np.argsort(-lengths, kind="stable").tolist(),
            }
            orders |= {s: choose(pool, largest, s, arguments.cost) for s in arguments.strategies}
            for strategy, order in orders.items():
                points = list(curve.points([kept[i] for i in order], seed, arguments.budgets, False, False))
                run = {"cell": str(cell), "seed": seed, "strategy": strategy, "zero_shot": zero_shot.adapted}
                curves.append(run | {name: [getattr(p, own) for p in points] for name, own in _COLUMNS.items()})
    if arguments.curves:
        made = {"budgets": arguments.budgets, "curves": curves}
        arguments.curves.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    report: dict[str, object] = {"benchmark": "annotate", "cells": list(map(str, cells)), "seeds": arguments.seeds}
    by_run = {(c["cell"], c["seed"], c["strategy"]): c for c in curves}
    for task in sorted({cell.task for cell in cells}):
        own = [str(cell) for cell in cells if cell.task == task]
        measured: dict[str, dict[str, list[float]]] = {}
        report[task] = measured
        for strategy in ("again", "longest", *arguments.strategies):
            gains = 100 * np.array(
                [
                    [gain(by_run[c, s, strategy], by_run[c, s, "random"], arguments.budgets) for c in own]
                    for s in arguments.seeds
                ]
            )
            tests = [over_trainings_and_cells([gains[..., kind]]) for kind in (0, 1)]
            measured[strategy] = {
                name: [round(value, 2) for value in (test.difference, test.low, test.high)]
                for name, test in zip(("area", "word_area"), tests, strict=True)
            }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
