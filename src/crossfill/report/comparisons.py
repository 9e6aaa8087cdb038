"""Comparisons of methods: scores as table entries, and tables of differences, training sizes and encoder languages.

Results are grouped by method, then by training (a partition and a seed). Scores are plug-in scores of unseen cells; a
corpus that several trainings scored counts with its mean over them.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from crossfill.data.codes import find_language
from crossfill.errors import DataError, unknown
from crossfill.evaluation.results import CellResult, Place, PredictionKind, average, grouped, mean, mean_by, place_means
from crossfill.measures.significance import (
    ALPHA,
    Comparison,
    Correlation,
    approximate_randomisation,
    correlation,
    decisive_item,
    holm,
    over_trainings_and_cells,
    summarise,
)
from crossfill.measures.uncertainty import Reliability
from crossfill.report.rendering import Datum, Table, method_label, true_minus
from crossfill.studies.run_folder import ResultEntry, StudyResults

Training = tuple[str, int]
"""A partition and a seed: methods with the same one are compared in pairs."""
Trainings = Mapping[Training, Sequence[CellResult]]
Runs = Mapping[str, Trainings]
"""Results by method and training."""

SENTENCE_RESAMPLES = 2_000


class Difference(NamedTuple):
    """A method against another on one task, over unseen corpora."""

    task: str
    method: str
    against: str
    comparison: Comparison
    """Paired over seeds and corpora, both of them samples: `over_trainings_and_cells`."""
    wins: int
    losses: int
    decisive: Place | None
    """The corpus without which the difference changes its sign or falls to less than half; none if it does not."""


class MethodScores(NamedTuple):
    """Scores of a method on unseen cells: a mean for each seed; and by training, each corpus of a cell."""

    by_seed: np.ndarray
    by_training: dict[Training, dict[Place, float]]

    @classmethod
    def of(
        cls,
        results: StudyResults,
        entries: Sequence[ResultEntry],
        tasks: Sequence[str],
        kind: PredictionKind = "plug_in",
        places: Collection[Place] | None = None,
    ) -> "MethodScores":
        """Return the scores of these entries, in all or only these places; the mean of a seed weighs tasks equally."""

        def unseen(entries: Iterable[ResultEntry]) -> list[CellResult]:
            return [
                r for r in results.unseen(entries) if r.cell.task in tasks and (places is None or r.place in places)
            ]

        means = []
        for _, of_seed in sorted(grouped(entries, lambda entry: entry.seed).items()):
            by_task = grouped(unseen(of_seed), lambda r: r.cell.task)
            if by_task:
                means.append(mean([average(by_task[task], kind=kind) for task in tasks if task in by_task]))
        by_training = {(entry.partition, entry.seed): place_means(unseen([entry]), kind=kind) for entry in entries}
        return cls(np.array(means), by_training)

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(self.by_seed.mean())


def score_datum(scores: MethodScores, mark: str = "") -> Datum:
    """Return mean ± sd, in percent; the mean alone if there is one seed."""
    if not len(scores.by_seed):
        return Datum("–")
    mean, sd, n = summarise((100 * scores.by_seed).tolist())
    return Datum(f"{mean:.1f} ± {sd:.1f}" if n > 1 else f"{mean:.1f}", mean, mark=mark)


def deviation(scores: Iterable[MethodScores]) -> str:
    """Return text that explains ± in a table of these scores, to end a sentence; none if they have one seed each."""
    n_seeds = max((len(of_method.by_seed) for of_method in scores), default=0)
    return f", ± standard deviation over {n_seeds} seeds" if n_seeds > 1 else ""


def with_best_in_bold(data: Sequence[Datum]) -> list[Datum]:
    """Put the highest score of a row in bold, and those equal to it to the digit shown; none if none is lower."""
    values = [round(datum.value, 1) for datum in data if datum.value is not None]
    if len(set(values)) < 2:
        return list(data)
    return [d._replace(bold=d.value is not None and round(d.value, 1) == max(values) and not d.mark) for d in data]


def compared(by_method: Mapping[str, MethodScores]) -> list[Datum]:
    """Return each method's entry: the best in bold, and a mark on what is significantly below it."""
    means = {method: scores.mean for method, scores in by_method.items() if len(scores.by_seed)}
    if not means:
        return [Datum("–") for _ in by_method]
    best = max(means, key=lambda method: means[method])
    others = [method for method in means if method != best]
    p_values = holm([compare(by_method[best].by_training, by_method[method].by_training).p_value for method in others])
    below = {method for method, p in zip(others, p_values, strict=True) if p < ALPHA}
    return with_best_in_bold([score_datum(scores, "†" if m in below else "") for m, scores in by_method.items()])


