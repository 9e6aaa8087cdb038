"""A task that a model does not know: a new row of the grid, from labelled sentences of its own cells alone.

Nothing generates heads for such a task. Its first cell is adapted from a prior centred on zero. The head of any other
language of the row is the posterior given the labelled sentences of all cells of the row that have some; it is where
the next of them starts.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch

from crossfill.adaptation.cell import AdaptedCell
from crossfill.adaptation.features import with_ones
from crossfill.adaptation.gaussian import HeadPosterior, HeadPrior
from crossfill.adaptation.laplace import Problem, laplace
from crossfill.adaptation.likelihood import Categorical
from crossfill.adaptation.widths import fresh_width
from crossfill.grid.cells import Cell, Inventory


@dataclass(frozen=True)
class Row:
    """A task that was added to a model, and the head of its cells without sentences of their own."""

    labels: tuple[str, ...]
    n_features: int
    posterior: HeadPosterior | None
    """None if no cell of the row has sentences yet."""

    @property
    def mean(self) -> torch.Tensor:
        """The head of a cell without sentences: labels × (features and bias)."""
        if self.posterior is not None:
            return self.posterior.mean
        return torch.zeros(len(self.labels), self.n_features + 1, dtype=torch.float64)


def rows_of(cells: Mapping[Cell, AdaptedCell], known: Collection[str], n_features: int) -> dict[str, Row]:
    """The rows of adapted cells whose task is not among the known ones."""
    added: dict[str, list[AdaptedCell]] = {}
    for cell in sorted(cells):
        if cell.task not in known:
            added.setdefault(cell.task, []).append(cells[cell])
    return {task: _row(own, n_features) for task, own in added.items()}


def with_rows(inventory: Inventory, rows: Mapping[str, Row]) -> Inventory:
    """The inventory with these tasks, after its own."""
    labels = dict(inventory.labels) | {task: row.labels for task, row in rows.items()}
    return Inventory(labels, inventory.languages, inventory.newcomers)


def _row(cells: list[AdaptedCell], n_features: int) -> Row:
    labels = cells[0].labels
    if len(cells) == 1:
        return Row(labels, n_features, cells[0].posterior)
    features = with_ones(torch.cat([made.examples.features for made in cells]))
    zero = torch.zeros(len(labels), n_features + 1, dtype=torch.float64)
    prior = HeadPrior.at(zero).widened(fresh_width(features).at(1))
    found = laplace(Problem(prior, Categorical(torch.cat([made.examples.labels for made in cells])), features))
    return Row(labels, n_features, found.posterior)
