"""The tables of a study, from its results alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crossfill import significance
from crossfill.experiments.averages import Sample, entropy_points, foresight, shown
from crossfill.experiments.comparison_tables import comparison_tables, runs_of
from crossfill.experiments.comparisons import Runs, pooled_uncertainty
from crossfill.experiments.rendering import Datum, Table
from crossfill.experiments.results import Results, is_subset

MEASURES = {"nll": "NLL", "brier": "Brier", "ece": "ECE", "ece_adaptive": "adaptive ECE", "aurc": "AURC"}
METRICS = ("accuracy", "macro_f1", "span_f1", "lenient_f1", "token_f1", "published_f1")


def make_tables(results: Results) -> list[Table]:
    """All tables that the study has results for."""
    groups, runs = results.groups, runs_of(results)
    tables = [main_table(results, group, kind) for group in groups for kind in ("plug_in", "averaged")]
    tables += [subset_table(results), metric_table(results), calibration_table(results, runs), entropy_table(results)]
    tables += [*comparison_tables(results, runs), ablation_table(results), language_table(results), cost_table(results)]
    return [table for table in tables if table.rows]


def main_table(results: Results, group: str, kind: str = "plug_in") -> Table:
    """Table 1: the mean of each task and method over unseen cells, ± sd over seeds, and what differs from the best."""
    methods = [method for method in results.methods if results.proper(method, group)]
    tasks = sorted({row["task"] for row in _rows(results, group)})
    rows = []
    for task in tasks:
        by_method = {m: Sample.of(_rows(results, group, m, task), f"{kind}_score") for m in methods}
        rows.append((Datum(task), *_compared(by_method)))
    if len(tasks) > 1:
        means = {m: Sample.of(_rows(results, group, m), f"{kind}_score", by_task=True) for m in methods}
        best = max(sample.mean for sample in means.values())
        rows.append((Datum("mean"), *(score_datum(s, bold=s.mean >= best - 1e-12) for s in means.values())))
    which = "posterior means plugged in" if kind == "plug_in" else "averaged over posterior samples"
    more = f"-{group}" if len(results.groups) > 1 else ""
    oracle = any(row["selection"] == "oracle" for row in _rows(results, group))
    return Table(
        f"table1{'' if kind == 'plug_in' else '-averaged'}{more}",
        f"Table 1: scores on unseen cells, {which}" + (f" ({group} halves)" if more else ""),
        ("task", *(shown(m) for m in methods)),
        tuple(rows),
        f"Mean over the corpora of unseen cells, ± standard deviation over {_count(results.seeds, 'seed')}. Bold: the "
        "best, and what does not differ from it. † below the best at p < 0.05 (approximate randomisation over cells, "
        "Holm's correction)." + " Selected on dev data of UNSEEN cells (oracle): not zero-shot." * oracle,
    )


def subset_table(results: Results) -> Table:
    """Table 2: the same number of similar (Sim) and of different (Dif) languages."""
    groups = sorted({e["group"] for e in results.entries if is_subset(e["group"])}, key=_subset_order)
    rows = []
    for method in results.methods:
        for task in results.tasks:
            found = [_rows(results, group, method, task) for group in groups]
            if any(found):
                data = [score_datum(Sample.of(part, "plug_in_score")) if part else Datum("–") for part in found]
                rows.append((Datum(shown(method)), Datum(task), *data))
    names = [f"{'Sim' if group.startswith('sim') else 'Dif'} |L| = {group.split('-')[1]}" for group in groups]
    return Table(
        "table2",
        "Table 2: similar against different languages",
        ("method", "task", *names),
        tuple(rows) if groups else (),
        "Mean over unseen cells when |L| languages, as alike or as unlike as possible, are all there is.",
    )


def metric_table(results: Results) -> Table:
    """Every metric of every task: strict, lenient, per token, and as published."""
    rows = []
    for task in results.tasks:
        for method in results.methods:
            found = _rows(results, None, method, task)
            if found:
                data = [_metric(found, name) for name in METRICS]
                rows.append((Datum(task), Datum(shown(method)), *data))
    names = ("accuracy", "macro F1", "span F1", "lenient F1", "token F1", "published F1")
    return Table(
        "metrics",
        "Every metric on unseen cells",
        ("task", "method", *names),
        tuple(rows),
        "Plug-in prediction. Span F1 (strict IOB2) is the headline of NER. Published F1 counts as the authors' script "
        "does and is not comparable to span F1.",
    )


def calibration_table(results: Results, runs: Runs) -> Table:
    """How far probabilities can be trusted."""
    rows = []
    for task in results.tasks:
        for method in results.methods:
            found = _rows(results, None, method, task)
            if found:
                for kind, name in (("plug_in", "plug-in"), ("averaged", "averaged")):
                    data = [_number(np.mean([row[f"{kind}_{m}"] for row in found]), 3) for m in MEASURES]
                    rows.append((Datum(task), Datum(shown(method)), Datum(name), *data))
    for method in runs:
        pooled = pooled_uncertainty([result for run in runs[method] for result in run if not result.seen])
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
    """Does doubt foretell error? Correlation of entropy and score over unseen cells."""
    rows = []
    for method in results.methods:
        data = [Datum(shown(method))]
        for task in (*results.tasks, None):
            points = entropy_points(results, method, task)
            data.append(_correlation(points))
        rows.append(tuple(data))
    return Table(
        "entropy",
        "Entropy against score",
        ("method", *results.tasks, "pooled"),
        tuple(rows),
        "Pearson's r between the mean entropy of a cell's predictions and its score, over unseen cells (means over "
        "seeds), with the two-tailed p-value; −1 is perfect foresight.",
    )


def ablation_table(results: Results) -> Table:
    """What each choice is worth, against the study's own settings."""
    rows = []
    asked = dict.fromkeys((e["ablation"], e["method"]) for e in results.entries if e["ablation"])
    for ablation, method in asked:
        variants = dict.fromkeys(e["variant"] for e in results.entries if e["ablation"] == ablation)
        seeds = {e["seed"] for e in results.entries if e["ablation"] == ablation}
        base = [row for row in _rows(results, None, method) if row["seed"] in seeds]
        for variant in ("base", *variants):
            found = base if variant == "base" else _rows(results, None, method, None, ablation, variant)
            if not found:
                continue
            data = []
            for task in results.tasks:
                part = [row for row in found if row["task"] == task]
                data += [score_datum(Sample.of(part, f"{kind}_score")) for kind in ("plug_in", "averaged")]
            change = _change(found, base) if base and variant != "base" else Datum("")
            oracle = "*" * any(row["selection"] == "oracle" for row in found)
            rows.append((Datum(ablation), Datum(variant, mark=oracle), Datum(shown(method)), *data, change))
    kinds = [f"{task} {kind}" for task in results.tasks for kind in ("plug-in", "averaged")]
    return Table(
        "ablations",
        "Ablations",
        ("varied", "variant", "method", *kinds, "change"),
        tuple(rows),
        "Means over unseen cells; the change is that of the mean over tasks, plug-in. * selected on dev data of unseen "
        "cells: not zero-shot.",
    )


