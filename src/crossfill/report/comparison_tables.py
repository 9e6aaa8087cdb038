"""Tables that compare methods: differences and wins, score by training size, score by the encoder's languages."""

import math
from collections.abc import Mapping

from crossfill.data.codes import find_language
from crossfill.evaluation.results import Place
from crossfill.measures.significance import ALPHA, Comparison, holm
from crossfill.report import comparisons
from crossfill.report.comparisons import Difference, Runs
from crossfill.report.rendering import Datum, Table, shown
from crossfill.studies.run_folder import Results


def comparison_tables(results: Results) -> list[Table]:
    """All comparison tables; one without results has no rows."""
    runs: Runs = {
        method: {(entry.partition, entry.seed): results.cells(entry) for entry in entries}
        for method in results.methods
        if (entries := results.proper(method))
    }
    return [difference_table(results, runs), size_table(results, runs), knowledge_table(results, runs)]


def difference_table(results: Results, runs: Runs) -> Table:
    """Every method against the study's `rival`, and its `focus` against the other factorised methods."""
    found: list[Difference] = []
    if len(runs) > 1 and results.rival in runs:
        found += comparisons.differences(runs, results.rival)
    if results.focus in runs:
        for other in (m for m in results.factorised if m in runs and m != results.focus):
            found += comparisons.differences(runs, other, [results.focus])
    best = {row.task: row for row in comparisons.wins(runs)} if found else {}
    pairs = dict.fromkeys((row.method, row.against) for row in found)
    tests = {pair: comparisons.within_corpora(runs[pair[0]], runs[pair[1]]) for pair in pairs}
    rows = []
    for row, p in zip(found, holm([row.comparison.p_value for row in found]) if found else [], strict=True):
        share = best[row.task].wins[row.method]
        rows.append(
            (
                Datum(row.task),
                Datum(shown(row.method)),
                Datum(shown(row.against)),
                _points(row.comparison.difference),
                _interval(row.comparison),
                _p_value(row.comparison.p_value),
                _p_value(p, mark="*" * (p < ALPHA)),
                _ratio(row.wins, row.losses),
                _ratio(*_significant(row, tests[row.method, row.against])),
                Datum(_named(row.hangs_on)),
                Datum(f"{share:.3g} of {best[row.task].n}", share),
            )
        )
    return Table(
        "differences",
        "Method against method",
        (
            "task",
            "method",
            "against",
            "difference",
            "95 %",
            "p",
            "Holm's p",
            "won / lost",
            "significantly",
            "hangs on",
            "best in",
        ),
        tuple(rows),
        f"Points on unseen corpora, plug-in, paired over {_count(len(results.seeds), 'seed')} and corpora. 95 % and p: "
        "Student's t with seeds and corpora as samples, so that variance between trainings counts (with one seed: over "
        "corpora alone); Holm's correction over the whole table (* below 0.05). Won / lost: corpora in which the "
        "method scores higher / lower; significantly: those of them where approximate randomisation over the corpus' "
        "sentences has p < 0.05 (Holm's correction over corpora). Hangs on: the corpus without which the difference "
        "would change its sign or be less than half. Best in: corpora in which no method of the study scores higher; "
        "methods that tie share a win.",
    )


def size_table(results: Results, runs: Runs) -> Table:
    """Correlation of scores with the number of training words that a language has in other tasks."""
    trends = comparisons.score_against_size(runs, words_elsewhere(results)) if words_elsewhere(results) else []
    rows = tuple(
        (
            Datum(trend.task),
            Datum(shown(trend.method)),
            Datum(f"{trend.found.r:.2f}".replace("-", "−"), trend.found.r),
            Datum(f"{trend.found.p:.2g}", trend.found.p),
            Datum(str(len(trend.points)), float(len(trend.points))),
        )
        for trend in trends
        if not math.isnan(trend.found.r)
    )
    return Table(
        "size",
        "Score against training size",
        ("task", "method", "r", "p", "corpora"),
        rows,
        "Pearson's r between the score in an unseen cell and the logarithm of the training words that its language has "
        "in the seen cells of other tasks.",
    )


def words_elsewhere(results: Results) -> dict[str, dict[str, int]]:
    """By task, then language: training words of the language's seen cells, where the task itself is unseen."""
    found: dict[str, dict[str, int]] = {}
    for entry in results.proper():
        words: Mapping[str, int] = results.jobs[entry.job].get("words", {})
        for cell in results.jobs[entry.job]["unseen"]:
            task, _, language = cell.partition("/")
            elsewhere = sum(n for other, n in words.items() if other.partition("/")[2] == language)
            if elsewhere:
                found.setdefault(task, {})[language] = elsewhere
    return found


def knowledge_table(results: Results, runs: Runs) -> Table:
    """Scores where the encoder was trained on the language, and where it was not."""
    known = {find_language(code) or code for code in results.study.get("encoder_languages") or ()}
    rows = tuple(
        (
            Datum(row.task),
            Datum(shown(row.method)),
            Datum(f"{100 * row.known:.1f} ({row.n_known})", row.known),
            Datum(f"{100 * row.unknown:.1f} ({row.n_unknown})", row.unknown),
            _points(row.known - row.unknown),
        )
        for row in (comparisons.score_by_encoder_knowledge(runs, known) if known else ())
        if row.n_known and row.n_unknown
    )
    return Table(
        "knowledge",
        "Score by what the encoder knows",
        ("task", "method", "known", "unknown", "difference"),
        rows,
        "Mean scores of unseen corpora, and how many, in the languages that the encoder was trained on "
        "(encoder_languages in the study) and in others.",
    )


def _significant(row: Difference, tests: Mapping[Place, tuple[Comparison, float]]) -> tuple[int, int]:
    """The numbers of corpora of the row's task where its method is significantly better, and worse."""
    differences = [found.difference for (cell, _), (found, p) in tests.items() if cell.task == row.task and p < ALPHA]
    return sum(d > 0 for d in differences), sum(d < 0 for d in differences)


def _p_value(p: float, mark: str = "") -> Datum:
    return Datum(f"{p:.3f}" if p >= 0.0005 else "< 0.001", p, mark=mark)


def _interval(found: Comparison) -> Datum:
    if math.isnan(found.low):
        return Datum("–")
    return Datum(f"{_points(found.low).text} to {_points(found.high).text}", found.low)


def _named(place: Place | None) -> str:
    return "" if place is None else str(place[0])


def _count(n: int, name: str) -> str:
    return f"{n} {name}{'s' * (n != 1)}"


def _ratio(won: int, lost: int) -> Datum:
    return Datum(f"{won} / {lost}", float(won - lost))


def _points(difference: float) -> Datum:
    text = f"{100 * difference:+.1f}".replace("-", "−")
    return Datum(text, difference)
