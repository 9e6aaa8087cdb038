"""The tables of a study, from its results alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crossfill import significance
from crossfill.experiments.results import Results, is_subset, unseen

METHOD_NAMES = {"pf-lr": "PF-lr", "pf-d": "PF-d", "jm": "JM", "ns": "NS", "ls": "LS", "bea": "BEA"}
ALPHA = 0.05
MEASURES = {"nll": "NLL", "brier": "Brier", "ece": "ECE", "ece_adaptive": "adaptive ECE", "aurc": "AURC"}
METRICS = ("accuracy", "macro_f1", "span_f1", "lenient_f1", "token_f1", "published_f1")


class Datum(NamedTuple):
    """What stands in one place of a table."""

    text: str
    value: float | None = None
    """What it is sorted by."""
    bold: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """A table, to be shown in any form."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Datum, ...], ...]
    caption: str = ""


def make_tables(results: Results) -> list[Table]:
    """All tables that the study has results for."""
    groups = results.groups
    tables = [main_table(results, group, kind) for group in groups for kind in ("plug_in", "averaged")]
    tables += [subset_table(results), metric_table(results), calibration_table(results), entropy_table(results)]
    tables += [ablation_table(results), language_table(results), cost_table(results)]
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
        best = max(np.mean(sample.by_seed) for sample in means.values())
        rows.append((Datum("mean"), *(s.datum(bold=np.mean(s.by_seed) >= best - 1e-12) for s in means.values())))
    which = "posterior means plugged in" if kind == "plug_in" else "averaged over posterior samples"
    more = f"-{group}" if len(results.groups) > 1 else ""
    oracle = any(row["selection"] == "oracle" for row in _rows(results, group))
    return Table(
        f"table1{'' if kind == 'plug_in' else '-averaged'}{more}",
        f"Table 1: scores on unseen cells, {which}" + (f" ({group} halves)" if more else ""),
        ("task", *(METHOD_NAMES.get(m, m) for m in methods)),
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
                data = [Sample.of(part, "plug_in_score").datum() if part else Datum("–") for part in found]
                rows.append((Datum(METHOD_NAMES.get(method, method)), Datum(task), *data))
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
                rows.append((Datum(task), Datum(METHOD_NAMES.get(method, method)), *data))
    names = ("accuracy", "macro F1", "span F1", "lenient F1", "token F1", "published F1")
    return Table(
        "metrics",
        "Every metric on unseen cells",
        ("task", "method", *names),
        tuple(rows),
        "Plug-in prediction. Span F1 (strict IOB2) is the headline of NER. Published F1 counts as the authors' script does "
        "and is not comparable to span F1.",
    )


def calibration_table(results: Results) -> Table:
    """How far probabilities can be trusted."""
    rows = []
    for task in results.tasks:
        for method in results.methods:
            found = _rows(results, None, method, task)
            if found:
                for kind, shown in (("plug_in", "plug-in"), ("averaged", "averaged")):
                    data = [_number(np.mean([row[f"{kind}_{name}"] for row in found]), 3) for name in MEASURES]
                    rows.append((Datum(task), Datum(METHOD_NAMES.get(method, method)), Datum(shown), *data))
    return Table(
        "calibration",
        "Calibration on unseen cells",
        ("task", "method", "prediction", *MEASURES.values()),
        tuple(rows),
        "Means over unseen cells; less is better everywhere. AURC: area under the risk–coverage curve.",
    )


def entropy_table(results: Results) -> Table:
    """Does doubt foretell error? Correlation of entropy and score over unseen cells."""
    rows = []
    for method in results.methods:
        data = [Datum(METHOD_NAMES.get(method, method))]
        for task in (*results.tasks, None):
            points = entropy_points(results, method, task)
            data.append(_correlation(points))
        rows.append(tuple(data))
    return Table(
        "entropy",
        "Entropy against score",
        ("method", *results.tasks, "pooled"),
        tuple(rows),
        "Pearson's r between the mean entropy of a cell's predictions and its score, over unseen cells (means over seeds), "
        "with the two-tailed p-value; −1 is perfect foresight.",
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
                data += [Sample.of(part, f"{kind}_score").datum() for kind in ("plug_in", "averaged")]
            mean = np.mean(Sample.of(found, "plug_in_score", by_task=True).by_seed)
            change = mean - np.mean(Sample.of(base, "plug_in_score", by_task=True).by_seed) if base else None
            shown = Datum("") if change is None or variant == "base" else Datum(f"{100 * change:+.1f}".replace("-", "−"), change)
            oracle = "*" * any(row["selection"] == "oracle" for row in found)
            name = METHOD_NAMES.get(method, method)
            rows.append((Datum(ablation), Datum(variant, mark=oracle), Datum(name), *data, shown))
    kinds = [f"{task} {kind}" for task in results.tasks for kind in ("plug-in", "averaged")]
    return Table(
        "ablations",
        "Ablations",
        ("varied", "variant", "method", *kinds, "change"),
        tuple(rows),
        "Means over unseen cells; the change is that of the mean over tasks, plug-in. * selected on dev data of unseen cells: "
        "not zero-shot.",
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
        ("task", "language", "corpus", *(METHOD_NAMES.get(m, m) for m in results.methods)),
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
                Datum(METHOD_NAMES.get(method, method), mark=shared),
                _count_datum(np.mean([s["parameters"] for s in sizes])),
                _count_datum(np.mean([s["training_words"] for s in sizes])),
                _count_datum(np.mean([s["steps"] for s in sizes])),
                _number(np.mean([m["train_seconds"] for m in measured]), 0),
                _number(np.mean([m["evaluate_seconds"] for m in measured]), 0),
                _number(max(m["peak_memory_mb"] for m in measured), 0),
            )
        )
    names = ("method", "parameters", "training words", "steps", "training, s", "evaluation, s", "peak memory, MB")
    caption = "Means over jobs, the largest for memory; steps until training stopped. * one training serves several methods."
    return Table("costs", "Costs", names, tuple(rows), caption)


@dataclass(frozen=True)
class Sample:
    """Scores of a method: a mean for each seed, and for each cell."""

    by_seed: np.ndarray
    by_cell: dict[tuple[str, str], float]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], key: str, by_task: bool = False) -> "Sample":
        """Of these rows; `by_task` takes means of tasks first, so that each weighs the same.

        A place is a corpus of a cell or, for spans, a cell with all its corpora: the paper's way to average.
        """
        found: dict[tuple[int, str], dict[tuple[str, str], list[float]]] = {}
        cells: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            place = (row["cell"], "" if "plug_in_span_f1" in row else row["corpus"])
            group = found.setdefault((row["seed"], row["task"] if by_task else ""), {})
            group.setdefault(place, []).append(row[key])
            cells.setdefault(place, []).append(row[key])
        means = {group: float(np.mean([np.mean(v) for v in places.values()])) for group, places in found.items()}
        seeds = sorted({seed for seed, _ in means})
        by_seed = [float(np.mean([mean for (seed, _), mean in means.items() if seed == s])) for s in seeds]
        return cls(np.array(by_seed), {place: float(np.mean(values)) for place, values in cells.items()})

    def datum(self, bold: bool = False, mark: str = "") -> Datum:
        """Mean ± sd, in percent."""
        if not len(self.by_seed):
            return Datum("–")
        mean = 100 * float(self.by_seed.mean())
        spread = f" ± {100 * self.by_seed.std(ddof=1):.1f}" if len(self.by_seed) > 1 else ""
        return Datum(f"{mean:.1f}{spread}", mean, bool(bold), mark)


