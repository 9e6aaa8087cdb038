"""Comparisons of methods: tables of differences, training sizes and encoder languages, and pooled reliability.

Results are grouped by method, then by training (a partition and a seed). Scores are plug-in scores of unseen cells; a
corpus that several trainings scored counts with its mean over them.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from crossfill.data.codes import find_language
from crossfill.evaluation.results import CellResult, Place, grouped, mean, mean_by
from crossfill.measures import significance
from crossfill.measures.significance import ALPHA, Comparison, Correlation, holm
from crossfill.measures.uncertainty import Reliability
from crossfill.report.rendering import Datum, Table, method_label, points, true_minus
from crossfill.studies.run_folder import StudyResults

Training = tuple[str, int]
"""A partition and a seed: methods with the same one are compared in pairs."""
Trainings = Mapping[Training, Sequence[CellResult]]
Runs = Mapping[str, Trainings]
"""Results by method and training."""


class Difference(NamedTuple):
    """A method against another on one task, over unseen corpora."""

    task: str
    method: str
    against: str
    comparison: Comparison
    """Paired over seeds and corpora, both of them samples: `over_trainings_and_cells`."""
    wins: int
    losses: int


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
    compared = differences(runs, results.rival) if len(runs) > 1 and results.rival in runs else []
    for other in results.factorised if results.focus in runs else ():
        if other in runs and other != results.focus:
            compared += differences(runs, other, [results.focus])
    best = {task: wins(runs, task) for task in {row.task for row in compared}}
    rows, corrected = [], holm([row.comparison.p_value for row in compared])
    for (task, method, against, comparison, more, less), p in zip(compared, corrected, strict=True):
        shares, n_corpora = best[task]
        low, high = points(comparison.low), points(comparison.high)
        interval = "–" if math.isnan(comparison.low) else Datum(f"{low.text} to {high.text}", comparison.low)
        rows.append(
            (
                *(task, method_label(method), method_label(against), points(comparison.difference), interval),
                *(_p_value(comparison.p_value), _p_value(p)._replace(mark="*" if p < ALPHA else "")),
                Datum(f"{more} / {less}", float(more - less)),
                Datum(f"{shares[method]:.3g} of {n_corpora}", shares[method]),
            )
        )
    n_seeds = len(results.seeds)
    columns = ("task", "method", "against", "difference", "95 %", "p", "Holm's p", "won / lost", "best in")
    return Table.of("differences", columns, rows, seeds=f"{n_seeds} {'seed' if n_seeds == 1 else 'seeds'}")


def size_table(results: StudyResults, runs: Runs) -> Table:
    """Correlate scores with the number of training words that a language has in other tasks."""
    words, rows = words_elsewhere(results), []
    for task in tasks_of(runs):
        for method, trainings in runs.items():
            r, p, n = size_correlation(corpus_scores(trainings, task), words.get(task, {}))
            if not math.isnan(r):
                numbers = (Datum(true_minus(f"{r:.2f}"), r), Datum(f"{p:.2g}", p), Datum(str(n), float(n)))
                rows.append((task, method_label(method), *numbers))
    return Table.of("size", ("task", "method", "r", "p", "corpora"), rows)


def words_elsewhere(results: StudyResults) -> dict[str, dict[str, int]]:
    """Count the training words of a language's seen cells where a task is unseen, by this task and language."""
    counts: dict[str, dict[str, int]] = {}
    for job in (results.jobs[entry.job] for entry in results.proper()):
        for task, _, language in (cell.partition("/") for cell in job["unseen"]):
            words = sum(n for cell, n in job.get("words", {}).items() if cell.partition("/")[2] == language)
            if words:
                counts.setdefault(task, {})[language] = words
    return counts


def size_correlation(scores: Mapping[Place, float], words: Mapping[str, int]) -> Correlation:
    """Correlate scores with the logarithm of the training words of their languages, where there are any."""
    pairs = [(np.log(words[cell.language]), score) for (cell, _), score in scores.items() if words.get(cell.language)]
    return significance.correlation(*np.array(pairs, dtype=float).reshape(-1, 2).T)


def knowledge_table(results: StudyResults, runs: Runs) -> Table:
    """Compare scores where the encoder was trained on the language with those where it was not."""
    languages = {find_language(code) or code for code in results.study.get("encoder_languages") or ()}
    rows = []
    for task in tasks_of(runs):
        for method, trainings in runs.items():
            scores = corpus_scores(trainings, task).items()
            known, unknown = (
                [score for (cell, _), score in scores if (cell.language in languages) is is_known]
                for is_known in (True, False)
            )
            if known and unknown:
                data = [Datum(f"{100 * mean(group):.1f} ({len(group)})", mean(group)) for group in (known, unknown)]
                rows.append((task, method_label(method), *data, points(mean(known) - mean(unknown))))
    return Table.of("knowledge", ("task", "method", "known", "unknown", "difference"), rows)


def wins(runs: Runs, task: str) -> tuple[dict[str, float], int]:
    """Count the unseen corpora of a task in which each method is best (those that tie share a win), and all of them."""
    scores = {method: corpus_scores(trainings, task) for method, trainings in runs.items()}
    shares, places = dict.fromkeys(runs, 0.0), sorted(set.intersection(*map(set, scores.values())))
    for place in places:
        best = max(of_method[place] for of_method in scores.values())
        winners = [method for method, of_method in scores.items() if of_method[place] >= best - 1e-12]
        for method in winners:
            shares[method] += 1 / len(winners)
    return shares, len(places)


def differences(runs: Runs, against: str = "jm", methods: Collection[str] | None = None) -> list[Difference]:
    """Compare every method, or only `methods`, with `against` over unseen corpora, task by task."""
    rows = []
    for task in tasks_of(runs):
        for method in methods or [name for name in runs if name != against]:
            pair = runs[method], runs[against]
            first, second = (corpus_scores(trainings, task) for trainings in pair)
            changes = [score - second[place] for place, score in first.items() if place in second]
            by_training = ({t: corpus_scores({t: results}, task) for t, results in of.items()} for of in pair)
            n_wins, n_losses = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
            rows.append(Difference(task, method, against, compare(*by_training), n_wins, n_losses))
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
    return significance.over_trainings_and_cells(parts)


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
    return sorted({r.cell.task for trainings in runs.values() for r in _unseen(trainings)})


def corpus_scores(trainings: Trainings, task: str) -> dict[Place, float]:
    """Return the score of each unseen corpus of a task, mean over the trainings that scored it."""
    results = (r for r in _unseen(trainings) if r.cell.task == task)
    return dict(sorted(mean_by(results, lambda r: r.cell_corpus, lambda r: r.score).items()))


def _unseen(trainings: Trainings) -> list[CellResult]:
    return [result for results in trainings.values() for result in results if not result.seen]


def _p_value(p: float) -> Datum:
    return Datum(f"{p:.3f}" if p >= 0.0005 else "< 0.001", p)