def comparison_tables(results: StudyResults) -> list[Table]:
    """Make all comparison tables; one without results has no rows."""
    runs: Runs = {
        method: {(entry.partition, entry.seed): results.cells(entry) for entry in entries}
        for method in results.methods
        if (entries := results.proper(method))
    }
    return [difference_table(results, runs), size_table(results, runs), knowledge_table(results, runs)]


def difference_table(results: StudyResults, runs: Runs) -> Table:
    """Compare every method with the study's `rival`, and its `focus` with the other factorised methods."""
    rows: list[Difference] = []
    if len(runs) > 1 and results.rival in runs:
        rows += differences(runs, results.rival)
    if results.focus in runs:
        for other in (m for m in results.factorised if m in runs and m != results.focus):
            rows += differences(runs, other, [results.focus])
    best = {task: wins(runs, task) for task in tasks_of(runs)} if rows else {}
    pairs = dict.fromkeys((row.method, row.against) for row in rows)
    tests = {pair: within_corpora(runs[pair[0]], runs[pair[1]]) for pair in pairs}

    def data(row: Difference, corrected: float) -> Iterable[Datum | str]:
        comparison, (shares, n_corpora) = row.comparison, best[row.task]
        significant = [
            test.difference
            for (cell, _), (test, p) in tests[row.method, row.against].items()
            if cell.task == row.task and p < ALPHA
        ]
        yield from (row.task, method_label(row.method), method_label(row.against), _points(comparison.difference))
        low, high = _points(comparison.low), _points(comparison.high)
        yield "–" if math.isnan(comparison.low) else Datum(f"{low.text} to {high.text}", comparison.low)
        yield _p_value(comparison.p_value)
        yield _p_value(corrected)._replace(mark="*" if corrected < ALPHA else "")
        for won, lost in ((row.wins, row.losses), (sum(d > 0 for d in significant), sum(d < 0 for d in significant))):
            yield Datum(f"{won} / {lost}", float(won - lost))
        yield "" if row.decisive is None else str(row.decisive[0])
        yield Datum(f"{shares[row.method]:.3g} of {n_corpora}", shares[row.method])

    corrected = holm([row.comparison.p_value for row in rows])
    n_seeds = len(results.seeds)
    return Table.of(
        "differences",
        "Method against method",
        (
            "task", "method", "against", "difference", "95 %", "p", "Holm's p", "won / lost", "significantly",
            "hangs on", "best in",
        ),
        (data(row, p) for row, p in zip(rows, corrected, strict=True)),
        f"Points on unseen corpora, plug-in, paired over {n_seeds} {'seed' if n_seeds == 1 else 'seeds'} and corpora. "
        "95 % and p: Student's t with seeds and corpora as samples, so that variance between trainings counts (with "
        "one seed: over corpora alone); Holm's correction over the whole table (* below 0.05). Won / lost: corpora in "
        "which the method scores higher / lower; significantly: those of them where approximate randomisation over the "
        "corpus' sentences has p < 0.05 (Holm's correction over corpora). Hangs on: the corpus without which the "
        "difference would change its sign or be less than half. Best in: corpora in which no method of the study "
        "scores higher; methods that tie share a win.",
    )  # fmt: skip


def size_table(results: StudyResults, runs: Runs) -> Table:
    """Correlate scores with the number of training words that a language has in other tasks."""
    words, rows = words_elsewhere(results), []
    for task in tasks_of(runs):
        for method, trainings in runs.items():
            r, p, n = size_correlation(corpus_scores(trainings, task), words.get(task, {}))
            if not math.isnan(r):
                numbers = (Datum(true_minus(f"{r:.2f}"), r), Datum(f"{p:.2g}", p), Datum(str(n), float(n)))
                rows.append((task, method_label(method), *numbers))
    return Table.of(
        "size",
        "Score against training size",
        ("task", "method", "r", "p", "corpora"),
        rows,
        "Pearson's r between the score in an unseen cell and the logarithm of the training words that its language has "
        "in the seen cells of other tasks.",
    )


