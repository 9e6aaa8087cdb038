"""Scores of methods on unseen cells as table entries: means, deviations over seeds, the best, and tests against it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crossfill.evaluation.results import Place, PredictionKind, average, place_means
from crossfill.measures import significance
from crossfill.report.comparisons import Training, compare
from crossfill.report.rendering import Datum
from crossfill.studies.run_folder import ResultEntry, Results


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
    mean, sd, n = significance.summarise((100 * sample.by_seed).tolist())
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
    p_values = significance.holm(
        [compare(by_method[best].by_training, by_method[method].by_training).p_value for method in others]
    )
    below = {method for method, p in zip(others, p_values, strict=True) if p < significance.ALPHA}
    return with_best_in_bold([score_datum(sample, "†" * (m in below)) for m, sample in by_method.items()])
