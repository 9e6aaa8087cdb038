"""Results of a model on the corpora of cells, and means over them."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import TypeAdapter

from crossfill.grid.cells import Cell, CellName
from crossfill.grid.task import TaskKind
from crossfill.measures.significance import Correlation, correlation
from crossfill.prediction.tagging import data_frame

PredictionKind = Literal["plug_in", "averaged"]
"""Posterior means plugged in, or probabilities averaged over posterior samples."""
Place = tuple[Cell, str]
"""A corpus of a cell; the name is empty for all corpora of a cell together."""

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class SetResult:
    """Measures of calibrated, averaged prediction on one corpus of a cell."""

    alpha: float
    coverage: float
    """Share of words whose label set at level α contains the right label."""
    set_size: float
    """Mean number of labels in a set."""
    single: float
    """Share of words whose set has one label."""
    tempered_nll: float
    tempered_ece: float


@dataclass(frozen=True)
class CellResult:
    """Measures of a model on one corpus of a cell."""

    cell: CellName
    corpus: str
    seen: bool
    n_sentences: int
    n_words: int
    plug_in: dict[str, float]
    """Every measure by name: `score` (the task's headline metric), the task's metrics, `argmax` (the headline metric of
    every word's most probable label), nll, brier, ece, ece_adaptive, aurc, entropy, mutual_information."""
    averaged: dict[str, float]
    """The same with Bayesian model averaging."""
    by_label: dict[str, float]
    """F1 per tag, or per span type; plug-in."""
    entropies: list[float]
    """The paper's entropy study: up to 800 random test words, 10 posterior samples."""
    reliability: dict[str, list[float]]
    """Averaged prediction, 15 bins of equal width: count, confidence, accuracy."""
    risk_coverage: list[float]
    """Averaged prediction: error rate of the most confident 5 %, 10 %, …, 100 % of words."""
    counts: list[list[int]]
    """Hits, gold and predicted items of each sentence, plug-in; F1 = 2 · Σ hits / (Σ gold + Σ predicted)."""
    label_sets: SetResult | None = None
    """None if the task is not calibrated."""
    left_out: int = 0
    """Sentences of the corpus that were left out because their text is evaluated elsewhere (`data.crossing`)."""
    unlabelled: int = 0
    """Words of these sentences that have no label, and count nowhere here."""

    @property
    def score(self) -> float:
        return self.plug_in["score"]

    @property
    def averaged_score(self) -> float:
        return self.averaged["score"]

    @property
    def errors_removed(self) -> float:
        """The share of errors among the 20 % of words that averaged prediction is least sure of."""
        at_80_per_cent, whole = self.risk_coverage[15], self.risk_coverage[-1]
        return 1 - 0.8 * at_80_per_cent / whole if whole else 0.0

    @property
    def cell_corpus(self) -> Place:
        return self.cell, self.corpus

    @property
    def place(self) -> Place:
        """The unit of averages: the corpus or, for spans, the cell with all its corpora (as in the paper)."""
        return self.cell, "" if TaskKind.SPANS.metric in self.plug_in else self.corpus

    @property
    def entropy(self) -> float:
        return float(np.mean(self.entropies))

    def measures(self, kind: PredictionKind) -> dict[str, float]:
        return self.plug_in if kind == "plug_in" else self.averaged

    def as_dict(self) -> dict[str, Any]:
        values = asdict(self) | {"cell": str(self.cell)}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "CellResult":
        return _RESULT.validate_python(values)


_RESULT = TypeAdapter(CellResult)


class Results(list[CellResult]):
    """Results of every corpus with test data: a list that shows itself as a table.

    Its columns: `score` is of plug-in prediction; `averaged` (score), `nll`, `ece`, `aurc` and `errors_removed` (share
    of errors among the 20 % of words that the model is least sure of) are of averaged prediction; calibrated models
    have `coverage` and `set_size` of label sets.
    """

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each corpus, by the names of the columns."""
        calibrated, unknown = any(result.label_sets is not None for result in self), float("nan")
        sets = ("coverage", "set_size") if calibrated else ()
        return [
            {
                **{"cell": str(r.cell), "corpus": r.corpus, "seen": r.seen, "words": r.n_words, "score": r.score},
                "averaged": r.averaged_score,
                **{name: r.averaged[name] for name in ("nll", "ece", "aurc")},
                "errors_removed": r.errors_removed,
                **{name: getattr(r.label_sets, name, unknown) for name in sets},
            }
            for r in self
        ]

    def to_pandas(self) -> Any:
        """Return the table as a data frame of pandas, which is not installed with crossfill."""
        return data_frame(self.rows)

    def __repr__(self) -> str:
        rows = [
            [f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()] for row in self.rows
        ]
        columns = zip(self.rows[0], *rows, strict=True) if rows else ()
        padded = [[text.ljust(max(map(len, texts))) for text in texts] for texts in columns]
        return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True)) or "nothing"


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items by their keys, in the order in which these come first."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def mean_by(items: Iterable[Item], key: Callable[[Item], Key], value: Callable[[Item], float]) -> dict[Key, float]:
    """Return the mean value of the items with the same key, by key."""
    return {name: mean([value(item) for item in group]) for name, group in grouped(items, key).items()}


def mean(values: Collection[float]) -> float:
    """Return the mean; NaN of no values."""
    return float(np.mean(list(values))) if values else float("nan")


def average(results: Iterable[CellResult], measure: str = "score", kind: PredictionKind = "plug_in") -> float:
    """Return the mean of a measure over places: over languages for spans, else over treebanks, as in the paper."""
    return mean(place_means(results, measure, kind).values())


def place_means(
    results: Iterable[CellResult], measure: str = "score", kind: PredictionKind = "plug_in"
) -> dict[Place, float]:
    """Return the mean of a measure in each place, over its corpora and over runs."""
    return mean_by(results, lambda r: r.place, lambda r: r.measures(kind)[measure])


def task_means(results: Collection[CellResult], seen: bool = False) -> dict[str, float]:
    """Return the mean score of each task over its unseen (or seen) cells, see `average`."""
    tasks = sorted({result.cell.task for result in results})
    return {t: average(r for r in results if r.cell.task == t and r.seen == seen) for t in tasks}


def entropy_points(results: Iterable[CellResult], task: str | None = None) -> dict[Place, tuple[float, float]]:
    """Return mean entropy and averaged score of every unseen corpus, means over runs: the paper's entropy study."""
    unseen = [r for r in results if not r.seen and r.entropies and task in (None, r.cell.task)]
    by_corpus = sorted(grouped(unseen, lambda r: r.cell_corpus).items())
    return {
        place: (mean([r.entropy for r in group]), mean([r.averaged_score for r in group])) for place, group in by_corpus
    }


def entropy_correlation(points: Mapping[Place, tuple[float, float]]) -> Correlation:
    """Return Pearson's r between entropy and score over the points of `entropy_points`."""
    pairs = np.array(list(points.values()), dtype=float).reshape(-1, 2)
    return correlation(pairs[:, 0], pairs[:, 1])
