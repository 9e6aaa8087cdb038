"""JM, joint multilingual: one head per task, shared by all languages."""

from collections.abc import Sequence

import torch
from torch import nn

from crossfill.generator import Head
from crossfill.grid import Cell, Inventory
from crossfill.model import Divergence, HeadSource


class JointHeads(HeadSource):
    """θ of a cell is θ of its task; no posterior, no KL."""

    def __init__(self, inventory: Inventory, n_features: int) -> None:
        super().__init__()
        self.inventory = inventory
        self.heads = nn.ModuleList(nn.Linear(n_features, len(labels)) for labels in inventory.labels.values())

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        return [self._head(cell) for cell in cells]

    def sample(self, cells: Sequence[Cell], n_samples: int) -> list[Head]:  # noqa: ARG002
        return self.plug_in(cells)

    def training_draw(self, cell: Cell, n_samples: int) -> tuple[Head, list[Divergence]]:  # noqa: ARG002
        return self._head(cell), []

    def _head(self, cell: Cell) -> Head:
        self.inventory.check(cell)
        head = self.heads[self.inventory.task_index(cell.task)]
        return Head(torch.cat([head.get_parameter("weight"), head.get_parameter("bias").unsqueeze(1)], 1).unsqueeze(0))
