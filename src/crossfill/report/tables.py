"""The tables of a study, from its results alone."""

import math
from collections.abc import Iterable, Sequence

from crossfill.evaluation.results import (
    CellResult,
    Place,
    PredictionKind,
    entropy_correlation,
    entropy_points,
    grouped,
    mean,
    mean_by,
)
from crossfill.grid.task import TaskKind
from crossfill.measures.significance import Correlation
from crossfill.report.comparisons import (
    MethodScores,
    compared,
    comparison_tables,
    deviation,
    pooled_uncertainty,
    score_datum,
    with_best_in_bold,
)
from crossfill.report.few_shot import few_shot_tables
from crossfill.report.rendering import Datum, Table, method_label, number, percent, true_minus
from crossfill.studies.run_folder import ResultEntry, StudyResults, is_subset

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


def make_tables(results: StudyResults) -> list[Table]:
    """Make all tables that the study has results for."""
    tables = [main_table(results, group, kind) for group in results.groups for kind in KINDS]
    makers = (bridge_table, subset_table, metric_table, calibration_table, held_out_table, entropy_table)
    tables += [*(make(results) for make in makers), *few_shot_tables(results)]
    tables += [*comparison_tables(results), ablation_table(results), language_table(results), cost_table(results)]
    return [table for table in tables if table.rows]


def main_table(results: StudyResults, group: str, kind: PredictionKind = "plug_in") -> Table:
    """Make Table 1, or the same for another group or kind: mean scores of tasks and methods on unseen cells."""
    entries = {m: of_method for m in results.methods if (of_method := results.proper(m, group))}
    tasks = _tasks(results, [entry for of_method in entries.values() for entry in of_method])
    scores = {
        task: {m: MethodScores.of(results, of_method, [task], kind) for m, of_method in entries.items()}
        for task in tasks
    }
    rows = [(task, *compared(by_method)) for task, by_method in scores.items()]
    if len(tasks) > 1:
        means = [MethodScores.of(results, of_method, tasks, kind) for of_method in entries.values()]
        rows.append(("mean", *with_best_in_bold([*map(score_datum, means)])))
    caption = f"Mean over the corpora of unseen cells{deviation(s for m in scores.values() for s in m.values())}."
    caption += _span_counts(results, next(iter(entries.values()), []))
    if len(entries) > 1:
        caption += (
            " Bold: the best. † below the best at p < 0.05 (paired over seeds and cells, both as samples; Holm's "
            "correction; means over tasks are not tested)."
        )
    if chosen := results.study.get("chosen"):
        caption += f" Settings were chosen on {chosen['date']}"
        if group in chosen["partitions"]:
            caption += " on dev data of these partitions' seen cells: look at partitions that chose nothing, too."
        else:
            caption += "; these partitions chose nothing."
    if results.is_oracle(results.proper(group=group)):
        caption += " Selected on dev data of UNSEEN cells (oracle): not zero-shot."
    return Table.of(*_heading(results, group, kind), ("task", *map(method_label, entries)), rows, caption)


def _span_counts(results: StudyResults, entries: Sequence[ResultEntry]) -> str:
    """Say how many gold spans stand behind the average of each task with spans, and where there are fewest."""
    unseen = results.unseen(entry for entry in entries if entry.seed == entries[0].seed)
    text = ""
    by_task = grouped((r for r in unseen if TaskKind.SPANS.metric in r.plug_in), lambda r: r.cell.task)
    for task, of_task in sorted(by_task.items()):
        spans = {
            cell: sum(gold for r in of_cell for _, gold, _ in r.counts)
            for cell, of_cell in grouped(of_task, lambda r: r.cell).items()
        }
        fewest = min(spans, key=lambda cell: spans[cell])
        text += f" Behind {task}: {sum(spans.values()):,} gold spans in {len(spans)} cells, fewest in "
        text += f"{fewest} ({spans[fewest]:,})."
    return text


