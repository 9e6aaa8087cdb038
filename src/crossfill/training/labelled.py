"""Corpora prepared for training and scoring: an encoder's inputs with the label of every word, sentence or pair."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from crossfill.encoders.base import Encoder, Inputs, ranges, sentences_of
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Unit
from crossfill.model import Model


@dataclass(frozen=True)
class Labelled:
    """A corpus of a cell, ready for the encoder, with the labels of its words, sentences or pairs."""

    inputs: Inputs
    """Sentences; those of a pair one after the other."""
    labels: Int[Tensor, "labels"]
    """Places among the task's labels; −1 for a word without a label."""
    unit: Unit = Unit.WORD
    """What the labels are of."""

    @property
    def lengths(self) -> Int[Tensor, "sentences"]:
        """Labels of each sentence or pair: one for each word, or one in all."""
        return self.inputs.lengths if self.unit is Unit.WORD else torch.ones_like(self.labels)

    @property
    def n_labelled(self) -> int:
        """Words, sentences or pairs that have a label."""
        return int((self.labels >= 0).sum())

    def __len__(self) -> int:
        """Count sentences or pairs."""
        return len(self.lengths)

    def take(self, sentences: Int[Tensor, "chosen"]) -> "Labelled":
        """Return the subset with these sentences or pairs only."""
        if self.unit is not Unit.WORD:
            inputs = self.inputs.take(sentences_of(sentences, self.unit))
            return Labelled(inputs, self.labels[sentences], self.unit)
        lengths = self.inputs.lengths
        words = ranges((lengths.cumsum(0) - lengths)[sentences], lengths[sentences])
        return Labelled(self.inputs.take(sentences), self.labels[words])


def prepare(encoder: Encoder, inventory: Inventory, cell: Cell, corpus: Corpus) -> Labelled:
    """Prepare a corpus of a cell for the encoder, and look up its labels."""
    unit = inventory.task(cell.task).unit
    if len(corpus) and corpus.unit is not unit:
        raise DataError(f"{cell}: expected labels of {unit}s, got labels of {corpus.unit}s; is it the right file?")
    labels = torch.from_numpy(inventory.label_ids(cell.task, corpus.labels))
    if len(labels) != corpus.n_labels:
        raise DataError(f"{cell}: expected a label for each of {corpus.n_labels} {unit}s, got {len(labels)}")
    return Labelled(encoder.prepare(corpus.text(), cell.language), labels, unit)


def prepare_grid(
    model: Model, grid: Grid, cells: Collection[Cell] | None = None
) -> tuple[dict[Cell, Labelled], dict[Cell, Labelled]]:
    """Prepare training and development data of the model's seen cells, or of the cells given."""
    chosen = sorted(model.seen if cells is None else cells)
    training = {cell: grid.training(cell) for cell in chosen}
    empty = [str(cell) for cell, corpus in training.items() if not len(corpus)]
    if empty:
        raise DataError(f"expected training sentences in every seen cell, got none in {', '.join(empty)}")
    train = {cell: prepare(model.encoder, model.inventory, cell, corpus) for cell, corpus in training.items()}
    return train, prepare_development(model, grid, chosen)


def prepare_development(model: Model, grid: Grid, cells: Iterable[Cell]) -> dict[Cell, Labelled]:
    """Prepare development data of these cells, if any; of unseen ones only for `training.selection: oracle`."""
    corpora = {cell: grid.development(cell) for cell in cells}
    return {c: prepare(model.encoder, model.inventory, c, corpus) for c, corpus in corpora.items() if len(corpus)}
