"""Scores of methods on unseen cells as table entries: means, deviations over seeds, the best, and tests against it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crossfill.evaluation.results import Place, PredictionKind, average, place_means
from crossfill.measures import significance
from crossfill.report.rendering import Datum
from crossfill.studies.run_folder import Entry, Results


@dataclass(frozen=True)
class Sample:
    """Scores of a method on unseen cells: a mean for each seed, and for each corpus of a cell."""

    by_seed: np.ndarray
    by_place: dict[Place, float]

    @classmethod
    def of(
        cls, results: Results, entries: Iterable[Entry], tasks: Sequence[str], kind: PredictionKind = "plug_in"
    ) -> "Sample":
        """The sample of these entries; the mean of a seed weighs all tasks equally."""
        by_seed: dict[int, list[Entry]] = {}
        for entry in entries:
            by_seed.setdefault(entry.seed, []).append(entry)
        means = []
        for _, own in sorted(by_seed.items()):
            found = [average(part, kind=kind) for task in tasks if (part := results.unseen(own, task))]
            means += [float(np.mean(found))] if found else []
        everything = [r for own in by_seed.values() for r in results.unseen(own) if r.cell.task in tasks]
        return cls(np.array(means), place_means(everything, kind=kind))

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
    p_values = significance.holm([_p_value(by_method[best], by_method[method]) for method in others])
    below = {method for method, p in zip(others, p_values, strict=True) if p < significance.ALPHA}
    return with_best_in_bold([score_datum(sample, "†" * (m in below)) for m, sample in by_method.items()])


def _p_value(first: Sample, second: Sample) -> float:
    places = sorted(first.by_place.keys() & second.by_place.keys())
    pairs = np.array([(first.by_place[place], second.by_place[place]) for place in places]).reshape(-1, 2)
    if len(pairs) < 2:
        return 1.0
    return significance.approximate_randomisation(pairs[:, 0], pairs[:, 1]).p_value