def _heading(results: StudyResults, group: str, kind: PredictionKind) -> tuple[str, str]:
    """Name a main table: Table 1 is plug-in prediction in the first group of partitions, and no other."""
    is_first = group == results.groups[0]
    if kind == "averaged":
        name, title = "averaged", "Averaged prediction: scores on unseen cells"
    elif is_first:
        name, title = "table1", "Table 1: scores on unseen cells, posterior means plugged in"
    else:
        name, title = "plug-in", "Plug-in prediction: scores on unseen cells"
    if not is_first:
        name += f"-{group}"
    return name, f"{title} (partitions: {group})" if len(results.groups) > 1 else title


def bridge_table(results: StudyResults) -> Table:
    """Show scores by number of bridges, task and method, on the cells that are unseen with every number of bridges."""
    by_group: dict[str, tuple[int, int]] = {}  # bridges-10-3: 10 bridges, chosen with seed 3
    for group in (g for g in results.groups if g.startswith("bridges-")):
        _, size, *seed = group.split("-")
        by_group[group] = int(seed[0]) if seed else 0, int(size)
    rows = []
    for task in results.tasks if len(by_group) > 1 else ():
        scored = [
            {r.place for r in results.unseen(entries, task)}
            for group in by_group
            for method in results.methods
            if (entries := results.proper(method, group))
        ]
        common: set[Place] = set.intersection(*scored) if scored else set()
        for group, (_, size) in sorted(by_group.items(), key=lambda item: item[1]) if common else ():
            scores = [
                MethodScores.of(results, results.proper(method, group), [task], places=common)
                for method in results.methods
            ]
            names = (task, Datum(str(size), float(size)), str(len(common)))
            rows.append((*names, *with_best_in_bold([*map(score_datum, scores)])))
    n_seeds = len(results.seeds)
    spread = f", ± standard deviation over {n_seeds} seeds" if n_seeds > 1 else ""
    return Table.of(
        "bridges",
        "Scores by number of bridges",
        ("task", "bridges", "corpora", *map(method_label, results.methods)),
        rows,
        "Bridges are languages seen in all of their tasks. Plug-in prediction, mean over the corpora that are unseen "
        f"with every number of bridges{spread}. Bold: the best.",
    )


def subset_table(results: StudyResults) -> Table:
    """Make Table 2: scores on the same number of similar (Sim) and of different (Dif) languages."""
    groups = {entry.group: entry.group.split("-") for entry in results.entries if is_subset(entry.group)}
    ordered = sorted(groups, key=lambda group: (int(groups[group][1]), groups[group][0] == "dif"))
    rows, of_rows = [], []
    for method in results.methods:
        for task in results.tasks:
            scores = [MethodScores.of(results, results.proper(method, group), [task]) for group in ordered]
            if any(len(of_group.by_seed) for of_group in scores):
                rows.append((method_label(method), task, *map(score_datum, scores)))
                of_rows += scores
    return Table.of(
        "table2",
        "Table 2: similar against different languages",
        ("method", "task", *(f"{groups[group][0].capitalize()} |L| = {groups[group][1]}" for group in ordered)),
        rows,
        "Mean over unseen cells when |L| languages, as alike or as unlike as possible, are all there is"
        f"{deviation(of_rows)}.",
    )


def metric_table(results: StudyResults) -> Table:
    """Show every metric of every task: strict, lenient, per token, and as published."""
    rows = []
    for task, method, unseen in _by_task_and_method(results):
        data = [percent(mean([r.plug_in[name] for r in unseen if name in r.plug_in])) for name in METRICS]
        rows.append((task, method_label(method), *data))
    return Table.of(
        "metrics",
        "Every metric on unseen cells",
        ("task", "method", *METRICS.values()),
        rows,
        "Plug-in prediction. Span F1 (strict IOB2) is the headline of NER. Published F1 counts as the authors' script "
        "does and is not comparable to span F1.",
    )


