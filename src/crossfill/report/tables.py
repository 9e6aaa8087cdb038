"""The tables of a study, from its results alone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from crossfill.evaluation.results import CellResult, Place, PredictionKind, average, entropy_correlation, entropy_points
from crossfill.grid.cells import Cell
from crossfill.grid.task import TaskKind
from crossfill.measures.significance import Correlation, summarise
from crossfill.report.comparison_tables import comparison_tables
from crossfill.report.comparisons import Sample, compared, deviation, pooled_uncertainty, score_datum, with_best_in_bold
from crossfill.report.few_shot import few_shot_tables
from crossfill.report.rendering import Datum, Table, shown
from crossfill.studies.run_folder import ResultEntry, Results, is_subset

MEASURES = {"nll": "NLL", "brier": "Brier", "ece": "ECE", "ece_adaptive": "adaptive ECE", "aurc": "AURC"}
METRICS = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "span_f1": "span F1",
    "lenient_f1": "lenient F1",
    "token_f1": "token F1",
    "published_f1": "published F1",
}
KINDS: dict[PredictionKind, str] = {"plug_in": "plug-in", "averaged": "averaged"}


def make_tables(results: Results) -> list[Table]:
    """All tables that the study has results for."""
    tables = [main_table(results, group, kind) for group in results.groups for kind in KINDS]
    makers = (bridge_table, subset_table, metric_table, calibration_table, held_out_table, entropy_table)
    tables += [*(make(results) for make in makers), *few_shot_tables(results)]
    tables += [*comparison_tables(results), ablation_table(results), language_table(results), cost_table(results)]
    return [table for table in tables if table.rows]


def main_table(results: Results, group: str, kind: PredictionKind = "plug_in") -> Table:
    """Table 1, or the same for another group or kind: mean scores of tasks and methods on unseen cells, with tests."""
    entries = {m: found for m in results.methods if (found := results.proper(m, group))}
    tasks = _tasks(results, [entry for found in entries.values() for entry in found])
    samples = {task: {m: Sample.of(results, own, [task], kind) for m, own in entries.items()} for task in tasks}
    rows = [(Datum(task), *compared(by_method)) for task, by_method in samples.items()]
    if len(tasks) > 1:
        means = [Sample.of(results, found, tasks, kind) for found in entries.values()]
        rows.append((Datum("mean"), *with_best_in_bold([*map(score_datum, means)])))
    spread = deviation(sample for by_method in samples.values() for sample in by_method.values())
    tested = (
        " Bold: the best. † below the best at p < 0.05 (paired over seeds and cells, both as samples; Holm's "
        "correction; means over tasks are not tested)."
    )
    oracle = results.is_oracle(results.proper(group=group))
    return Table(
        *_heading(results, group, kind),
        ("task", *map(shown, entries)),
        tuple(rows),
        f"Mean over the corpora of unseen cells{spread}.{_evidence(results, entries)}"
        + tested * (len(entries) > 1)
        + _choice(results, group)
        + " Selected on dev data of UNSEEN cells (oracle): not zero-shot." * oracle,
    )


def _evidence(results: Results, entries: Mapping[str, Sequence[ResultEntry]]) -> str:
    """How many gold spans stand behind the average of each task with spans, and where there are fewest."""
    first = next(iter(entries.values()), [])
    spans: dict[str, dict[Cell, int]] = {}
    for r in results.unseen(entry for entry in first if entry.seed == first[0].seed):
        if TaskKind.SPANS.metric in r.plug_in:
            by_cell = spans.setdefault(r.cell.task, {})
            by_cell[r.cell] = by_cell.get(r.cell, 0) + sum(gold for _, gold, _ in r.counts)
    return "".join(
        f" Behind {task}: {sum(found.values()):,} gold spans in {len(found)} cells, fewest in "
        f"{min(found, key=lambda cell: found[cell])} ({min(found.values()):,})."
        for task, found in sorted(spans.items())
    )


def _choice(results: Results, group: str) -> str:
    """Whether these partitions took part in the choice of the study's settings."""
    chosen = results.study.get("chosen")
    if not chosen:
        return ""
    told = f" Settings were chosen on {chosen['date']}"
    if group in chosen["partitions"]:
        return f"{told} on dev data of these partitions' seen cells: look at partitions that chose nothing, too."
    return f"{told}; these partitions chose nothing."


def _heading(results: Results, group: str, kind: PredictionKind) -> tuple[str, str]:
    """Name and title of a main table: Table 1 is plug-in prediction in the first group of partitions, and no other."""
    first = group == results.groups[0]
    if kind == "averaged":
        name, title = "averaged", "Averaged prediction: scores on unseen cells"
    elif first:
        name, title = "table1", "Table 1: scores on unseen cells, posterior means plugged in"
    else:
        name, title = "plug-in", "Plug-in prediction: scores on unseen cells"
    return name + f"-{group}" * (not first), title + f" (partitions: {group})" * (len(results.groups) > 1)


