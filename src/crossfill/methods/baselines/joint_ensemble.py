"""JM as an ensemble: several heads per task, with different initialisations and bootstraps of the mini-batches."""

import math
from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn

from crossfill.config import Config
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.method import Method
from crossfill.model import Head, HeadSource, TrainingDraw


class EnsembleHeads(HeadSource):
    """K heads per task over one encoder: averaged prediction uses all of them, plug-in the first, a plain JM.

    The members are trained in one run: each cell drawn in a step trains K members drawn with replacement, so that
    every member sees its own bootstrap of the mini-batches (online bagging; Oza and Russell, 2001).
    """

    def __init__(self, inventory: Inventory, n_features: int, members: int) -> None:
        super().__init__()
        self.inventory, self.members, self.has_posterior = inventory, members, members > 1
        self.heads = nn.ParameterList()
        for labels, width in inventory.head_shapes(n_features):
            bound = 1 / math.sqrt(width)  # as nn.Linear is initialised
            self.heads.append(nn.Parameter(torch.empty(members, labels, width + 1).uniform_(-bound, bound)))

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        return [Head(self._theta(cell)[:1]) for cell in cells]

    def sample(self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None) -> list[Head]:
        return [Head(self._theta(cell)) for cell in cells]

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        drawn = torch.randint(self.members, (len(cells), self.members), device=self.heads[0].device)
        return [TrainingDraw(Head(self._theta(c)[rows]), []) for c, rows in zip(cells, drawn, strict=True)]

    def _theta(self, cell: Cell) -> Tensor:
        self.inventory.check(cell)
        return self.heads[self.inventory.task_index(cell.task)]


def build(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> EnsembleHeads:
    """`joint.members` heads per task."""
    return EnsembleHeads(inventory, n_features, config.joint.members)


METHODS = (Method("jm-ensemble", "joint, ensemble of heads", build),)