def calibration_table(results: StudyResults) -> Table:
    """Show calibration measures of each task and method on unseen cells."""
    rows = []
    for task, method, unseen in _by_task_and_method(results):
        for kind, name in KINDS.items():
            data = [number(mean([r.measures(kind)[measure] for r in unseen]), 3) for measure in MEASURES]
            rows.append((task, method_label(method), name, *data))
    for method in results.methods:
        if unseen := results.unseen(results.proper(method)):
            pooled = pooled_uncertainty(unseen)
            data = [number(pooled.get(measure, math.nan), 3) for measure in MEASURES]
            rows.append(("all words", method_label(method), "averaged", *data))
    return Table.of(
        "calibration",
        "Calibration on unseen cells",
        ("task", "method", "prediction", *MEASURES.values()),
        rows,
        "Means over unseen cells, and over all their words together; less is better everywhere. AURC: area under the "
        "risk–coverage curve (for all words: from the bins of the reliability diagram).",
    )


def held_out_table(results: StudyResults) -> Table:
    """Show unseen cells with and without what was fitted on held-out cells: scores, NLL, ECE, label sets."""
    rows, alphas = [], set()
    for group in results.groups:
        for task in results.tasks:
            for method in results.methods:
                entries = results.proper(method, group)
                calibrated = [r for r in results.unseen(entries, task) if r.label_sets is not None]
                rules = [results.jobs[entry.job]["rules"][method]["plug_in"][task] for entry in entries if calibrated]
                if calibrated:
                    rows.append((group, task, method_label(method), *_held_out_data(calibrated, rules)))
                alphas |= {r.label_sets.alpha for r in calibrated if r.label_sets is not None}
    return Table.of(
        "held-out",
        "Decisions and calibration, fitted on seen cells held out in turn",
        (
            "partitions", "task", "method", "argmax", "decided", "offset", "temperature", "NLL", "with T", "ECE",
            "with T", "coverage", "labels in a set",
        ),
        rows,
        "Means over the corpora of unseen cells and over seeds. Scores are of plug-in prediction: of each word's most "
        "probable label, and by the decision rule, whose offset on the label that means none stands beside them (means "
        "over halves). NLL and ECE are of averaged prediction, without and with the temperature T; label sets at α = "
        + ", ".join(f"{alpha:g}" for alpha in sorted(alphas))
        + ". Nothing was fitted on the cells that are scored.",
    )  # fmt: skip


def _held_out_data(calibrated: Sequence[CellResult], rules: Sequence[dict]) -> list[Datum]:
    sets = [r.label_sets for r in calibrated if r.label_sets is not None]
    columns = (
        ([rule["offsets"]["f1"] for rule in rules if "f1" in rule["offsets"]], 1),
        ([rule["temperature"] for rule in rules], 2),
        ([r.averaged["nll"] for r in calibrated], 3),
        ([s.tempered_nll for s in sets], 3),
        ([r.averaged["ece"] for r in calibrated], 3),
        ([s.tempered_ece for s in sets], 3),
        ([s.coverage for s in sets], 3),
        ([s.set_size for s in sets], 2),
    )
    scores = [percent(mean([r.plug_in[name] for r in calibrated])) for name in ("argmax", "score")]
    return scores + [number(mean(values), digits) for values, digits in columns]


def entropy_table(results: StudyResults) -> Table:
    """Correlate entropy and score over unseen cells."""
    rows = []
    for method in results.methods:
        unseen = results.unseen(results.proper(method))
        points = [entropy_points(unseen, task) for task in (*results.tasks, None)]
        rows.append((method_label(method), *(_correlation(entropy_correlation(of_task)) for of_task in points)))
    over_seeds = " (means over seeds)" if len(results.seeds) > 1 else ""
    return Table.of(
        "entropy",
        "Correlation of entropy and score",
        ("method", *results.tasks, "pooled"),
        rows,
        "Pearson's r between the mean entropy of a cell's predictions and its score, over unseen cells"
        f"{over_seeds}, with the two-tailed p-value; −1: entropy predicts the score perfectly.",
    )


