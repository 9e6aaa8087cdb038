"""The tables of a study, from its results alone."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from crossfill.evaluation.results import (
    CellResult,
    PredictionKind,
    average,
    entropy_correlation,
    entropy_points,
    grouped,
    mean,
    mean_by,
    place_means,
)
from crossfill.measures.significance import ALPHA, Correlation, holm, over_trainings_and_cells, summarise
from crossfill.report.comparisons import compare, comparison_tables
from crossfill.report.rendering import (
    Datum,
    Table,
    method_label,
    number,
    percent,
    points,
    true_minus,
    with_best_in_bold,
)
from crossfill.studies.run_folder import ResultEntry, StudyResults, is_subset

MEASURES = {"nll": "NLL", "brier": "Brier", "ece": "ECE", "ece_adaptive": "adaptive ECE", "aurc": "AURC"}
KINDS: dict[PredictionKind, str] = {"plug_in": "plug-in", "averaged": "averaged"}
SCRATCH = "from scratch"
ANNOTATED = "chosen"
_CURVE_MEASURES = {"nll": "NLL", "ece": "ECE", "averaged_nll": "NLL, averaged", "averaged_ece": "ECE, averaged"}
Scores = dict[str, dict[int, dict[str, float]]]
"""Means over orders and seeds by method or other kind of head, number of sentences and cell."""


def make_tables(results: StudyResults) -> list[Table]:
    """Make all tables that the study has results for."""
    tables = [main_table(results, group, kind) for group in results.groups for kind in KINDS]
    tables += [make(results) for make in (subset_table, calibration_table, held_out_table, entropy_table)]
    tables += [*few_shot_tables(results), *comparison_tables(results), ablation_table(results), language_table(results)]
    return [table for table in tables if table.rows]


def main_table(results: StudyResults, group: str, kind: PredictionKind = "plug_in") -> Table:
    """Make Table 1, or the same for another group or kind: mean scores of tasks and methods on unseen cells."""
    entries = {m: of_method for m in results.methods if (of_method := results.proper(m, group))}
    tasks = sorted({r.cell.task for of_method in entries.values() for r in results.unseen(of_method)})
    rows = [(task, *_compared(results, entries, task, kind)) for task in tasks]
    if len(tasks) > 1:
        means = [_score(seed_means(results, of_method, tasks, kind)) for of_method in entries.values()]
        rows.append(("mean", *with_best_in_bold(means)))
    chosen = results.study.get("chosen")
    is_oracle = results.is_oracle(results.proper(group=group))
    notes = {"best": len(entries) > 1, "chosen": chosen, "oracle": is_oracle}
    is_first = group == results.groups[0]
    plug_in = "table1" if is_first else "plug-in"
    table = Table.of(
        plug_in if kind == "plug_in" else "averaged",
        ("task", *map(method_label, entries)),
        rows,
        [note for note, is_true in notes.items() if is_true],
        partitions=f" (partitions: {group})" if len(results.groups) > 1 else "",
        deviation=_deviation(entries.values()),
        date=chosen and chosen["date"],
        languages=chosen and str(len(chosen["languages"])),
    )
    return table if is_first else replace(table, name=f"{table.name}-{group}")


def _compared(
    results: StudyResults, entries: Mapping[str, Sequence[ResultEntry]], task: str, kind: PredictionKind
) -> list[Datum]:
    """Return each method's entry: the best in bold, and a mark on what is significantly below it."""
    scores = {method: seed_means(results, of_method, [task], kind) for method, of_method in entries.items()}
    means = {method: of_method.mean() for method, of_method in scores.items() if len(of_method)}
    best = max(means, key=lambda method: means[method])
    by_training = {
        method: {(e.partition, e.seed): place_means(results.unseen([e], task), kind=kind) for e in entries[method]}
        for method in means
    }
    others = [method for method in means if method != best]
    p_values = holm([compare(by_training[best], by_training[method]).p_value for method in others])
    below = {method for method, p in zip(others, p_values, strict=True) if p < ALPHA}
    return with_best_in_bold([_score(of_method, "†" if m in below else "") for m, of_method in scores.items()])


def subset_table(results: StudyResults) -> Table:
    """Make Table 2: scores on the same number of similar (Sim) and of different (Dif) languages."""
    named = {entry.group: entry.group.split("-") for entry in results.entries if is_subset(entry.group)}
    groups = sorted(named, key=lambda group: (int(named[group][1]), named[group][0] == "dif"))
    rows, shown = [], []
    for method in results.methods:
        entries = [results.proper(method, group) for group in groups]
        for task in results.tasks:
            scores = [seed_means(results, of_group, [task]) for of_group in entries]
            if any(map(len, scores)):
                rows.append((method_label(method), task, *map(_score, scores)))
                shown += entries
    columns = (f"{named[group][0].capitalize()} |L| = {named[group][1]}" for group in groups)
    return Table.of("table2", ("method", "task", *columns), rows, deviation=_deviation(shown))


