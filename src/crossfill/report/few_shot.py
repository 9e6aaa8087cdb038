"""Tables of learning curves: what labelled sentences of unseen cells are worth, how sure, and by which prior."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from crossfill.evaluation.results import mean, mean_by
from crossfill.measures.significance import holm, over_trainings_and_cells
from crossfill.report.rendering import Datum, Table, method_label, number, percent, true_minus, with_best_in_bold
from crossfill.studies.run_folder import StudyResults

SCRATCH = "from scratch"
ANNOTATED = "chosen"
_MEASURES = {"nll": "NLL", "ece": "ECE", "averaged_nll": "NLL, averaged", "averaged_ece": "ECE, averaged"}
Scores = dict[str, dict[int, dict[str, float]]]
"""Means over orders and seeds by method or other kind of head, number of sentences and cell."""


def few_shot_tables(results: StudyResults) -> list[Table]:
    """Make the tables of scores, losses and comparisons of the learning curves, if there are any."""
    by_task = {task: curves(results, task) for task in results.tasks}
    numbers = sorted({k for scores in by_task.values() for by_k in scores.values() for k in by_k})
    if not numbers:
        return []
    return [_scores(results, by_task, numbers), _losses(by_task, numbers), _priors(results, by_task)]


def curves(results: StudyResults, task: str, measure: str = "adapted") -> Scores:
    """Return the mean of a measure by method, number of sentences and cell; with scores, also those of other heads.

    `from scratch` is that of the first method that has it; `chosen` are sentences by `annotate`, with the method that
    the report focuses on.
    """
    points: list[tuple[tuple[str, int, str], float]] = []
    with_scratch = None
    for method in results.methods:
        jobs = dict.fromkeys(entry.job for entry in results.proper(method))
        for row in (row for job in jobs for row in results.jobs[job].get("few_shot", {}).get(method, ())):
            k, cell, value = row["sentences"], row["cell"], row[measure]
            if not cell.startswith(f"{task}/") or value is None:
                continue
            if row["choice"] == "random":
                points.append(((method, k, cell), value))
                if measure == "adapted" and row["scratch"] is not None and with_scratch in (None, method):
                    with_scratch = method
                    points.append(((SCRATCH, k, cell), row["scratch"]))
            elif measure == "adapted" and method == results.focus:
                points.append(((ANNOTATED, k, cell), value))
    means = mean_by(points, lambda point: point[0], lambda point: point[1])
    scores: Scores = {kind: {} for kind, _, _ in means}
    for (kind, k, cell), value in sorted(means.items(), key=lambda item: item[0][1]):
        scores[kind].setdefault(k, {})[cell] = value
    return scores


def _scores(results: StudyResults, by_task: Mapping[str, Scores], numbers: Sequence[int]) -> Table:
    """Show mean scores on unseen cells by number of sentences; and NLL and ECE of the method in focus."""
    rows = []
    for task, scores in by_task.items():
        methods = [by_k for kind, by_k in scores.items() if kind not in (SCRATCH, ANNOTATED)]
        cells = {k: set.intersection(*(set(by_k.get(k, {})) for by_k in methods)) if methods else () for k in numbers}

        def means(by_k: Mapping[int, Mapping[str, float]], cells: Mapping[int, Collection[str]] = cells) -> list[float]:
            """Return the mean over the cells that every method has, for each number of sentences."""
            return [mean([value for cell, value in by_k.get(k, {}).items() if cell in cells[k]]) for k in numbers]

        columns = zip(*(map(percent, means(by_k)) for by_k in scores.values()), strict=True)
        for kind, *data in zip(scores, *map(with_best_in_bold, columns), strict=True):
            rows.append((task, method_label(kind), *data))
        for measure, name in _MEASURES.items():
            values = means(curves(results, task, measure).get(results.focus, {}))
            rows.append((task, f"{method_label(results.focus)}: {name}", *(number(value, 3) for value in values)))
        rows.append((task, "cells", *(str(len(cells[k])) for k in numbers)))
    return Table.of("few-shot", ("task", "head", *map(str, numbers)), rows)


def _losses(by_task: Mapping[str, Scores], numbers: Sequence[int]) -> Table:
    """Show how many cells fall below their zero-shot score, and how far."""

    def loss(before: Mapping[str, float], after: Mapping[str, float]) -> Datum:
        if not after:
            return Datum("–")
        changes = [100 * (score - before[cell]) for cell, score in after.items()]
        share = 100 * float(np.mean([change < 0 for change in changes]))
        return Datum(true_minus(f"{share:.0f} % ({min(0.0, *changes):.1f})"), share)

    rows = [
        (task, method_label(method), *(loss(by_k[0], by_k.get(k, {})) for k in numbers if k))
        for task, scores in by_task.items()
        for method, by_k in scores.items()
        if method not in (SCRATCH, ANNOTATED) and 0 in by_k
    ]
    columns = ("task", "method", *(str(k) for k in numbers if k))
    return Table.of("few-shot-losses", columns, rows if any(numbers) else ())


def _priors(results: StudyResults, by_task: Mapping[str, Scores]) -> Table:
    """Compare the prior of each method with that of the rival, by number of sentences."""
    names, tests = [], []
    for task, scores in by_task.items():
        for method in (m for m in results.methods if m != results.rival):
            for k, of_rival in scores.get(results.rival, {}).items():
                of_method = scores.get(method, {}).get(k, {})
                gaps = [100 * (of_method[cell] - of_rival[cell]) for cell in sorted(set(of_rival) & set(of_method))]
                if len(gaps) > 1:
                    tests.append(over_trainings_and_cells([np.array([gaps])]))
                    names.append((task, method_label(method), Datum(str(k), k)))
    rows = [
        (*of_test, Datum(true_minus(f"{gap:+.1f}"), gap), number(p, 3), number(corrected, 3))
        for of_test, (gap, p, *_), corrected in zip(names, tests, holm([test.p_value for test in tests]), strict=True)
    ]
    columns = ("task", "method", "sentences", "difference", "p", "p (Holm)")
    return Table.of("few-shot-priors", columns, rows, rival=method_label(results.rival))