def words_elsewhere(results: StudyResults) -> dict[str, dict[str, int]]:
    """Count the training words of a language's seen cells where a task is unseen, by this task and language."""
    counts: dict[str, dict[str, int]] = {}
    for entry in results.proper():
        words: Mapping[str, int] = results.jobs[entry.job].get("words", {})
        for cell in results.jobs[entry.job]["unseen"]:
            task, _, language = cell.partition("/")
            elsewhere = sum(n for other, n in words.items() if other.partition("/")[2] == language)
            if elsewhere:
                counts.setdefault(task, {})[language] = elsewhere
    return counts


def size_correlation(scores: Mapping[Place, float], words: Mapping[str, int]) -> Correlation:
    """Correlate scores with the logarithm of the training words of their languages, where there are any."""
    points = [(np.log(words[cell.language]), score) for (cell, _), score in scores.items() if words.get(cell.language)]
    pairs = np.array(points, dtype=float).reshape(-1, 2)
    return correlation(pairs[:, 0], pairs[:, 1])


def knowledge_table(results: StudyResults, runs: Runs) -> Table:
    """Compare scores where the encoder was trained on the language with those where it was not."""
    languages = {find_language(code) or code for code in results.study.get("encoder_languages") or ()}
    rows = []
    for task in tasks_of(runs):
        for method, trainings in runs.items():
            by_knowledge = grouped(
                corpus_scores(trainings, task).items(), lambda item: item[0][0].language in languages
            )
            if len(by_knowledge) == 2:
                groups = [[score for _, score in by_knowledge[is_known]] for is_known in (True, False)]
                known, unknown = map(mean, groups)
                data = [Datum(f"{100 * mean(group):.1f} ({len(group)})", mean(group)) for group in groups]
                rows.append((task, method_label(method), *data, _points(known - unknown)))
    return Table.of(
        "knowledge",
        "Score by what the encoder knows",
        ("task", "method", "known", "unknown", "difference"),
        rows,
        "Mean scores of unseen corpora, and how many, in the languages that the encoder was trained on "
        "(encoder_languages in the study) and in others.",
    )


def corpus_scores(trainings: Trainings, task: str) -> dict[Place, float]:
    """Return the score of each unseen corpus of a task, mean over the trainings that scored it."""
    results = (r for results in trainings.values() for r in results if not r.seen and r.cell.task == task)
    return dict(sorted(mean_by(results, lambda r: r.cell_corpus, lambda r: r.score).items()))


def wins(runs: Runs, task: str) -> tuple[dict[str, float], int]:
    """Count the unseen corpora of a task in which each method is best (those that tie share a win), and all of them."""
    scores = _common({method: corpus_scores(trainings, task) for method, trainings in runs.items()})
    shares = dict.fromkeys(runs, 0.0)
    places = next(iter(scores.values()))
    for place in places:
        best = max(of_method[place] for of_method in scores.values())
        winners = [method for method, of_method in scores.items() if of_method[place] >= best - 1e-12]
        for method in winners:
            shares[method] += 1 / len(winners)
    return shares, len(places)


def differences(runs: Runs, against: str = "jm", methods: Collection[str] | None = None) -> list[Difference]:
    """Compare every method, or only `methods`, with `against` over unseen corpora, task by task."""
    if against not in runs:
        raise DataError(unknown("method", against, runs))
    rows = []
    for task in tasks_of(runs):
        for method in methods or [name for name in runs if name != against]:
            pair = _common({name: corpus_scores(runs[name], task) for name in (method, against)})
            change = {place: score - pair[against][place] for place, score in pair[method].items()}
            decisive = decisive_item(list(change.values()))
            first, second = (
                {
                    training: {r.cell_corpus: r.score for r in results if not r.seen and r.cell.task == task}
                    for training, results in runs[name].items()
                }
                for name in (method, against)
            )
            rows.append(
                Difference(
                    task,
                    method,
                    against,
                    compare(first, second),
                    sum(value > 0 for value in change.values()),
                    sum(value < 0 for value in change.values()),
                    None if decisive is None else list(change)[decisive],
                )
            )
    return rows