def language_table(results: Results) -> Table:
    """Scores of every unseen cell."""
    rows = []
    places = sorted({(r["task"], r["language"], r["corpus"]) for r in _rows(results, None)})
    for task, language, corpus in places:
        data = []
        for method in results.methods:
            here = _rows(results, None, method, task)
            found = [r["score"] for r in here if (r["language"], r["corpus"]) == (language, corpus)]
            data.append(_percent(np.mean(found)) if found else Datum("–"))
        best = max((datum.value or 0.0) for datum in data)
        rows.append((Datum(task), Datum(language), Datum(corpus), *(d._replace(bold=d.value == best) for d in data)))
    return Table(
        "languages",
        "Every unseen cell",
        ("task", "language", "corpus", *(shown(m) for m in results.methods)),
        tuple(rows),
        "Plug-in prediction, mean over seeds.",
    )


def cost_table(results: Results) -> Table:
    """What each method takes."""
    rows = []
    for method in results.methods:
        jobs = [results.jobs[job] for job in dict.fromkeys(e["job"] for e in results.proper(method))]
        if not jobs:
            continue
        measured = [job["measured"] for job in jobs]
        sizes = [job["sizes"] for job in jobs]
        shared = "*" * any(len(job["methods"]) > 1 for job in jobs)
        rows.append(
            (
                Datum(shown(method), mark=shared),
                _count_datum(np.mean([s["parameters"] for s in sizes])),
                _count_datum(np.mean([s["training_words"] for s in sizes])),
                _count_datum(np.mean([s["steps"] for s in sizes])),
                _number(np.mean([m["train_seconds"] for m in measured]), 0),
                _number(np.mean([m["evaluate_seconds"] for m in measured]), 0),
                _number(max(m["peak_memory_mb"] for m in measured), 0),
            )
        )
    names = ("method", "parameters", "training words", "steps", "training, s", "evaluation, s", "peak memory, MB")
    caption = (
        "Means over jobs, the largest for memory; steps until training stopped. * one training serves several methods."
    )
    return Table("costs", "Costs", names, tuple(rows), caption)


