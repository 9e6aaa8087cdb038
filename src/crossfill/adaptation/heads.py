"""Heads of a model some of whose cells were adapted: theirs from their posteriors, all others as before.

A task that the model does not know is a row of its own, from labelled sentences of its cells alone. Nothing generates
heads for it: its first cell is adapted from a prior centred on zero. The head of any other language is the posterior,
from the same prior, given the labelled sentences of all cells of the task that have some; it knows no cues. It is where
the next cell starts.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.adaptation.cell import AdaptedCell
from crossfill.adaptation.design import DesignMatrix
from crossfill.adaptation.examples import joined
from crossfill.adaptation.fit import NOTHING_KNOWN, SCALES_FROM_SCRATCH, HeadWithCues
from crossfill.adaptation.gaussian import HeadPosterior, HeadPrior
from crossfill.adaptation.laplace import Categorical, PosteriorProblem
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.grid.task import Task
from crossfill.grid.text_keys import sentence_hashes
from crossfill.model import Classifier, Head, HeadSource, Model, TrainingDraw


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
        likelihood = Categorical.of(examples.labels, len(task.labels))
        problem = PosteriorProblem(prior, likelihood, DesignMatrix.of(examples, NOTHING_KNOWN))
        return cls(task, problem.posterior())


def added_tasks(cells: Mapping[Cell, AdaptedCell], known: Collection[str]) -> dict[str, AddedTask]:
    """Return the tasks of adapted cells that are not among the known ones."""
    of_task: dict[str, list[AdaptedCell]] = {}
    for cell in sorted(cells):
        if cell.task not in known:
            of_task.setdefault(cell.task, []).append(cells[cell])
    return {task: AddedTask.of(made) for task, made in of_task.items()}


def with_tasks(inventory: Inventory, tasks: Iterable[Task]) -> Inventory:
    """Return the inventory with these tasks after its own."""
    return replace(inventory, tasks=dict(inventory.tasks) | {task.name: task for task in tasks})


def without_tasks(inventory: Inventory, tasks: Collection[str]) -> Inventory:
    """Return the inventory without these tasks."""
    return replace(inventory, tasks={name: task for name, task in inventory.tasks.items() if name not in tasks})


class AdaptedHeads(HeadSource):
    """The heads of another source, but for the cells that were adapted, and those of tasks that were added."""

    def __init__(self, inner: HeadSource, cells: Mapping[Cell, AdaptedCell], added: Mapping[str, AddedTask]) -> None:
        super().__init__()
        self.inner, self.cells, self.added = inner, dict(cells), dict(added)
        self.vote = inner.vote
        self.has_posterior = inner.has_posterior or bool(cells)
        self.rows, self.deviations = inner.rows, inner.deviations
        self.cue_cells = frozenset(cells)
        self.decisions = {cell: made.decision for cell, made in cells.items()}

    def plug_in(self, cells: Sequence[Cell]) -> list[Classifier]:
        return self._heads(cells, self.inner.plug_in, lambda posterior: posterior.mean.unsqueeze(0))

    def sample(
        self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None
    ) -> list[Classifier]:
        def draw(posterior: HeadPosterior) -> Float[Tensor, "samples labels parameters"]:
            device = generator.device if generator else None
            seed = int(torch.randint(2**31, (), generator=generator, device=device))
            return posterior.sample(n_samples, torch.Generator().manual_seed(seed))

        return self._heads(cells, lambda known: self.inner.sample(known, n_samples, generator), draw)

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return self.inner.training_draw(cells, n_samples)

    def _heads(
        self,
        cells: Sequence[Cell],
        generate: Callable[[list[Cell]], Sequence[Classifier]],
        draw: Callable[[HeadPosterior], Float[Tensor, "samples labels parameters"]],
    ) -> list[Classifier]:
        adapted = {cell: self._head(cell, draw) for cell in cells if cell in self.cells or cell.task in self.added}
        others = [cell for cell in cells if cell not in adapted]
        generated = iter(generate(others) if others else ())
        return [adapted[cell] if cell in adapted else next(generated) for cell in cells]

    def _head(
        self, cell: Cell, draw: Callable[[HeadPosterior], Float[Tensor, "samples labels parameters"]]
    ) -> Classifier:
        """The head of an adapted cell, or of a cell of a task that was added."""
        like = next(self.inner.parameters())
        if cell in self.cells:
            return HeadWithCues.of(draw(self.cells[cell].posterior).to(like), self.cells[cell].known)
        return Head(draw(self.added[cell.task].posterior).to(like))


@torch.no_grad()
def generated_prior(model: Model, cell: Cell, task: Task | None = None) -> HeadPrior:
    """Return the prior of a cell's head before any width is added: what the model says without the cell's sentences.

    Centred on the cell's head at the posterior means; in a task that was added, on what other cells of the task know.
    `task` is needed if the model does not know it yet.
    """
    base = without_adapted(model)
    if cell.task in base.inventory.tasks:
        return _prior_of(base.heads, cell)
    task = task or model.inventory.task(cell.task)
    others = [made for other, made in sorted(adapted_cells(model).items()) if other.task == cell.task and other != cell]
    width = task.unit.width(base.encoder.n_features) + 1
    mean = AddedTask.of(others).posterior.mean if others else torch.zeros(len(task.labels), width)
    return HeadPrior.at(mean.to(next(base.heads.parameters()).dtype).double())


def _prior_of(heads: HeadSource, cell: Cell) -> HeadPrior:
    if heads.vote is not None:
        raise DataError(f"{cell}: expected a method with one head per cell, got one that votes; adapt an ns model")
    plug_in = heads.plug_in([cell])[0]
    if not isinstance(plug_in, Head):
        raise DataError(f"expected a method with affine heads, got {type(plug_in).__name__}")
    return HeadPrior.at(plug_in.parameters[0].double())


def with_adapted(model: Model, cells: Mapping[Cell, AdaptedCell]) -> Model:
    """Return the model with exactly these cells adapted; the encoder and all other weights are shared."""
    base = without_adapted(model)
    if not cells:
        return base
    added = added_tasks(cells, base.inventory.tasks)
    inventory = with_tasks(base.inventory, [row.task for row in added.values()])
    heads = AdaptedHeads(base.heads, cells, added)
    return Model(base.encoder, heads, inventory, base.seen, base.hidden).train(model.training)


def without_adapted(model: Model) -> Model:
    """Return the model as it was before any cell was adapted."""
    if not isinstance(model.heads, AdaptedHeads):
        return model
    inventory = without_tasks(model.inventory, model.heads.added)
    return Model(model.encoder, model.heads.inner, inventory, model.seen, model.hidden).train(model.training)


def adapted_cells(model: Model) -> dict[Cell, AdaptedCell]:
    """Return the adapted cells of a model."""
    return model.heads.cells if isinstance(model.heads, AdaptedHeads) else {}


def check_test_data(model: Model, grid: Grid) -> None:
    """Refuse test data of which a cell was adapted to some sentences."""
    for cell, made in adapted_cells(model).items():
        adapted_to = set(made.examples.hashes)
        for splits in grid[cell] if cell in grid.corpora else ():
            n_used, n = sum(text in adapted_to for text in sentence_hashes(splits.test)), len(splits.test)
            if n_used:
                raise DataError(
                    f"{cell}: expected test sentences that it was not adapted to, got {n_used} of {n} that it was; "
                    "evaluate on other text, or undo the adaptation (crossfill adapt --undo)"
                )