def compare(
    first: Mapping[Training, Mapping[Place, float]], second: Mapping[Training, Mapping[Place, float]]
) -> Comparison:
    """Test the mean difference between two methods over unseen corpora, with trainings and corpora as samples.

    Scores are paired by partition, seed and corpus; what only one of the methods has is left out. With less than two
    corpora nothing can be tested, and p is 1.
    """
    partitions = grouped(sorted(first.keys() & second.keys()), lambda training: training[0])
    n_seeds = min(map(len, partitions.values()), default=0)  # fewer where a study has not run to its end
    parts = []
    for trainings in partitions.values():
        pairs = [(first[training], second[training]) for training in trainings[:n_seeds]]
        places = sorted(set.intersection(*(set(scores) for pair in pairs for scores in pair)))
        parts.append(np.array([[a[place] - b[place] for place in places] for a, b in pairs]).reshape(n_seeds, -1))
    if sum(part.shape[1] for part in parts) < 2:
        return Comparison(float(np.mean(np.concatenate([p.ravel() for p in parts]))) if parts else 0.0, 1.0)
    return over_trainings_and_cells(parts)


def within_corpora(first: Trainings, second: Trainings, seed: int = 0) -> dict[Place, tuple[Comparison, float]]:
    """Compare two methods over the sentences of each unseen corpus; the second value is Holm's corrected p.

    The counts of a sentence are means over the trainings that scored it.
    """
    a, b = sentence_counts(first), sentence_counts(second)
    tests = {
        place: approximate_randomisation(a[place], b[place], SENTENCE_RESAMPLES, seed)
        for place in sorted(a.keys() & b.keys())
    }
    corrected = holm([test.p_value for test in tests.values()])
    return {place: (test, p) for (place, test), p in zip(tests.items(), corrected, strict=True)}


def sentence_counts(trainings: Trainings) -> dict[Place, np.ndarray]:
    """Average hits, gold and predicted items of each sentence of each unseen corpus over the trainings."""
    results = (r for results in trainings.values() for r in results if not r.seen)
    by_corpus = grouped(results, lambda r: r.cell_corpus)
    return {place: np.mean([r.counts for r in group], axis=0) for place, group in by_corpus.items()}


def pooled_uncertainty(results: Collection[CellResult]) -> dict[str, float]:
    """Compute measures of uncertainty over the pooled words of these results, averaged prediction.

    nll, brier, entropy and mutual information are means over words, and ece comes from the bins of all cells; aurc
    treats the words of a bin as equally confident. Adaptive ece cannot be computed from results and is left out.
    """
    words = np.array([r.n_words for r in results], dtype=np.float64)
    names = ("nll", "brier", "entropy", "mutual_information")
    means = {name: float(np.average([r.averaged[name] for r in results], weights=words)) for name in names}
    bins = pooled_reliability(results)
    count, right = bins.count[::-1], (bins.count * bins.accuracy)[::-1]  # the most confident first
    wrong = np.repeat(np.divide(count - right, count, out=np.zeros(len(count)), where=count > 0), count)
    risk = np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
    return means | {"ece": bins.error(), "aurc": float(risk.mean())}


def pooled_reliability(results: Collection[CellResult]) -> Reliability:
    """Make the reliability diagram of the pooled words of these results."""
    counts = np.array([r.reliability["count"] for r in results], dtype=np.int64)
    total = counts.sum(0)
    confidence, accuracy = (
        (counts * np.array([r.reliability[name] for r in results])).sum(0) / np.maximum(1, total)
        for name in ("confidence", "accuracy")
    )
    return Reliability(total, confidence, accuracy)


def tasks_of(runs: Runs) -> list[str]:
    """Return the tasks with unseen cells, sorted."""
    return sorted({r.cell.task for results in runs.values() for run in results.values() for r in run if not r.seen})


def _common(scores: Mapping[str, Mapping[Place, float]]) -> dict[str, dict[Place, float]]:
    """Return the scores of the corpora that every method has."""
    shared = set.intersection(*(set(values) for values in scores.values()))
    if not shared:
        raise DataError(f"expected unseen corpora that all of {', '.join(scores)} were scored on, got none in common")
    return {method: {place: values[place] for place in sorted(shared)} for method, values in scores.items()}


def _points(difference: float) -> Datum:
    return Datum(true_minus(f"{100 * difference:+.1f}"), difference)


def _p_value(p: float) -> Datum:
    return Datum(f"{p:.3f}" if p >= 0.0005 else "< 0.001", p)