def score_datum(sample: Sample, bold: bool = False, mark: str = "") -> Datum:
    """Mean ± sd, in percent."""
    if not len(sample.by_seed):
        return Datum("–")
    mean, sd, n = significance.summarise((100 * sample.by_seed).tolist())
    return Datum(f"{mean:.1f} ± {sd:.1f}" if n > 1 else f"{mean:.1f}", mean, bold, mark)


def _compared(by_method: Mapping[str, Sample]) -> list[Datum]:
    """Each method's datum, marked where it is below the best."""
    means = {method: sample.mean for method, sample in by_method.items() if len(sample.by_seed)}
    if not means:
        return [Datum("–") for _ in by_method]
    best = max(means, key=lambda method: means[method])
    others = [method for method in means if method != best]
    p_values = significance.holm([_p_value(by_method[best], by_method[method]) for method in others])
    below = {method for method, p in zip(others, p_values, strict=True) if p < significance.ALPHA}
    return [score_datum(s, bold=m in means and m not in below, mark="†" * (m in below)) for m, s in by_method.items()]


def _p_value(first: Sample, second: Sample) -> float:
    places = sorted(first.by_cell.keys() & second.by_cell.keys())
    pairs = np.array([(first.by_cell[place], second.by_cell[place]) for place in places]).reshape(-1, 2)
    if len(pairs) < 2:
        return 1.0
    return significance.approximate_randomisation(pairs[:, 0], pairs[:, 1]).p_value


def _rows(
    results: Results,
    group: str | None,
    method: str | None = None,
    task: str | None = None,
    ablation: str = "",
    variant: str = "base",
) -> list[dict[str, Any]]:
    """Rows of unseen cells; without a group, of the study's first one."""
    wanted = group or results.groups[0]
    return [
        row
        for row in results.unseen_rows
        if row["group"] == wanted
        and (row["ablation"], row["variant"]) == (ablation, variant)
        and (method is None or row["method"] == method)
        and (task is None or row["task"] == task)
    ]


def _change(rows: Sequence[Mapping[str, Any]], base: Sequence[Mapping[str, Any]]) -> Datum:
    mean, before = (Sample.of(part, "plug_in_score", by_task=True).mean for part in (rows, base))
    return Datum(f"{100 * (mean - before):+.1f}".replace("-", "−"), mean - before)


def _subset_order(group: str) -> tuple[int, int]:
    kind, size = group.split("-")
    return int(size), int(kind == "dif")


def _metric(rows: Sequence[Mapping[str, Any]], name: str) -> Datum:
    found = [row[f"plug_in_{name}"] for row in rows if f"plug_in_{name}" in row]
    return _percent(np.mean(found)) if found else Datum("–")


def _correlation(points: Sequence[tuple[str, float, float]]) -> Datum:
    r, p, _ = foresight(points)
    if np.isnan(r):
        return Datum("–")
    chance = f"p = {p:.2f}" if p >= 0.01 else f"p = {p:.0e}".replace("e-0", "e-")
    return Datum(f"{r:.2f} ({chance})".replace("-", "−"), r)


def _percent(value: Any) -> Datum:
    return Datum(f"{100 * float(value):.1f}", 100 * float(value))


def _number(value: Any, digits: int) -> Datum:
    return Datum(f"{float(value):,.{digits}f}", float(value))


def _count_datum(value: Any) -> Datum:
    return Datum(f"{float(value):,.0f}", float(value))


def _count(things: Sequence[Any], name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"
