"""Tables of learning curves: what labelled sentences of unseen cells are worth, how sure, and by which prior."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crossfill.errors import DataError
from crossfill.evaluation.results import mean, mean_by
from crossfill.measures.significance import holm, over_trainings_and_cells
from crossfill.report.comparisons import with_best_in_bold
from crossfill.report.rendering import Datum, Table, method_label, number, percent, true_minus
from crossfill.studies.run_folder import StudyResults

SCRATCH = "from scratch"
ANNOTATED = "chosen"
_MEASURES = {"nll": "NLL", "ece": "ECE", "averaged_nll": "NLL, averaged", "averaged_ece": "ECE, averaged"}
Scores = dict[str, dict[int, dict[str, float]]]
"""Means over orders and seeds by method or other kind of head, number of sentences and cell."""


def few_shot_tables(results: StudyResults) -> list[Table]:
    """Make the tables of scores, losses and comparisons of the learning curves; they are empty if there are none."""
    return [score_table(results), loss_table(results), prior_table(results)]


def curves(results: StudyResults, task: str, measure: str = "adapted") -> Scores:
    """Return the mean of a measure by method, number of sentences and cell; with scores, also those of other heads.

    `from scratch` is that of the first method that has it; `chosen` are sentences by `annotate`, with the method that
    the report focuses on.
    """
    rows: list[tuple[str, Mapping[str, Any]]] = []
    for method in results.methods:
        for job in dict.fromkeys(entry.job for entry in results.proper(method)):
            of_job = results.jobs[job].get("few_shot", {}).get(method, ())
            rows += [(method, row) for row in of_job if row["cell"].startswith(f"{task}/")]
    source = next((method for method, row in rows if row["scratch"] is not None), None)
    values: list[tuple[str, Mapping[str, Any], float | None]] = []
    for method, row in rows:
        if row["choice"] == "random":
            values.append((method, row, row[measure]))
            if measure == "adapted" and method == source:
                values.append((SCRATCH, row, row["scratch"]))
        elif measure == "adapted" and method == results.focus:
            values.append((ANNOTATED, row, row[measure]))
    means = mean_by(
        [(kind, row["sentences"], row["cell"], value) for kind, row, value in values if value is not None],
        lambda point: point[:3],
        lambda point: point[3],
    )
    scores: Scores = {kind: {} for kind, _, _ in means}
    for (kind, k, cell), value in sorted(means.items(), key=lambda item: item[0][1]):
        scores[kind].setdefault(k, {})[cell] = value
    return scores


def mean_over(curve: Mapping[int, Mapping[str, float]], k: int, cells: Sequence[str]) -> float:
    """Return the mean over cells at a number of sentences; NaN if it has none of them."""
    return mean([curve[k][cell] for cell in cells if k in curve and cell in curve[k]])


def shared_cells(scores: Scores) -> dict[int, list[str]]:
    """Return the cells that every method has at a number of sentences."""
    methods = [by_k for kind, by_k in scores.items() if kind not in (SCRATCH, ANNOTATED)]
    numbers = sorted({k for by_k in methods for k in by_k})
    return {k: sorted(set.intersection(*(set(by_k.get(k, {})) for by_k in methods))) for k in numbers}


def head_name(kind: str) -> str:
    """Return the name of a method, or of another kind of head, as shown to readers."""
    return kind if kind in (SCRATCH, ANNOTATED) else method_label(kind)


def score_table(results: StudyResults) -> Table:
    """Show mean scores on unseen cells by number of sentences; and NLL and ECE of the method in focus."""
    rows, numbers = [], _numbers(results)
    for task in results.tasks if numbers else ():
        scores = curves(results, task)
        cells = shared_cells(scores)
        columns = [
            with_best_in_bold([percent(mean_over(by_k, k, cells.get(k, ()))) for by_k in scores.values()])
            for k in numbers
        ]
        for kind, *data in zip(scores, *columns, strict=True):
            rows.append((task, head_name(kind), *data))
        for measure, name in _MEASURES.items():
            of_focus = curves(results, task, measure).get(results.focus, {})
            values = [mean_over(of_focus, k, cells.get(k, ())) for k in numbers]
            rows.append((task, f"{method_label(results.focus)}: {name}", *(number(value, 3) for value in values)))
        rows.append((task, "cells", *(str(len(cells.get(k, ()))) for k in numbers)))
    return Table.of(
        "few-shot",
        "Scores by number of labelled sentences",
        ("task", "head", *map(str, numbers)),
        rows,
        "Mean over unseen cells that have so many training sentences, and over random orders of them; posterior means "
        "plugged in. From scratch: a prior centred on zero. Chosen: sentences by crossfill annotate, with as many "
        "words as so many random ones. Bold: the best.",
    )


def loss_table(results: StudyResults) -> Table:
    """Show how many cells fall below their zero-shot score, and how far."""
    rows, numbers = [], [k for k in _numbers(results) if k]
    for task in results.tasks if numbers else ():
        for method, by_k in curves(results, task).items():
            if method not in (SCRATCH, ANNOTATED) and 0 in by_k:
                data = [_loss([100 * (v - by_k[0][c]) for c, v in by_k.get(k, {}).items()]) for k in numbers]
                rows.append((task, method_label(method), *data))
    return Table.of(
        "few-shot-losses",
        "Cells below their zero-shot score",
        ("task", "method", *map(str, numbers)),
        rows,
        "Share of cells whose mean score over orders is below zero-shot, and the largest loss in points.",
    )


def prior_table(results: StudyResults) -> Table:
    """Compare the prior of each method with that of the rival, by number of sentences."""
    entries: list[tuple[str, str, int, float, float]] = []
    for task in results.tasks if _numbers(results) else ():
        scores = curves(results, task)
        rival = scores.get(results.rival, {})
        for method in results.methods:
            for k in rival if method != results.rival else ():
                cells = sorted(set(rival[k]) & set(scores.get(method, {}).get(k, {})))
                gaps = np.array([[100 * (scores[method][k][cell] - rival[k][cell]) for cell in cells]])
                try:
                    tested = over_trainings_and_cells([gaps])
                except DataError:
                    continue
                entries.append((task, method, k, tested.difference, tested.p_value))
    corrected = holm([entry[-1] for entry in entries])
    rows = [
        (
            task,
            method_label(method),
            Datum(str(k), k),
            Datum(true_minus(f"{gap:+.1f}"), gap),
            number(p, 3),
            number(holm_p, 3),
        )
        for (task, method, k, gap, p), holm_p in zip(entries, corrected, strict=True)
    ]
    return Table.of(
        "few-shot-priors",
        f"Priors against that of {method_label(results.rival)}",
        ("task", "method", "sentences", "difference", "p", "p (Holm)"),
        rows,
        "Difference of mean scores in points after adaptations to the same sentences; t-test paired over cells.",
    )


def _numbers(results: StudyResults) -> list[int]:
    return sorted({k for task in results.tasks for by_k in curves(results, task).values() for k in by_k})


def _loss(changes: Sequence[float]) -> Datum:
    if not changes:
        return Datum("–")
    share = 100 * float(np.mean([change < 0 for change in changes]))
    return Datum(true_minus(f"{share:.0f} % ({min(0.0, *changes):.1f})"), share)