def subset_table(results: Results) -> Table:
    """Table 2: scores on the same number of similar (Sim) and of different (Dif) languages."""
    groups = sorted({entry.group for entry in results.entries if is_subset(entry.group)}, key=_subset_order)
    rows, samples = [], []
    for method in results.methods:
        for task in results.tasks:
            found = [Sample.of(results, results.proper(method, group), [task]) for group in groups]
            if any(len(sample.by_seed) for sample in found):
                rows.append((Datum(shown(method)), Datum(task), *map(score_datum, found)))
                samples += found
    names = [f"{'Sim' if group.startswith('sim') else 'Dif'} |L| = {group.split('-')[1]}" for group in groups]
    return Table(
        "table2",
        "Table 2: similar against different languages",
        ("method", "task", *names),
        tuple(rows) if groups else (),
        "Mean over unseen cells when |L| languages, as alike or as unlike as possible, are all there is"
        f"{deviation(samples)}.",
    )


def metric_table(results: Results) -> Table:
    """Every metric of every task: strict, lenient, per token, and as published."""
    rows = []
    for task, method, found in _by_task_and_method(results):
        data = [_metric(found, name) for name in METRICS]
        rows.append((Datum(task), Datum(shown(method)), *data))
    return Table(
        "metrics",
        "Every metric on unseen cells",
        ("task", "method", *METRICS.values()),
        tuple(rows),
        "Plug-in prediction. Span F1 (strict IOB2) is the headline of NER. Published F1 counts as the authors' script "
        "does and is not comparable to span F1.",
    )


def calibration_table(results: Results) -> Table:
    """Calibration measures of each task and method on unseen cells."""
    rows = []
    for task, method, found in _by_task_and_method(results):
        for kind, name in KINDS.items():
            data = [_number(np.mean([r.measures(kind)[m] for r in found]), 3) for m in MEASURES]
            rows.append((Datum(task), Datum(shown(method)), Datum(name), *data))
    for method in results.methods:
        if found := results.unseen(results.proper(method)):
            pooled = pooled_uncertainty(found)
            data = [_number(pooled[m], 3) if m in pooled else Datum("–") for m in MEASURES]
            rows.append((Datum("all words"), Datum(shown(method)), Datum("averaged"), *data))
    return Table(
        "calibration",
        "Calibration on unseen cells",
        ("task", "method", "prediction", *MEASURES.values()),
        tuple(rows),
        "Means over unseen cells, and over all their words together; less is better everywhere. AURC: area under the "
        "risk–coverage curve (for all words: from the bins of the reliability diagram).",
    )


def entropy_table(results: Results) -> Table:
    """Correlation of entropy and score over unseen cells."""
    rows = []
    for method in results.methods:
        found = results.unseen(results.proper(method))
        points = [entropy_points(found, task) for task in (*results.tasks, None)]
        rows.append((Datum(shown(method)), *(_correlation(entropy_correlation(own)) for own in points)))
    return Table(
        "entropy",
        "Correlation of entropy and score",
        ("method", *results.tasks, "pooled"),
        tuple(rows),
        "Pearson's r between the mean entropy of a cell's predictions and its score, over unseen cells"
        f"{' (means over seeds)' * (len(results.seeds) > 1)}, with the two-tailed p-value; "
        "−1: entropy predicts the score perfectly.",
    )


def ablation_table(results: Results) -> Table:
    """Scores of each ablation's variants, and their change from the study's own settings."""
    rows, samples = [], []
    asked = dict.fromkeys((e.ablation, e.method) for e in results.entries if e.ablation)
    for ablation, method in asked:
        variants = dict.fromkeys(e.variant for e in results.entries if e.ablation == ablation)
        seeds = {e.seed for e in results.entries if e.ablation == ablation}
        base = [entry for entry in results.proper(method) if entry.seed in seeds]
        for variant in ("base", *variants):
            found = base if variant == "base" else results.select(method, None, ablation, variant)
            if not found:
                continue
            own = [Sample.of(results, found, [task], kind) for task in results.tasks for kind in KINDS]
            samples += own
            change = _change(results, found, base) if base and variant != "base" else Datum("")
            oracle = "*" * results.is_oracle(found)
            names = (Datum(ablation), Datum(variant, mark=oracle), Datum(shown(method)))
            rows.append((*names, *map(score_datum, own), change))
    kinds = [f"{task} {kind}" for task in results.tasks for kind in KINDS.values()]
    return Table(
        "ablations",
        "Ablations",
        ("varied", "variant", "method", *kinds, "change"),
        tuple(rows),
        f"Means over unseen cells{deviation(samples)}; the change is that of the mean over tasks, plug-in. * selected "
        "on dev data of unseen cells: not zero-shot.",
    )


def language_table(results: Results) -> Table:
    """Scores of every unseen cell."""
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for method in results.methods:
        for r in results.unseen(results.proper(method)):
            place = (r.cell.task, r.cell.language, r.corpus)
            found.setdefault(place, {}).setdefault(method, []).append(r.score)
    rows = []
    for place, scores in sorted(found.items()):
        data = [_percent(np.mean(scores[m])) if m in scores else Datum("–") for m in results.methods]
        rows.append((*map(Datum, place), *with_best_in_bold(data)))
    return Table(
        "languages",
        "Every unseen cell",
        ("task", "language", "corpus", *(shown(m) for m in results.methods)),
        tuple(rows),
        f"Plug-in prediction{', mean over seeds' * (len(results.seeds) > 1)}."
        + " Bold: the best." * (len(results.methods) > 1),
    )


