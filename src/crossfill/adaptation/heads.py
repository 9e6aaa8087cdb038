"""Heads of a model some of whose cells were adapted: theirs from their posteriors, all others as before.

A task that the model does not know is a row of its own (`crossfill.adaptation.rows`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.adaptation.cell import AdaptedCell
from crossfill.adaptation.examples import sentence_hashes
from crossfill.adaptation.features import Body, affine
from crossfill.adaptation.gaussian import HeadPosterior
from crossfill.adaptation.rows import Row, rows_of, with_rows
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Inventory
from crossfill.grid.sentence import Corpus
from crossfill.model import Classifier, Head, HeadSource, Model, TrainingDraw

SHARE = 0.05
"""Share of the covariance that draws of an adapted head have (a cold posterior). The prior is equally wide in all
directions, of which the few sentences inform few; cells differ in few directions, so that whole draws are too noisy.
Chosen on held-out cells (docs/adapt.md)."""


@dataclass(frozen=True)
class Raised(Classifier):
    """An affine head above other layers."""

    body: Body
    head: Head

    @property
    def n_samples(self) -> int:
        return self.head.n_samples

    @property
    def n_labels(self) -> int:
        return self.head.n_labels

    @property
    def n_bytes(self) -> int:
        return self.head.n_bytes

    def logits(self, features: Float[Tensor, "words features"]) -> Float[Tensor, "samples words labels"]:
        return self.head.logits(self.body(features))


class AdaptedHeads(HeadSource):
    """The heads of another source, but for the cells that were adapted, and those of tasks that were added."""

    def __init__(self, inner: HeadSource, cells: Mapping[Cell, AdaptedCell], rows: Mapping[str, Row]) -> None:
        super().__init__()
        self.inner, self.cells, self.added = inner, dict(cells), dict(rows)
        self.vote = inner.vote
        self.has_posterior = inner.has_posterior or bool(cells)
        self.rows, self.deviations = inner.rows, inner.deviations

    def plug_in(self, cells: Sequence[Cell]) -> list[Classifier]:
        return [
            generated if posterior is None else self._head(cell, posterior.mean.unsqueeze(0))
            for cell, generated, posterior in zip(
                cells, self._generated(cells, self.inner.plug_in), map(self._posterior, cells), strict=True
            )
        ]

    def sample(
        self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None
    ) -> list[Classifier]:
        found = self._generated(cells, lambda known: self.inner.sample(known, n_samples, generator))
        for place, cell in enumerate(cells):
            posterior = self._posterior(cell)
            if posterior is not None:
                seed = int(
                    torch.randint(2**31, (), generator=generator, device=generator.device if generator else None)
                )
                apart = posterior.sample(n_samples, torch.Generator().manual_seed(seed)) - posterior.mean
                found[place] = self._head(cell, posterior.mean + SHARE**0.5 * apart)
        return found

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return self.inner.training_draw(cells, n_samples)

    def _posterior(self, cell: Cell) -> HeadPosterior | None:
        """The posterior of a cell, or of its row; none where heads come from the inner source."""
        if cell in self.cells:
            return self.cells[cell].posterior
        return self.added[cell.task].posterior if cell.task in self.added else None

    def _generated(
        self, cells: Sequence[Cell], generate: Callable[[list[Cell]], Sequence[Classifier]]
    ) -> list[Classifier]:
        """The heads of the inner source, which does not know the tasks that were added: theirs are at their means."""
        known = [cell for cell in cells if cell.task not in self.added]
        found = iter(generate(known) if known else ())
        return [self._head(cell, self.added[cell.task].mean.unsqueeze(0)) if cell.task in self.added else next(found) for cell in cells]

    def _head(self, cell: Cell, parameters: Float[Tensor, "samples labels features_and_bias"]) -> Classifier:
        if cell.task in self.added:
            return Head(parameters.to(next(self.inner.parameters())))
        body, before = affine(self.inner.plug_in([cell])[0])
        head = Head(parameters.to(before.parameters))
        return head if body is None else Raised(body, head)


def with_adapted(model: Model, cells: Mapping[Cell, AdaptedCell], new: Mapping[str, tuple[str, ...]] | None = None) -> Model:
    """The model with exactly these cells adapted; the encoder and all other weights are shared.

    `new` has the labels of tasks that are added without any sentences yet.
    """
    base = without_adapted(model)
    n_features, known = base.encoder.n_features, base.inventory.tasks
    rows = {task: Row(labels, n_features, None) for task, labels in (new or {}).items() if task not in known}
    rows |= rows_of(cells, known, n_features)
    if not cells and not rows:
        return base
    inventory = with_rows(base.inventory, rows) if rows else base.inventory
    return Model(base.encoder, AdaptedHeads(base.heads, cells, rows), inventory, base.seen).train(model.training)


def without_adapted(model: Model) -> Model:
    """The model as it was before any cell was adapted."""
    if not isinstance(model.heads, AdaptedHeads):
        return model
    inventory = model.inventory
    if model.heads.added:
        labels = {task: own for task, own in inventory.labels.items() if task not in model.heads.added}
        inventory = Inventory(labels, inventory.languages, inventory.newcomers)
    return Model(model.encoder, model.heads.inner, inventory, model.seen).train(model.training)


def adapted_cells(model: Model) -> dict[Cell, AdaptedCell]:
    """The adapted cells of a model."""
    return model.heads.cells if isinstance(model.heads, AdaptedHeads) else {}


def check_not_adapted_to(model: Model, cell: Cell, corpus: Corpus) -> None:
    """Refuse test data of which a cell was adapted to some sentences."""
    made = adapted_cells(model).get(cell)
    used = set(made.examples.hashes) if made is not None else set()
    n_used = sum(text in used for text in sentence_hashes(corpus)) if used else 0
    if n_used:
        raise DataError(
            f"{cell}: expected test sentences that it was not adapted to, got {n_used} of {len(corpus)} that it was; "
            "evaluate on other text, or undo the adaptation (crossfill adapt --undo)"
        )
