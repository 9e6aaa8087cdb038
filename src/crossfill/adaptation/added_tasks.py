"""Tasks that a model does not know: new rows of the grid, from labelled sentences of their own cells alone.

Nothing generates heads for such a task. Its first cell is adapted from a prior centred on zero. The head of any other
language is the posterior, from the same prior, given the labelled sentences of all cells of the task that have some; it
knows no cues. It is where the next cell starts.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from crossfill.adaptation.cell import AdaptedCell
from crossfill.adaptation.design import DesignMatrix
from crossfill.adaptation.examples import joined
from crossfill.adaptation.fit import NOTHING_KNOWN
from crossfill.adaptation.gaussian import HeadPosterior, HeadPrior
from crossfill.adaptation.laplace import Problem, laplace
from crossfill.adaptation.likelihood import Categorical
from crossfill.adaptation.prior import SCALES_FROM_SCRATCH
from crossfill.grid.cells import Cell, Inventory
from crossfill.grid.task import Task, Unit


@dataclass(frozen=True)
class AddedTask:
    """A task that was added to a model, and the head of its cells without sentences of their own."""

    task: Task
    posterior: HeadPosterior

    @classmethod
    @torch.no_grad()
    def of(cls, cells: Sequence[AdaptedCell]) -> "AddedTask":
        """The task with what its adapted cells know, of which there is one at least."""
        task, examples = cells[0].task, joined(made.examples for made in cells)
        zero = torch.zeros(len(task.labels), examples.features.shape[1] + 1, dtype=torch.float64)
        prior = SCALES_FROM_SCRATCH.variances(examples).prior(HeadPrior.at(zero), NOTHING_KNOWN)
        problem = Problem(prior, Categorical(examples.labels), DesignMatrix.of(examples, NOTHING_KNOWN))
        return cls(task, laplace(problem).posterior)


def added_tasks(cells: Mapping[Cell, AdaptedCell], known: Collection[str]) -> dict[str, AddedTask]:
    """Return the tasks of adapted cells that are not among the known ones."""
    of_task: dict[str, list[AdaptedCell]] = {}
    for cell in sorted(cells):
        if cell.task not in known:
            of_task.setdefault(cell.task, []).append(cells[cell])
    return {task: AddedTask.of(made) for task, made in of_task.items()}


def with_tasks(inventory: Inventory, tasks: Iterable[Task]) -> Inventory:
    """Return the inventory with these tasks after its own."""
    added = list(tasks)
    labels = dict(inventory.labels) | {task.name: task.labels for task in added}
    units = {task.name: task.unit for task in added if task.unit is not Unit.WORD}
    return replace(inventory, labels=labels, units=dict(inventory.units) | units)


def without_tasks(inventory: Inventory, tasks: Collection[str]) -> Inventory:
    """Return the inventory without these tasks."""
    labels = {name: labels for name, labels in inventory.labels.items() if name not in tasks}
    units = {name: unit for name, unit in inventory.units.items() if name not in tasks}
    return replace(inventory, labels=labels, units=units)
