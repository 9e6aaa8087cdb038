"""The table of what was fitted on seen cells held out in turn: decisions, temperatures, label sets."""

from collections.abc import Sequence

import numpy as np

from crossfill.evaluation.results import CellResult
from crossfill.report.rendering import Datum, Table, shown
from crossfill.studies.run_folder import Results


def held_out_table(results: Results) -> Table:
    """Unseen cells with and without what was fitted on held-out cells: scores, NLL, ECE; coverage of label sets."""
    rows = []
    for group in results.groups:
        for task in results.tasks:
            for method in results.methods:
                entries = results.proper(method, group)
                found = [r for r in results.unseen(entries, task) if r.label_sets is not None]
                if found:
                    offsets = [results.jobs[entry.job]["rules"][method]["plug_in"][task] for entry in entries]
                    rows.append((Datum(group), Datum(task), Datum(shown(method)), *_data(found, offsets)))
    alphas = {r.label_sets.alpha for r in results.unseen(results.entries) if r.label_sets is not None}
    return Table(
        "held-out",
        "Decisions and calibration, fitted on seen cells held out in turn",
        (
            "partitions", "task", "method", "argmax", "decided", "offset", "temperature", "NLL", "with T", "ECE",
            "with T", "coverage", "labels in a set",
        ),
        tuple(rows),
        "Means over the corpora of unseen cells and over seeds. Scores are of plug-in prediction: of each word's most "
        "probable label, and by the decision rule, whose offset on the label that means none stands beside them (means "
        "over halves). NLL and ECE are of averaged prediction, without and with the temperature T; label sets at α = "
        + ", ".join(f"{alpha:g}" for alpha in sorted(alphas))
        + ". Nothing was fitted on the cells that are scored.",
    )  # fmt: skip


def _data(found: Sequence[CellResult], rules: Sequence[dict]) -> list[Datum]:
    sets = [r.label_sets for r in found if r.label_sets is not None]
    offsets = [rule["offsets"]["f1"] for rule in rules if "f1" in rule["offsets"]]
    numbers = [
        (100 * _mean([r.plug_in["argmax"] for r in found]), 1),
        (100 * _mean([r.score for r in found]), 1),
        (_mean(offsets) if offsets else float("nan"), 1),
        (_mean([rule["temperature"] for rule in rules]), 2),
        (_mean([r.averaged["nll"] for r in found]), 3),
        (_mean([s.tempered_nll for s in sets]), 3),
        (_mean([r.averaged["ece"] for r in found]), 3),
        (_mean([s.tempered_ece for s in sets]), 3),
        (_mean([s.coverage for s in sets]), 3),
        (_mean([s.set_size for s in sets]), 2),
    ]
    return [Datum("–") if np.isnan(value) else Datum(f"{value:.{digits}f}", value) for value, digits in numbers]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
