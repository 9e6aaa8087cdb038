"""Numbers that tables and figures share: means over seeds and cells, entropy against score, Pearson's r."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfill.experiments.results import Results, unseen
from crossfill.uncertainty import Correlation, correlation


def shown(method: str) -> str:
    """A method's name for people, initials in capitals: PF-lr, JM, JM-deep."""
    family, dash, kind = method.partition("-")
    return f"{family.upper()}{dash}{kind}" if len(family) <= 3 else method


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

    @property
    def mean(self) -> float:
        """Over seeds."""
        return float(self.by_seed.mean())


def entropy_points(results: Results, method: str, task: str | None = None) -> list[tuple[str, float, float]]:
    """(cell, mean entropy, score) of every unseen cell, means over seeds: the paper's entropy study."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for entry in results.proper(method):
        for cell in unseen(results.cells(entry)):
            if (task is None or cell["cell"].startswith(f"{task}/")) and cell["entropies"]:
                point = (float(np.mean(cell["entropies"])), float(cell["averaged"]["score"]))
                found.setdefault((cell["cell"], cell["corpus"]), []).append(point)
    return [
        (place[0], float(np.mean([x for x, _ in points])), float(np.mean([y for _, y in points])))
        for place, points in sorted(found.items())
    ]


def foresight(points: Sequence[tuple[str, float, float]]) -> Correlation:
    """Pearson's correlation between entropy and score over such points."""
    pairs = np.array([(x, y) for _, x, y in points], dtype=float).reshape(-1, 2)
    return correlation(pairs[:, 0], pairs[:, 1])