def cost_table(results: Results) -> Table:
    """Parameters, training words, steps and time of each method."""
    rows = []
    for method in results.methods:
        jobs = [results.jobs[job] for job in dict.fromkeys(e.job for e in results.proper(method))]
        if not jobs:
            continue
        measured = [job["measured"] for job in jobs]
        sizes = [job["sizes"] for job in jobs]
        shared = "*" * any(len(job["methods"]) > 1 for job in jobs)
        rows.append(
            (
                Datum(shown(method), mark=shared),
                *(_number(np.mean([s[name] for s in sizes]), 0) for name in ("parameters", "training_words", "steps")),
                *(_number(np.mean([m[name] for m in measured]), 0) for name in ("train_seconds", "evaluate_seconds")),
            )
        )
    names = ("method", "parameters", "training words", "steps", "training, s", "evaluation, s")
    caption = "Means over jobs; steps until training stopped."
    if any(row[0].mark for row in rows):
        caption += " * one training serves several methods."
    return Table("costs", "Costs", names, tuple(rows), caption)


def _tasks(results: Results, entries: Sequence[ResultEntry]) -> list[str]:
    return sorted({result.cell.task for result in results.unseen(entries)})


def _by_task_and_method(results: Results) -> Iterable[tuple[str, str, list[CellResult]]]:
    for task in results.tasks:
        for method in results.methods:
            if found := results.unseen(results.proper(method), task):
                yield task, method, found


def _change(results: Results, entries: Sequence[ResultEntry], base: Sequence[ResultEntry]) -> Datum:
    mean, before = (Sample.of(results, part, _tasks(results, part)).mean for part in (entries, base))
    return Datum(f"{100 * (mean - before):+.1f}".replace("-", "−"), mean - before)


def _subset_order(group: str) -> tuple[int, int]:
    kind, size = group.split("-")
    return int(size), int(kind == "dif")


def _metric(found: Sequence[CellResult], name: str) -> Datum:
    values = [result.plug_in[name] for result in found if name in result.plug_in]
    return _percent(np.mean(values)) if values else Datum("–")


def _correlation(found: Correlation) -> Datum:
    if np.isnan(found.r):
        return Datum("–")
    chance = f"p = {found.p:.2f}" if found.p >= 0.01 else f"p = {found.p:.0e}".replace("e-0", "e-")
    return Datum(f"{found.r:.2f} ({chance})".replace("-", "−"), found.r)


def _percent(value: Any) -> Datum:
    return Datum(f"{100 * float(value):.1f}", 100 * float(value))


def _number(value: Any, digits: int) -> Datum:
    return Datum(f"{float(value):,.{digits}f}", float(value))


def bridge_table(results: Results) -> Table:
    """Scores by number of bridges, task and method, on the cells that are unseen with every number of bridges."""
    groups = sorted((g for g in results.groups if g.startswith("bridges-")), key=_order)
    rows = []
    for task in results.tasks if len(groups) > 1 else ():
        common = _common(results, groups, task)
        for group in groups if common else ():
            data = [_datum(results, method, group, common) for method in results.methods]
            names = (Datum(task), Datum(str(_order(group)[1]), float(_order(group)[1])), Datum(str(len(common))))
            rows.append((*names, *with_best_in_bold(data)))
    n_seeds = len(results.seeds)
    spread = f", ± standard deviation over {n_seeds} seeds" if n_seeds > 1 else ""
    return Table(
        "bridges",
        "Scores by number of bridges",
        ("task", "bridges", "corpora", *map(shown, results.methods)),
        tuple(rows),
        "Bridges are languages seen in all of their tasks. Plug-in prediction, mean over the corpora that are unseen "
        f"with every number of bridges{spread}. Bold: the best.",
    )


def _common(results: Results, groups: Sequence[str], task: str) -> set[Place]:
    """The places that every method was scored on as unseen, in every group."""
    scored = [
        {r.place for r in results.unseen(entries, task)}
        for group in groups
        for method in results.methods
        if (entries := results.proper(method, group))
    ]
    return set.intersection(*scored) if scored else set()


def _datum(results: Results, method: str, group: str, places: set[Place]) -> Datum:
    by_seed: dict[int, list[CellResult]] = {}
    for entry in results.proper(method, group):
        by_seed.setdefault(entry.seed, []).extend(r for r in results.unseen([entry]) if r.place in places)
    if not by_seed:
        return Datum("–")
    mean, sd, n = summarise([100 * average(found) for found in by_seed.values()])
    return Datum(f"{mean:.1f} ± {sd:.1f}" if n > 1 else f"{mean:.1f}", mean)


def _order(group: str) -> tuple[int, int]:
    """Seed and number of bridges of a group: `bridges-10-3` has 10, with seed 3."""
    _, size, *seed = group.split("-")
    return int(seed[0]) if seed else 0, int(size)


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
