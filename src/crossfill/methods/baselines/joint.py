"""JM, joint multilingual: one head per task, shared by all languages."""

from collections.abc import Collection, Sequence

import torch
from torch import nn

from crossfill.config import Config
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.method import Method
from crossfill.model import Head, HeadSource, TrainingDraw


class JointHeads(HeadSource):
    """One head θ per task, shared by all languages; no posterior and no KL.

    With `dropout`, samples are those of Monte Carlo dropout (Gal and Ghahramani, 2016): each draw zeroes a random
    share of the features, the same for all words, which amounts to a draw of W.
    """

    def __init__(self, inventory: Inventory, n_features: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.inventory, self.dropout, self.has_posterior = inventory, dropout, dropout > 0
        self.heads = nn.ModuleList(nn.Linear(width, labels) for labels, width in inventory.head_shapes(n_features))

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        return [self._head(cell) for cell in cells]

    def sample(self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None) -> list[Head]:
        heads = self.plug_in(cells)
        if not self.dropout:
            return heads
        weight = self.heads[0].get_parameter("weight")
        drawn = torch.rand(n_samples, 1, weight.shape[1], device=weight.device, dtype=weight.dtype, generator=generator)
        kept = drawn >= self.dropout
        scale = kept / (1 - self.dropout)
        masks = torch.cat([scale, torch.ones_like(scale[..., :1])], dim=-1)  # the bias is never dropped
        return [Head(head.parameters * masks) for head in heads]

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return [TrainingDraw(self._head(cell), []) for cell in cells]

    def _head(self, cell: Cell) -> Head:
        self.inventory.check(cell)
        return Head.of(self.heads[self.inventory.task_index(cell.task)])


def build(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> JointHeads:
    """A head per task."""
    return JointHeads(inventory, n_features)


def build_dropout(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> JointHeads:
    """A head per task, sampled by Monte Carlo dropout at the rate that the features were trained with."""
    return JointHeads(inventory, n_features, config.encoder.dropout)


METHODS = (
    Method("jm", "joint multilingual", build),
    Method("jm-dropout", "joint, Monte Carlo dropout", build_dropout, trained_as="jm"),
)