def calibration_table(results: StudyResults) -> Table:
    """Show calibration measures of each task and method on unseen cells."""
    rows = []
    for task, method, unseen in _by_task_and_method(results):
        for kind, name in KINDS.items():
            data = [number(mean([r.measures(kind)[measure] for r in unseen]), 3) for measure in MEASURES]
            rows.append((task, method_label(method), name, *data))
    return Table.of("calibration", ("task", "method", "prediction", *MEASURES.values()), rows)


def held_out_table(results: StudyResults) -> Table:
    """Show unseen cells with and without what was fitted on held-out cells: scores, NLL, ECE, label sets."""
    rows, alphas = [], set()
    for group in results.groups:
        for task, method, unseen in _by_task_and_method(results, group):
            calibrated = [(r, r.label_sets) for r in unseen if r.label_sets is not None]
            if not calibrated:
                continue
            alphas |= {sets.alpha for _, sets in calibrated}
            jobs = [results.jobs[entry.job] for entry in results.proper(method, group)]
            rules = [job["rules"][method]["plug_in"][task] for job in jobs]
            scores = [percent(mean([r.plug_in[name] for r, _ in calibrated])) for name in ("argmax", "score")]
            measures = (
                ([rule["offsets"]["f1"] for rule in rules if "f1" in rule["offsets"]], 1),
                ([rule["temperature"] for rule in rules], 2),
                ([r.averaged["nll"] for r, _ in calibrated], 3),
                ([sets.tempered_nll for _, sets in calibrated], 3),
                ([r.averaged["ece"] for r, _ in calibrated], 3),
                ([sets.tempered_ece for _, sets in calibrated], 3),
                ([sets.coverage for _, sets in calibrated], 3),
                ([sets.set_size for _, sets in calibrated], 2),
            )
            data = [number(mean(values), digits) for values, digits in measures]
            rows.append((group, task, method_label(method), *scores, *data))
    columns = ("partitions", "task", "method", "argmax", "decided", "offset", "temperature", "NLL", "with T", "ECE")
    columns += ("with T", "coverage", "labels in a set")
    return Table.of("held-out", columns, rows, alphas=", ".join(f"{alpha:g}" for alpha in sorted(alphas)))


def entropy_table(results: StudyResults) -> Table:
    """Correlate entropy and score over unseen cells."""

    def datum(correlation: Correlation) -> Datum:
        r, p, _ = correlation
        if math.isnan(r):
            return Datum("–")
        p_value = f"p = {p:.2f}" if p >= 0.01 else f"p = {p:.0e}".replace("e-0", "e-")
        return Datum(true_minus(f"{r:.2f} ({p_value})"), r)

    rows = []
    for method in results.methods:
        unseen = results.unseen(results.proper(method))
        of_tasks = [entropy_correlation(entropy_points(unseen, task)) for task in (*results.tasks, None)]
        rows.append((method_label(method), *map(datum, of_tasks)))
    over_seeds = " (means over seeds)" if len(results.seeds) > 1 else ""
    return Table.of("entropy", ("method", *results.tasks, "pooled"), rows, over_seeds=over_seeds)


def ablation_table(results: StudyResults) -> Table:
    """Show scores of each ablation's variants, and their change from the study's own settings."""
    rows, shown = [], []
    for ablation, method in dict.fromkeys((e.ablation, e.method) for e in results.entries if e.ablation):
        of_ablation = [e for e in results.entries if e.ablation == ablation]
        seeds = {e.seed for e in of_ablation}
        base = [entry for entry in results.proper(method) if entry.seed in seeds]
        varied = grouped(results.proper(method, ablation=ablation), lambda entry: entry.variant)
        for variant in ("base", *dict.fromkeys(e.variant for e in of_ablation)):
            entries = base if variant == "base" else varied.get(variant)
            if not entries:
                continue
            shown.append(entries)
            scores = [seed_means(results, entries, [task], kind) for task in results.tasks for kind in KINDS]
            change = ""
            if base and variant != "base":
                new, old = (seed_means(results, part, results.tasks).mean() for part in (entries, base))
                change = points(float(new) - float(old))
            name = Datum(variant, mark="*" if results.is_oracle(entries) else "")
            rows.append((ablation, name, method_label(method), *map(_score, scores), change))
    kinds = [f"{task} {kind}" for task in results.tasks for kind in KINDS.values()]
    columns = ("varied", "variant", "method", *kinds, "change")
    return Table.of("ablations", columns, rows, deviation=_deviation(shown))


