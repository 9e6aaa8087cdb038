"""A task that a model does not know: a new row of the grid, from labelled sentences of its own cells alone.

Nothing generates heads for such a task. Its first cell is adapted from a prior centred on zero. The head of any other
language of the row is the posterior, from the same prior, given the labelled sentences of all cells of the row that
have some; nothing is learnt by heart there. It is where the next cell starts.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.adaptation.cell import AdaptedCell
from crossfill.adaptation.examples import joined
from crossfill.adaptation.features import Design
from crossfill.adaptation.gaussian import HeadPosterior, HeadPrior
from crossfill.adaptation.laplace import Problem, laplace
from crossfill.adaptation.likelihood import Categorical
from crossfill.adaptation.widths import fresh_width, mean_square
from crossfill.grid.cells import Cell, Inventory
from crossfill.grid.task import Unit
from crossfill.model import Classifier, Head, HeadSource, TrainingDraw


class TaskLabels(NamedTuple):
    """The labels of a task, and what they label."""

    labels: tuple[str, ...]
    unit: Unit = Unit.WORD

    @classmethod
    def of(cls, inventory: Inventory, task: str) -> "TaskLabels | None":
        """Those of a task; none if it is unknown."""
        return cls(inventory.labels[task], inventory.unit(task)) if task in inventory.labels else None


@dataclass(frozen=True)
class Row:
    """A task that was added to a model, and the head of its cells without sentences of their own."""

    task: TaskLabels
    n_features: int
    """Of a word, a sentence or a pair, as the task labels them."""
    posterior: HeadPosterior | None = None
    """None if no cell of the row has sentences yet."""

    @property
    def mean(self) -> Float[Tensor, "labels features_and_bias"]:
        """The head of a cell without sentences."""
        if self.posterior is not None:
            return self.posterior.mean
        return torch.zeros(len(self.task.labels), self.n_features + 1, dtype=torch.float64)


class RowHeads(HeadSource):
    """The heads of a task that was added: one for all languages. They never train."""

    def __init__(self, row: Row, like: Tensor) -> None:
        super().__init__()
        self.head = Head(row.mean.unsqueeze(0).to(like))

    def plug_in(self, cells: Sequence[Cell]) -> list[Classifier]:
        return [self.head for _ in cells]

    def sample(
        self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None
    ) -> list[Classifier]:
        return self.plug_in(cells)

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return [TrainingDraw(self.head, []) for _ in cells]


def rows_of(cells: Mapping[Cell, AdaptedCell], known: Collection[str], n_features: int) -> dict[str, Row]:
    """The rows of adapted cells whose task is not among the known ones; `n_features` are those of a word."""
    added: dict[str, list[AdaptedCell]] = {}
    for cell in sorted(cells):
        if cell.task not in known:
            added.setdefault(cell.task, []).append(cells[cell])
    rows = {}
    for task, own in added.items():
        width = own[0].unit.width(n_features)
        rows[task] = Row(TaskLabels(own[0].labels, own[0].unit), width, _posterior(own, width))
    return rows


def with_rows(inventory: Inventory, rows: Mapping[str, Row]) -> Inventory:
    """The inventory with these tasks, after its own."""
    labels = dict(inventory.labels) | {task: row.task.labels for task, row in rows.items()}
    units = {task: row.task.unit for task, row in rows.items() if row.task.unit is not Unit.WORD}
    return replace(inventory, labels=labels, units=dict(inventory.units) | units)


def without_rows(inventory: Inventory, rows: Collection[str]) -> Inventory:
    """The inventory without these tasks."""
    labels = {task: own for task, own in inventory.labels.items() if task not in rows}
    units = {task: own for task, own in inventory.units.items() if task not in rows}
    return replace(inventory, labels=labels, units=units)


@torch.no_grad()
def _posterior(cells: list[AdaptedCell], n_features: int) -> HeadPosterior:
    labels, examples = cells[0].labels, joined(made.examples for made in cells)
    zero = torch.zeros(len(labels), n_features + 1, dtype=torch.float64)
    design = Design.of(examples.features, ())
    prior = fresh_width(mean_square(examples)).prior(HeadPrior.at(zero), design.lexicon)
    return laplace(Problem(prior, Categorical(examples.labels), design(examples.features))).posterior
