"""Heads of a model some of whose cells were adapted: theirs from their posteriors, all others as before.

A task that the model does not know is a row of its own (`crossfill.adaptation.rows`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.adaptation.cell import AdaptedCell
from crossfill.adaptation.examples import sentence_hashes
from crossfill.adaptation.features import Body, affine
from crossfill.adaptation.gaussian import HeadPosterior
from crossfill.adaptation.rows import Row, RowHeads, TaskLabels, rows_of, with_rows, without_rows
from crossfill.adaptation.words import N_CUES, WordedEncoder, looked_up, with_words
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Grid
from crossfill.model import Classifier, Head, HeadSource, Model, TrainingDraw

SHARE = 0.05
"""Share of the covariance that draws of an adapted head have (a cold posterior). The prior is equally wide in all
directions, of which the few sentences inform few; cells differ in few directions, so that whole draws are too noisy.
Chosen on held-out cells (docs/adapt.md)."""


@dataclass(frozen=True)
class WordedHead(Classifier):
    """W f(x) + b + Σ u of the cues of the word that are known by heart; f are the layers below."""

    body: Body | None
    head: Head
    lexicon: Int[Tensor, "known"]
    words: Float[Tensor, "samples labels known"]
    """u."""

    @property
    def n_samples(self) -> int:
        return self.head.n_samples

    @property
    def n_labels(self) -> int:
        return self.head.n_labels

    @property
    def n_bytes(self) -> int:
        return self.head.n_bytes + self.words.nbytes

    def logits(self, features: Float[Tensor, "words features"]) -> Float[Tensor, "samples words labels"]:
        given = features[:, :-N_CUES].to(self.head.parameters)
        found = self.head.logits(self.body(given) if self.body else given)
        words, places = looked_up(features[:, -N_CUES:], self.lexicon)
        return found.index_add(1, words, self.words[:, :, places].mT)


@dataclass(frozen=True)
class Unworded(Classifier):
    """A classifier of a cell that was not adapted: it ignores which word it is."""

    inner: Classifier

    @property
    def n_samples(self) -> int:
        return self.inner.n_samples

    @property
    def n_labels(self) -> int:
        return self.inner.n_labels

    @property
    def n_bytes(self) -> int:
        return self.inner.n_bytes

    def logits(self, features: Float[Tensor, "words features"]) -> Float[Tensor, "samples words labels"]:
        return self.inner.logits(features[:, :-N_CUES])


class AdaptedHeads(HeadSource):
    """The heads of another source, but for the cells that were adapted, and those of tasks that were added."""

    def __init__(self, inner: HeadSource, cells: Mapping[Cell, AdaptedCell], rows: Mapping[str, Row]) -> None:
        super().__init__()
        self.inner, self.cells, self.added = inner, dict(cells), dict(rows)
        self.vote = inner.vote
        self.has_posterior = inner.has_posterior or bool(cells)
        self.rows, self.deviations = inner.rows, inner.deviations
        self.shifts = {cell: made.own.shift for cell, made in cells.items()}

    def plug_in(self, cells: Sequence[Cell]) -> list[Classifier]:
        return self._heads(cells, self.inner.plug_in, lambda posterior: posterior.mean.unsqueeze(0))

    def sample(
        self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None
    ) -> list[Classifier]:
        def draw(posterior: HeadPosterior) -> Float[Tensor, "samples labels parameters"]:
            device = generator.device if generator else None
            seed = int(torch.randint(2**31, (), generator=generator, device=device))
            apart = posterior.sample(n_samples, torch.Generator().manual_seed(seed)) - posterior.mean
            return posterior.mean + SHARE**0.5 * apart

        return self._heads(cells, lambda known: self.inner.sample(known, n_samples, generator), draw)

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return self.inner.training_draw(cells, n_samples)

    def source(self, cell: Cell) -> HeadSource:
        """Where the head of a cell comes from before it is adapted: its row if its task was added, else the model."""
        return RowHeads(self.added[cell.task], next(self.inner.parameters())) if cell.task in self.added else self.inner

    def _heads(
        self,
        cells: Sequence[Cell],
        generate: Callable[[list[Cell]], Sequence[Classifier]],
        draw: Callable[[HeadPosterior], Float[Tensor, "samples labels parameters"]],
    ) -> list[Classifier]:
        own = {cell: self._own(cell, draw) for cell in cells if cell in self.cells or cell.task in self.added}
        others = [cell for cell in cells if cell not in own]
        generated = iter(generate(others) if others else ())
        return [own[cell] if cell in own else Unworded(next(generated)) for cell in cells]

    def _own(
        self, cell: Cell, draw: Callable[[HeadPosterior], Float[Tensor, "samples labels parameters"]]
    ) -> Classifier:
        """The head of an adapted cell, or of a cell of a task that was added."""
        body, before = affine(self.source(cell).plug_in([cell])[0])
        if cell in self.cells:
            lexicon, posterior = self.cells[cell].lexicon, self.cells[cell].posterior
        else:
            lexicon, posterior = torch.zeros(0, dtype=torch.long), self.added[cell.task].posterior
        if posterior is None:
            return Unworded(before)
        parameters = draw(posterior).to(before.parameters)
        n_affine = before.parameters.shape[-1]
        head, words = Head(parameters[..., :n_affine]), parameters[..., n_affine:]
        return WordedHead(body, head, lexicon.to(parameters.device), words)


def with_adapted(model: Model, cells: Mapping[Cell, AdaptedCell], new: Mapping[str, TaskLabels] | None = None) -> Model:
    """The model with exactly these cells adapted; the encoder and all other weights are shared.

    `new` has tasks that are added without any sentences yet; those that the model knows are left as they are.
    """
    base = without_adapted(model)
    n_features, known = base.encoder.n_features, base.inventory.tasks
    added = {name: task for name, task in (new or {}).items() if name not in known}
    rows = {name: Row(task, task.unit.width(n_features)) for name, task in added.items()}
    rows |= rows_of(cells, known, n_features)
    if not cells and not rows:
        return base
    inventory = with_rows(base.inventory, rows) if rows else base.inventory
    heads = AdaptedHeads(base.heads, cells, rows)
    return with_words(Model(base.encoder, heads, inventory, base.seen)).train(model.training)


def without_adapted(model: Model) -> Model:
    """The model as it was before any cell was adapted."""
    if not isinstance(model.heads, AdaptedHeads):
        return model
    inventory = without_rows(model.inventory, model.heads.added) if model.heads.added else model.inventory
    encoder = model.encoder.inner if isinstance(model.encoder, WordedEncoder) else model.encoder
    return Model(encoder, model.heads.inner, inventory, model.seen).train(model.training)


def source_of(model: Model, cell: Cell) -> HeadSource:
    """Where the head of a cell comes from before it is adapted."""
    return model.heads.source(cell) if isinstance(model.heads, AdaptedHeads) else model.heads


def adapted_cells(model: Model) -> dict[Cell, AdaptedCell]:
    """The adapted cells of a model."""
    return model.heads.cells if isinstance(model.heads, AdaptedHeads) else {}


def check_test_data(model: Model, grid: Grid) -> None:
    """Refuse test data of which a cell was adapted to some sentences."""
    for cell, made in adapted_cells(model).items():
        used = set(made.examples.hashes)
        for splits in grid[cell] if cell in grid.corpora else ():
            n_used, n = sum(text in used for text in sentence_hashes(splits.test)), len(splits.test)
            if n_used:
                raise DataError(
                    f"{cell}: expected test sentences that it was not adapted to, got {n_used} of {n} that it was; "
                    "evaluate on other text, or undo the adaptation (crossfill adapt --undo)"
                )