def language_table(results: StudyResults) -> Table:
    """Show scores of every unseen cell."""
    unseen = [results.unseen(results.proper(method)) for method in results.methods]
    scores = [mean_by(of_method, lambda r: r.cell_corpus, lambda r: r.score) for of_method in unseen]
    rows = []
    for place in sorted({place for of_method in scores for place in of_method}):
        data = [percent(of_method.get(place, math.nan)) for of_method in scores]
        rows.append((place[0].task, place[0].language, place[1], *with_best_in_bold(data)))
    columns = ("task", "language", "corpus", *map(method_label, results.methods))
    over_seeds = ", mean over seeds" if len(results.seeds) > 1 else ""
    return Table.of("languages", columns, rows, ["best"] if len(results.methods) > 1 else (), over_seeds=over_seeds)


def seed_means(
    results: StudyResults, entries: Iterable[ResultEntry], tasks: Sequence[str], kind: PredictionKind = "plug_in"
) -> Float[np.ndarray, "seeds"]:
    """Compute the mean score of each seed on unseen cells; tasks weigh equally."""
    means = []
    for _, of_seed in sorted(grouped(entries, lambda entry: entry.seed).items()):
        by_task = grouped(results.unseen(of_seed), lambda r: r.cell.task)
        if scores := [average(by_task[task], kind=kind) for task in tasks if task in by_task]:
            means.append(mean(scores))
    return np.array(means)


def _score(by_seed: Float[np.ndarray, "seeds"], mark: str = "") -> Datum:
    """Return mean ± sd, in percent; the mean alone if there is one seed."""
    if not len(by_seed):
        return Datum("–")
    mean, sd, n = summarise((100 * by_seed).tolist())
    return Datum(f"{mean:.1f} ± {sd:.1f}" if n > 1 else f"{mean:.1f}", mean, mark=mark)


def _deviation(shown: Iterable[Sequence[ResultEntry]]) -> str:
    """Return text that explains ± in a table of these entries, to end a sentence; none if they have one seed each."""
    n_seeds = max((len({entry.seed for entry in entries}) for entries in shown), default=0)
    return f", ± standard deviation over {n_seeds} seeds" if n_seeds > 1 else ""


def _by_task_and_method(results: StudyResults, group: str | None = None) -> Iterable[tuple[str, str, list[CellResult]]]:
    for task in results.tasks:
        for method in results.methods:
            if unseen := results.unseen(results.proper(method, group), task):
                yield task, method, unseen


def few_shot_tables(results: StudyResults) -> list[Table]:
    """Make the tables of scores, losses and comparisons of the learning curves, if there are any."""
    by_task = {task: curves(results, task) for task in results.tasks}
    numbers = sorted({k for scores in by_task.values() for by_k in scores.values() for k in by_k})
    if not numbers:
        return []
    return [_curve_table(results, by_task, numbers), _loss_table(by_task, numbers), _prior_table(results, by_task)]


def curves(results: StudyResults, task: str, measure: str = "adapted") -> Scores:
    """Return the mean of a measure by method, number of sentences and cell; with scores, also those of other heads.

    `from scratch` is that of the first method that has it; `chosen` are sentences by `annotate`, with the method that
    the report focuses on. Other measures are of the first order, the only one with averaged prediction.
    """
    measured: list[tuple[tuple[str, int, str], float]] = []
    with_scratch = None
    for method in results.methods:
        jobs = dict.fromkeys(entry.job for entry in results.proper(method))
        for row in (row for job in jobs for row in results.jobs[job].get("few_shot", {}).get(method, ())):
            k, cell, value = row["sentences"], row["cell"], row[measure]
            if not cell.startswith(f"{task}/") or value is None or (measure != "adapted" and row["draw"]):
                continue
            if row["choice"] == "random":
                measured.append(((method, k, cell), value))
                if measure == "adapted" and row["scratch"] is not None and with_scratch in (None, method):
                    with_scratch = method
                    measured.append(((SCRATCH, k, cell), row["scratch"]))
            elif measure == "adapted" and method == results.focus:
                measured.append(((ANNOTATED, k, cell), value))
    means = mean_by(measured, lambda one: one[0], lambda one: one[1])
    scores: Scores = {kind: {} for kind, _, _ in means}
    for (kind, k, cell), value in sorted(means.items(), key=lambda item: item[0][1]):
        scores[kind].setdefault(k, {})[cell] = value
    return scores


def _curve_table(results: StudyResults, by_task: Mapping[str, Scores], numbers: Sequence[int]) -> Table:
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
        for measure, name in _CURVE_MEASURES.items():
            values = means(curves(results, task, measure).get(results.focus, {}))
            rows.append((task, f"{method_label(results.focus)}: {name}", *(number(value, 3) for value in values)))
        rows.append((task, "cells", *(str(len(cells[k])) for k in numbers)))
    return Table.of("few-shot", ("task", "head", *map(str, numbers)), rows)


def _loss_table(by_task: Mapping[str, Scores], numbers: Sequence[int]) -> Table:
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


def _prior_table(results: StudyResults, by_task: Mapping[str, Scores]) -> Table:
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
