"""Heads of a model some of whose cells were adapted: theirs from their posteriors, all others as before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.adaptation.cell import AdaptedCell
from crossfill.adaptation.examples import sentence_hashes
from crossfill.adaptation.features import Body, affine
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
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
    """The heads of another source, but for the cells that were adapted."""

    def __init__(self, inner: HeadSource, cells: Mapping[Cell, AdaptedCell]) -> None:
        super().__init__()
        self.inner, self.cells = inner, dict(cells)
        self.vote = inner.vote
        self.has_posterior = inner.has_posterior or bool(cells)
        self.rows, self.deviations = inner.rows, inner.deviations

    def plug_in(self, cells: Sequence[Cell]) -> list[Classifier]:
        return [
            self._head(cell, self.cells[cell].posterior.mean.unsqueeze(0)) if cell in self.cells else head
            for cell, head in zip(cells, self.inner.plug_in(cells), strict=True)
        ]

    def sample(
        self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None
    ) -> list[Classifier]:
        found = list(self.inner.sample(cells, n_samples, generator))
        for place, cell in enumerate(cells):
            if cell in self.cells:
                seed = int(
                    torch.randint(2**31, (), generator=generator, device=generator.device if generator else None)
                )
                posterior = self.cells[cell].posterior
                apart = posterior.sample(n_samples, torch.Generator().manual_seed(seed)) - posterior.mean
                found[place] = self._head(cell, posterior.mean + SHARE**0.5 * apart)
        return found

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return self.inner.training_draw(cells, n_samples)

    def _head(self, cell: Cell, parameters: Float[Tensor, "samples labels features_and_bias"]) -> Classifier:
        body, before = affine(self.inner.plug_in([cell])[0])
        head = Head(parameters.to(before.parameters))
        return head if body is None else Raised(body, head)


def with_adapted(model: Model, cells: Mapping[Cell, AdaptedCell]) -> Model:
    """The model with exactly these cells adapted; the encoder and all other weights are shared."""
    base = without_adapted(model)
    if not cells:
        return base
    return Model(base.encoder, AdaptedHeads(base.heads, cells), base.inventory, base.seen).train(model.training)


def without_adapted(model: Model) -> Model:
    """The model as it was before any cell was adapted."""
    if not isinstance(model.heads, AdaptedHeads):
        return model
    return Model(model.encoder, model.heads.inner, model.inventory, model.seen).train(model.training)


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
