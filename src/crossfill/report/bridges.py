"""The table of bridges: scores by the number of languages that are seen in all of their tasks."""

from collections.abc import Sequence

from crossfill.evaluation.results import CellResult, Place, average
from crossfill.measures.significance import summarise
from crossfill.report.rendering import Datum, Table, shown
from crossfill.report.samples import with_best_in_bold
from crossfill.studies.run_folder import Results


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
