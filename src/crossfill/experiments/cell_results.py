"""How a model does on one corpus of a cell, and means over such results. Nothing here loads torch."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from crossfill.grid import Cell
from crossfill.uncertainty import Correlation, correlation


@dataclass(frozen=True)
class CellResult:
    """How a model does on one corpus of a cell."""

    cell: Cell
    corpus: str
    seen: bool
    n_sentences: int
    n_words: int
    plug_in: dict[str, float]
    """Every measure by name: `score` (the task's headline metric), the task's metrics, nll, brier, ece, ece_adaptive,
    aurc, entropy, mutual_information."""
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

    @property
    def score(self) -> float:
        """The task's headline metric, plug-in prediction."""
        return self.plug_in["score"]

    @property
    def averaged_score(self) -> float:
        """The same with Bayesian model averaging."""
        return self.averaged["score"]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain JSON values."""
        return asdict(self) | {"cell": str(self.cell)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "CellResult":
        """The result that `as_dict` wrote."""
        known: dict[str, Any] = {field.name: values[field.name] for field in fields(cls)}
        known["cell"] = Cell.parse(values["cell"])
        return cls(**known)


def task_means(results: Collection[CellResult], seen: bool = False) -> dict[str, float]:
    """The mean score of each task over its unseen (or seen) cells, see `average`."""
    tasks = sorted({result.cell.task for result in results})
    return {t: average([r for r in results if r.cell.task == t and r.seen == seen]) for t in tasks}


def average(results: Collection[CellResult], measure: str = "score", averaged: bool = False) -> float:
    """The mean of a measure over the results of a task: over languages for spans, else over treebanks (the paper's)."""
    groups: dict[str, list[float]] = {}
    for i, result in enumerate(results):
        name = result.cell.language if "span_f1" in result.plug_in else str(i)
        groups.setdefault(name, []).append((result.averaged if averaged else result.plug_in)[measure])
    return float(np.mean([np.mean(values) for values in groups.values()])) if groups else float("nan")


def entropy_correlations(results: Collection[CellResult]) -> dict[str, Correlation]:
    """Pearson's r between mean entropy (the paper's study) and averaged score over unseen cells, by task and pooled."""
    unseen = [result for result in results if not result.seen]
    groups = {t: [r for r in unseen if r.cell.task == t] for t in sorted({r.cell.task for r in unseen})}
    return {
        name: correlation(np.array([np.mean(r.entropies) for r in group]), np.array([r.averaged_score for r in group]))
        for name, group in (groups | {"pooled": unseen}).items()
    }