def _correlation(correlation: Correlation) -> Datum:
    r, p, _ = correlation
    if math.isnan(r):
        return Datum("–")
    p_value = f"p = {p:.2f}" if p >= 0.01 else f"p = {p:.0e}".replace("e-0", "e-")
    return Datum(true_minus(f"{r:.2f} ({p_value})"), r)


def ablation_table(results: StudyResults) -> Table:
    """Show scores of each ablation's variants, and their change from the study's own settings."""
    rows, of_rows = [], []
    for ablation, method in dict.fromkeys((e.ablation, e.method) for e in results.entries if e.ablation):
        variants = dict.fromkeys(e.variant for e in results.entries if e.ablation == ablation)
        seeds = {e.seed for e in results.entries if e.ablation == ablation}
        base = [entry for entry in results.proper(method) if entry.seed in seeds]
        for variant in ("base", *variants):
            entries = base if variant == "base" else results.select(method, None, ablation, variant)
            if not entries:
                continue
            scores = [MethodScores.of(results, entries, [task], kind) for task in results.tasks for kind in KINDS]
            of_rows += scores
            change = ""
            if base and variant != "base":
                new, old = (MethodScores.of(results, part, _tasks(results, part)).mean for part in (entries, base))
                change = Datum(true_minus(f"{100 * (new - old):+.1f}"), new - old)
            oracle = Datum(variant, mark="*" if results.is_oracle(entries) else "")
            rows.append((ablation, oracle, method_label(method), *map(score_datum, scores), change))
    kinds = [f"{task} {kind}" for task in results.tasks for kind in KINDS.values()]
    return Table.of(
        "ablations",
        "Ablations",
        ("varied", "variant", "method", *kinds, "change"),
        rows,
        f"Means over unseen cells{deviation(of_rows)}; the change is that of the mean over tasks, plug-in. * selected "
        "on dev data of unseen cells: not zero-shot.",
    )


def language_table(results: StudyResults) -> Table:
    """Show scores of every unseen cell."""
    scores = {
        method: mean_by(
            results.unseen(results.proper(method)),
            lambda r: (r.cell.task, r.cell.language, r.corpus),
            lambda r: r.score,
        )
        for method in results.methods
    }
    rows = []
    for names in sorted({names for by_names in scores.values() for names in by_names}):
        data = [percent(by_names.get(names, math.nan)) for by_names in scores.values()]
        rows.append((*names, *with_best_in_bold(data)))
    caption = "Plug-in prediction, mean over seeds." if len(results.seeds) > 1 else "Plug-in prediction."
    if len(results.methods) > 1:
        caption += " Bold: the best."
    columns = ("task", "language", "corpus", *map(method_label, results.methods))
    return Table.of("languages", "Every unseen cell", columns, rows, caption)


def cost_table(results: StudyResults) -> Table:
    """Show parameters, training words, steps and time of each method."""
    rows, caption = [], "Means over jobs; steps until training stopped."
    for method in results.methods:
        jobs = [results.jobs[job] for job in dict.fromkeys(e.job for e in results.proper(method))]
        if not jobs:
            continue
        is_shared = any(len(job["methods"]) > 1 for job in jobs)
        columns = [[job["sizes"][name] for job in jobs] for name in ("parameters", "training_words", "steps")]
        columns += [[job["measured"][name] for job in jobs] for name in ("train_seconds", "evaluate_seconds")]
        data = [number(mean(values), 0) for values in columns]
        rows.append((Datum(method_label(method), mark="*" if is_shared else ""), *data))
    if any(row[0].mark for row in rows):
        caption += " * one training serves several methods."
    names = ("method", "parameters", "training words", "steps", "training, s", "evaluation, s")
    return Table.of("costs", "Costs", names, rows, caption)


def _tasks(results: StudyResults, entries: Sequence[ResultEntry]) -> list[str]:
    return sorted({result.cell.task for result in results.unseen(entries)})


def _by_task_and_method(results: StudyResults) -> Iterable[tuple[str, str, list[CellResult]]]:
    for task in results.tasks:
        for method in results.methods:
            if unseen := results.unseen(results.proper(method), task):
                yield task, method, unseen
