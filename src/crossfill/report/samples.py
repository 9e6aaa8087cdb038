"""Scores of methods on unseen cells as table entries: means, deviations over seeds, and tests against the best."""

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


def score_datum(sample: Sample, bold: bool = False, mark: str = "") -> Datum:
    """Mean ± sd, in percent."""
    if not len(sample.by_seed):
        return Datum("–")
    mean, sd, n = significance.summarise((100 * sample.by_seed).tolist())
    return Datum(f"{mean:.1f} ± {sd:.1f}" if n > 1 else f"{mean:.1f}", mean, bold, mark)


def compared(by_method: Mapping[str, Sample]) -> list[Datum]:
    """Each method's datum, marked where it is significantly below the best."""
    means = {method: sample.mean for method, sample in by_method.items() if len(sample.by_seed)}
    if not means:
        return [Datum("–") for _ in by_method]
    best = max(means, key=lambda method: means[method])
    others = [method for method in means if method != best]
    p_values = significance.holm([_p_value(by_method[best], by_method[method]) for method in others])
    below = {method for method, p in zip(others, p_values, strict=True) if p < significance.ALPHA}
    return [score_datum(s, bold=m in means and m not in below, mark="†" * (m in below)) for m, s in by_method.items()]


def _p_value(first: Sample, second: Sample) -> float:
    places = sorted(first.by_place.keys() & second.by_place.keys())
    pairs = np.array([(first.by_place[place], second.by_place[place]) for place in places]).reshape(-1, 2)
    if len(pairs) < 2:
        return 1.0
    return significance.approximate_randomisation(pairs[:, 0], pairs[:, 1]).p_value
