"""Tables of learning curves: what labelled sentences of unseen cells are worth, how sure, and by which prior."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crossfill.errors import DataError
from crossfill.measures.significance import holm, over_trainings_and_cells
from crossfill.report.comparisons import with_best_in_bold
from crossfill.report.rendering import Datum, Table, shown
from crossfill.studies.run_folder import Results

SCRATCH = "from scratch"
ANNOTATED = "chosen"
_MEASURES = {"nll": "NLL", "ece": "ECE", "averaged_nll": "NLL, averaged", "averaged_ece": "ECE, averaged"}
Scores = dict[str, dict[int, dict[str, float]]]
"""Means over orders and seeds by method or other kind of head, number of sentences and cell."""


def few_shot_tables(results: Results) -> list[Table]:
    """Scores, losses and comparisons of the learning curves; empty if the study has none."""
    return [score_table(results), loss_table(results), prior_table(results)]


def curves(results: Results, task: str, measure: str = "adapted") -> Scores:
    """The mean of a measure by method, number of sentences and cell; with scores, also those of other heads.

    `from scratch` is that of the first method that has it; `chosen` are sentences by `annotate`, with the method that
    the report focuses on.
    """
    found: dict[str, dict[int, dict[str, list[float]]]] = {}

    def add(kind: str, row: Mapping[str, Any], value: float | None) -> None:
        if value is not None:
            found.setdefault(kind, {}).setdefault(row["sentences"], {}).setdefault(row["cell"], []).append(value)

    rows = [(method, row) for method in results.methods for row in _rows(results, method, task)]
    source = next((method for method, row in rows if row["scratch"] is not None), None)
    for method, row in rows:
        if row["choice"] == "random":
            add(method, row, row[measure])
            if measure == "adapted" and method == source:
                add(SCRATCH, row, row["scratch"])
        elif measure == "adapted" and method == results.focus:
            add(ANNOTATED, row, row[measure])
    return {
        kind: {k: {cell: float(np.mean(values)) for cell, values in cells.items()} for k, cells in sorted(by_k.items())}
        for kind, by_k in found.items()
    }


def mean_over(curve: Mapping[int, Mapping[str, float]], k: int, cells: Sequence[str]) -> float | None:
    """The mean over cells at a number of sentences; none if it has none of them."""
    own = [curve[k][cell] for cell in cells if k in curve and cell in curve[k]]
    return float(np.mean(own)) if own else None


def shared_cells(found: Scores) -> dict[int, list[str]]:
    """The cells that every method has at a number of sentences, of those that have the most frequent numbers."""
    methods = [by_k for kind, by_k in found.items() if kind not in (SCRATCH, ANNOTATED)]
    numbers = sorted({k for by_k in methods for k in by_k})
    return {k: sorted(set.intersection(*(set(by_k.get(k, {})) for by_k in methods))) for k in numbers}


def score_table(results: Results) -> Table:
    """Mean scores on unseen cells by number of sentences; and NLL and ECE of the method in focus."""
    rows, numbers = [], _numbers(results)
    for task in results.tasks if numbers else ():
        found = curves(results, task)
        cells = shared_cells(found)
        data = [
            with_best_in_bold([_percent(mean_over(found[kind], k, cells.get(k, ()))) for kind in found])
            for k in numbers
        ]
        for place, kind in enumerate(found):
            rows.append((Datum(task), Datum(_name(kind)), *(column[place] for column in data)))
        for measure, name in _MEASURES.items():
            own = curves(results, task, measure).get(results.focus, {})
            values = [mean_over(own, k, cells.get(k, ())) for k in numbers]
            rows.append((Datum(task), Datum(f"{shown(results.focus)}: {name}"), *map(_number, values)))
        rows.append((Datum(task), Datum("cells"), *(Datum(str(len(cells.get(k, ())))) for k in numbers)))
    return Table(
        "few-shot",
        "Scores by number of labelled sentences",
        ("task", "head", *map(str, numbers)),
        tuple(rows),
        "Mean over unseen cells that have so many training sentences, and over random orders of them; posterior means "
        "plugged in. From scratch: a prior centred on zero. Chosen: sentences by crossfill annotate, with as many "
        "words as so many random ones. Bold: the best.",
    )


def loss_table(results: Results) -> Table:
    """How many cells fall below their zero-shot score, and how far."""
    rows, numbers = [], [k for k in _numbers(results) if k]
    for task in results.tasks if numbers else ():
        for method, by_k in curves(results, task).items():
            if method not in (SCRATCH, ANNOTATED) and 0 in by_k:
                changes = {k: [100 * (v - by_k[0][c]) for c, v in by_k.get(k, {}).items()] for k in numbers}
                rows.append((Datum(task), Datum(shown(method)), *(_loss(changes[k]) for k in numbers)))
    return Table(
        "few-shot-losses",
        "Cells below their zero-shot score",
        ("task", "method", *map(str, numbers)),
        tuple(rows),
        "Share of cells whose mean score over orders is below zero-shot, and the largest loss in points.",
    )


def prior_table(results: Results) -> Table:
    """The prior of each method against that of the rival, by number of sentences."""
    entries: list[tuple[str, str, int, float, float]] = []
    for task in results.tasks if _numbers(results) else ():
        found = curves(results, task)
        rival = found.get(results.rival, {})
        for method in results.methods:
            for k in rival if method != results.rival else ():
                cells = sorted(set(rival[k]) & set(found.get(method, {}).get(k, {})))
                gaps = np.array([[100 * (found[method][k][cell] - rival[k][cell]) for cell in cells]])
                try:
                    tested = over_trainings_and_cells([gaps])
                except DataError:
                    continue
                entries.append((task, method, k, tested.difference, tested.p_value))
    adjusted = holm([entry[-1] for entry in entries]) if entries else []
    rows = [
        (Datum(task), Datum(shown(method)), Datum(str(k), k), _signed(gap), _number(p), _number(own))
        for (task, method, k, gap, p), own in zip(entries, adjusted, strict=True)
    ]
    return Table(
        "few-shot-priors",
        f"Priors against that of {shown(results.rival)}",
        ("task", "method", "sentences", "difference", "p", "p (Holm)"),
        tuple(rows),
        "Difference of mean scores in points after adaptations to the same sentences; t-test paired over cells.",
    )


def _rows(results: Results, method: str, task: str) -> list[dict[str, Any]]:
    jobs = dict.fromkeys(entry.job for entry in results.proper(method))
    found = (row for job in jobs for row in results.jobs[job].get("few_shot", {}).get(method, ()))
    return [row for row in found if row["cell"].startswith(f"{task}/")]


def _numbers(results: Results) -> list[int]:
    return sorted({k for task in results.tasks for by_k in curves(results, task).values() for k in by_k})


def _name(kind: str) -> str:
    return kind if kind in (SCRATCH, ANNOTATED) else shown(kind)


def _percent(value: float | None) -> Datum:
    return Datum("–") if value is None else Datum(f"{100 * value:.1f}", 100 * value)


def _number(value: float | None) -> Datum:
    return Datum("–") if value is None else Datum(f"{value:.3f}", value)


def _signed(value: float) -> Datum:
    return Datum(f"{value:+.1f}".replace("-", "−"), value)


def _loss(changes: Sequence[float]) -> Datum:
    if not changes:
        return Datum("–")
    share = 100 * float(np.mean([change < 0 for change in changes]))
    return Datum(f"{share:.0f} % ({min(0.0, *changes):.1f})".replace("-", "−"), share)