def entropy_points(results: Results, method: str, task: str | None = None) -> list[tuple[str, float, float]]:
    """(cell, mean entropy, score) of every unseen cell, means over seeds: the paper's entropy study."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for entry in results.proper(method):
        for cell in unseen(results.cells(entry)):
            if (task is None or cell["cell"].startswith(f"{task}/")) and cell["entropies"]:
                point = (float(np.mean(cell["entropies"])), float(cell["averaged"]["score"]))
                found.setdefault((cell["cell"], cell["corpus"]), []).append(point)
    return [(place[0], *map(float, np.mean(points, axis=0))) for place, points in sorted(found.items())]


def pearson(points: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Pearson's r and its two-tailed p-value; not a number where there are fewer than three points or no variance."""
    x, y = np.array(list(points), dtype=float).reshape(-1, 2).T
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan"), float("nan")
    r = float(np.clip(np.corrcoef(x, y)[0, 1], -1.0, 1.0))
    # under independence r has the density (1 − r²)^((n − 4) / 2) / B; with r = sin a: cos(a)^(n − 3)
    angles = np.linspace(0.0, np.pi / 2, 200_001)
    tail = np.linspace(np.arcsin(abs(r)), np.pi / 2, 200_001)
    whole, beyond = (float(np.trapezoid(np.cos(a).clip(0.0) ** (len(x) - 3), a)) for a in (angles, tail))
    return r, min(1.0, beyond / whole)


def _compared(by_method: Mapping[str, Sample]) -> list[Datum]:
    """Each method's datum, marked where it is below the best."""
    means = {method: float(np.mean(sample.by_seed)) for method, sample in by_method.items() if len(sample.by_seed)}
    if not means:
        return [Datum("–") for _ in by_method]
    best = max(means, key=lambda method: means[method])
    others = [method for method in means if method != best]
    p_values = significance.holm([_p_value(by_method[best], by_method[method]) for method in others])
    below = {method for method, p in zip(others, p_values, strict=True) if p < ALPHA}
    return [s.datum(bold=m in means and m not in below, mark="†" * (m in below)) for m, s in by_method.items()]


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


def _subset_order(group: str) -> tuple[int, int]:
    kind, size = group.split("-")
    return int(size), int(kind == "dif")


def _metric(rows: Sequence[Mapping[str, Any]], name: str) -> Datum:
    found = [row[f"plug_in_{name}"] for row in rows if f"plug_in_{name}" in row]
    return _percent(np.mean(found)) if found else Datum("–")


def _correlation(points: Sequence[tuple[str, float, float]]) -> Datum:
    r, p = pearson([(entropy, score) for _, entropy, score in points])
    if np.isnan(r):
        return Datum("–")
    shown = f"p = {p:.2f}" if p >= 0.01 else f"p = {p:.0e}".replace("e-0", "e-")
    return Datum(f"{r:.2f} ({shown})".replace("-", "−"), r)


def _percent(value: Any) -> Datum:
    return Datum(f"{100 * float(value):.1f}", 100 * float(value))


def _number(value: Any, digits: int) -> Datum:
    return Datum(f"{float(value):,.{digits}f}", float(value))


def _count_datum(value: Any) -> Datum:
    return Datum(f"{float(value):,.0f}", float(value))


def _count(things: Sequence[Any], name: str) -> str:
    return f"{len(things)} {name}{'s' * (len(things) != 1)}"
