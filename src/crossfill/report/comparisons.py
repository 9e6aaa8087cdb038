"""Comparisons of methods: wins, differences and their significance, correlations, and scores as table entries.

Results are grouped by method, then by training (a partition and a seed). Scores are plug-in scores of unseen cells; a
corpus that several trainings scored counts with its mean over them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crossfill.errors import DataError, unknown
from crossfill.evaluation.results import CellResult, Place, PredictionKind, average, place_means
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
from crossfill.report.rendering import Datum
from crossfill.studies.run_folder import ResultEntry, Results

Training = tuple[str, int]
"""A partition and a seed: methods with the same one are compared in pairs."""
Trainings = Mapping[Training, Sequence[CellResult]]
Runs = Mapping[str, Trainings]
"""Results by method and training."""

SENTENCE_RESAMPLES = 2_000


@dataclass(frozen=True)
class Wins:
    """In how many languages or treebanks each method is best."""

    task: str
    wins: dict[str, float]
    """Methods that tie share a win."""
    n: int


@dataclass(frozen=True)
class Difference:
    """A method against another on one task."""

    task: str
    method: str
    against: str
    comparison: Comparison
    """Paired over seeds and corpora, both of them samples: `over_trainings_and_cells`."""
    wins: int
    losses: int
    n: int
    """Number of corpora."""
    hangs_on: Place | None
    """The corpus without which the difference changes its sign or falls to less than half; none if it does not."""


@dataclass(frozen=True)
class Trend:
    """Correlation of the score with a quantity, over corpora."""

    task: str
    method: str
    found: Correlation
    points: dict[str, tuple[float, float]]
    """Quantity and score of each corpus."""


@dataclass(frozen=True)
class Knowledge:
    """Mean scores in languages the encoder was trained on and in others; NaN where there is no such corpus."""

    task: str
    method: str
    known: float
    unknown: float
    n_known: int
    n_unknown: int


def corpus_scores(runs: Trainings, task: str, measure: str = "score") -> dict[Place, float]:
    """The measure of each unseen corpus of a task, mean over the trainings that scored it."""
    found: dict[Place, list[float]] = {}
    for result in (r for results in runs.values() for r in results if not r.seen and r.cell.task == task):
        found.setdefault((result.cell, result.corpus), []).append(result.plug_in[measure])
    return {item: float(np.mean(values)) for item, values in sorted(found.items())}


def wins(runs: Runs) -> list[Wins]:
    """For each task, in how many unseen corpora (treebanks, languages) each method has the best score."""
    rows = []
    for task in tasks_of(runs):
        scores = _common({method: corpus_scores(results, task) for method, results in runs.items()})
        shares = dict.fromkeys(runs, 0.0)
        items = list(next(iter(scores.values())))
        for item in items:
            best = max(values[item] for values in scores.values())
            winners = [method for method, values in scores.items() if values[item] >= best - 1e-12]
            for method in winners:
                shares[method] += 1 / len(winners)
        rows.append(Wins(task, shares, len(items)))
    return rows


def differences(
    runs: Runs,
    against: str = "jm",
    methods: Collection[str] | None = None,
) -> list[Difference]:
    """Compare every method, or only `methods`, with `against` over unseen corpora, task by task."""
    if against not in runs:
        raise DataError(unknown("method", against, runs))
    found: list[Difference] = []
    for task in tasks_of(runs):
        for method in methods or [name for name in runs if name != against]:
            pair = _common({name: corpus_scores(runs[name], task) for name in (method, against)})
            change = {place: score - pair[against][place] for place, score in pair[method].items()}
            places, values = list(change), list(change.values())
            hook = decisive_item(values)
            found.append(
                Difference(
                    task,
                    method,
                    against,
                    compare(*(_scores(runs[name], task) for name in (method, against))),
                    sum(value > 0 for value in values),
                    sum(value < 0 for value in values),
                    len(places),
                    None if hook is None else places[hook],
                )
            )
    return found


def compare(
    first: Mapping[Training, Mapping[Place, float]], second: Mapping[Training, Mapping[Place, float]]
) -> Comparison:
    """The mean difference between two methods over unseen corpora, tested over trainings and corpora.

    Scores are paired by partition, seed and corpus; what only one of the methods has is left out. With less than two
    corpora nothing can be tested, and p is 1.
    """
    seeds: dict[str, list[int]] = {}
    for partition, seed in sorted(first.keys() & second.keys()):
        seeds.setdefault(partition, []).append(seed)
    n_seeds = min(map(len, seeds.values()), default=0)  # fewer where a study has not run to its end
    parts = []
    for partition, own in seeds.items():
        runs = [(first[partition, seed], second[partition, seed]) for seed in own[:n_seeds]]
        places = sorted(set.intersection(*(set(scores) for run in runs for scores in run)))
        parts.append(np.array([[a[place] - b[place] for place in places] for a, b in runs]).reshape(n_seeds, -1))
    if sum(part.shape[1] for part in parts) < 2:
        return Comparison(float(np.mean(np.concatenate([p.ravel() for p in parts]))) if parts else 0.0, 1.0)
    return over_trainings_and_cells(parts)


def within_corpora(
    first: Trainings,
    second: Trainings,
    seed: int = 0,
) -> dict[Place, tuple[Comparison, float]]:
    """Compare two methods over the sentences of each unseen corpus; the second value is Holm's corrected p.

    The counts of a sentence are means over the trainings that scored it.
    """
    a, b = sentence_counts(first), sentence_counts(second)
    shared = sorted(a.keys() & b.keys())
    found = {item: approximate_randomisation(a[item], b[item], SENTENCE_RESAMPLES, seed) for item in shared}
    adjusted = holm([comparison.p_value for comparison in found.values()])
    return {item: (comparison, p) for (item, comparison), p in zip(found.items(), adjusted, strict=True)}


def sentence_counts(runs: Trainings) -> dict[Place, np.ndarray]:
    """Hits, gold and predicted items of each sentence of each unseen corpus, mean over the trainings that scored it."""
    found: dict[Place, list[list[list[int]]]] = {}
    for result in (r for results in runs.values() for r in results if not r.seen):
        found.setdefault((result.cell, result.corpus), []).append(result.counts)
    return {item: np.mean(counts, axis=0) for item, counts in found.items()}


def score_against_size(runs: Runs, words: Mapping[str, Mapping[str, int]]) -> list[Trend]:
    """Correlate scores in unseen cells with the logarithm of training words: `words` by task, then language.

    `words` can count a language's words in other (seen) tasks, to measure how far they help, or in the corpora the
    encoder was trained on.
    """
    rows = []
    for task in tasks_of(runs):
        for method, results in runs.items():
            scores = corpus_scores(results, task)
            sizes = words.get(task, {})
            points = {
                f"{cell.language} {corpus}": (float(np.log(sizes[cell.language])), score)
                for (cell, corpus), score in scores.items()
                if sizes.get(cell.language, 0) > 0
            }
            pairs = np.array(list(points.values())).reshape(-1, 2)
            rows.append(Trend(task, method, correlation(pairs[:, 0], pairs[:, 1]), points))
    return rows


def score_by_encoder_knowledge(runs: Runs, known: Collection[str]) -> list[Knowledge]:
    """Mean scores of unseen corpora in languages the encoder was trained on (`known`), and in others."""
    rows = []
    for task in tasks_of(runs):
        for method, results in runs.items():
            scores = corpus_scores(results, task)
            inside = [score for (cell, _), score in scores.items() if cell.language in known]
            outside = [score for (cell, _), score in scores.items() if cell.language not in known]
            rows.append(Knowledge(task, method, _mean(inside), _mean(outside), len(inside), len(outside)))
    return rows


def pooled_uncertainty(results: Collection[CellResult]) -> dict[str, float]:
    """Measures of uncertainty over the pooled words of these results, averaged prediction.

    nll, brier, entropy and mutual information are means over words, and ece comes from the bins of all cells; aurc
    treats the words of a bin as equally confident. Adaptive ece cannot be computed from results and is left out.
    """
    words = np.array([r.n_words for r in results], dtype=np.float64)
    plain = ("nll", "brier", "entropy", "mutual_information")
    found = {m: float(np.average([r.averaged[m] for r in results], weights=words)) for m in plain}
    bins = pooled_reliability(results)
    count, right = bins.count[::-1], (bins.count * bins.accuracy)[::-1]  # the most confident first
    wrong = np.repeat(np.divide(count - right, count, out=np.zeros(len(count)), where=count > 0), count)
    risk = np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
    return found | {"ece": bins.error(), "aurc": float(risk.mean())}


def pooled_reliability(results: Collection[CellResult]) -> Reliability:
    """Make the reliability diagram of the pooled words of these results."""
    counts = np.array([r.reliability["count"] for r in results], dtype=np.int64)
    total = counts.sum(0)
    sure, right = (
        (counts * np.array([r.reliability[name] for r in results])).sum(0) / np.maximum(1, total)
        for name in ("confidence", "accuracy")
    )
    return Reliability(total, sure, right)


def tasks_of(runs: Runs) -> list[str]:
    """The tasks with unseen cells, sorted."""
    return sorted({r.cell.task for results in runs.values() for run in results.values() for r in run if not r.seen})


def _scores(runs: Trainings, task: str) -> dict[Training, dict[Place, float]]:
    """The plug-in score of each unseen corpus of a task, by training."""
    return {
        training: {(r.cell, r.corpus): r.score for r in results if not r.seen and r.cell.task == task}
        for training, results in runs.items()
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _common(scores: Mapping[str, Mapping[Place, float]]) -> dict[str, dict[Place, float]]:
    """The scores restricted to the corpora that every method has."""
    shared = set.intersection(*(set(values) for values in scores.values()))
    if not shared:
        raise DataError(f"expected unseen corpora that all of {', '.join(scores)} were scored on, got none in common")
    return {method: {item: values[item] for item in sorted(shared)} for method, values in scores.items()}


@dataclass(frozen=True)
class Sample:
    """Scores of a method on unseen cells: a mean for each seed; and by training, each corpus of a cell."""

    by_seed: np.ndarray
    by_training: dict[Training, dict[Place, float]]

    @classmethod
    def of(
        cls, results: Results, entries: Iterable[ResultEntry], tasks: Sequence[str], kind: PredictionKind = "plug_in"
    ) -> "Sample":
        """The sample of these entries; the mean of a seed weighs all tasks equally."""
        by_seed: dict[int, list[ResultEntry]] = {}
        for entry in entries:
            by_seed.setdefault(entry.seed, []).append(entry)
        means = []
        for _, own in sorted(by_seed.items()):
            found = [average(part, kind=kind) for task in tasks if (part := results.unseen(own, task))]
            means += [float(np.mean(found))] if found else []
        by_training = {
            (entry.partition, entry.seed): place_means(
                (r for r in results.unseen([entry]) if r.cell.task in tasks), kind=kind
            )
            for own in by_seed.values()
            for entry in own
        }
        return cls(np.array(means), by_training)

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(self.by_seed.mean())


def score_datum(sample: Sample, mark: str = "") -> Datum:
    """Mean ± sd, in percent; the mean alone if there is one seed."""
    if not len(sample.by_seed):
        return Datum("–")
    mean, sd, n = summarise((100 * sample.by_seed).tolist())
    return Datum(f"{mean:.1f} ± {sd:.1f}" if n > 1 else f"{mean:.1f}", mean, mark=mark)


def deviation(samples: Iterable[Sample]) -> str:
    """Text that explains ± in a table of these samples, to end a sentence; empty if they have one seed each."""
    n_seeds = max((len(sample.by_seed) for sample in samples), default=0)
    return f", ± standard deviation over {n_seeds} seeds" if n_seeds > 1 else ""


def with_best_in_bold(data: Sequence[Datum]) -> list[Datum]:
    """A row of scores with the highest in bold, and those equal to it to the digit shown; none if none is lower."""
    values = [round(datum.value, 1) for datum in data if datum.value is not None]
    if len(set(values)) < 2:
        return list(data)
    return [d._replace(bold=d.value is not None and round(d.value, 1) == max(values) and not d.mark) for d in data]


def compared(by_method: Mapping[str, Sample]) -> list[Datum]:
    """Each method's datum: the best in bold, and marked what is significantly below it."""
    means = {method: sample.mean for method, sample in by_method.items() if len(sample.by_seed)}
    if not means:
        return [Datum("–") for _ in by_method]
    best = max(means, key=lambda method: means[method])
    others = [method for method in means if method != best]
    p_values = holm([compare(by_method[best].by_training, by_method[method].by_training).p_value for method in others])
    below = {method for method, p in zip(others, p_values, strict=True) if p < ALPHA}
    return with_best_in_bold([score_datum(sample, "†" * (m in below)) for m, sample in by_method.items()])
