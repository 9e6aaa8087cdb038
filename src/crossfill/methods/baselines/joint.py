"""JM, joint multilingual: one head per task, shared by all languages; with Monte Carlo dropout, or as an ensemble."""

import math
from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn

from crossfill.config import Config
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.method import Method
from crossfill.model import Head, HeadSource, TrainingDraw

MEMBERS = 5
"""Heads per task in an ensemble."""


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
        scale = (drawn >= self.dropout) / (1 - self.dropout)
        masks = torch.cat([scale, torch.ones_like(scale[..., :1])], dim=-1)  # the bias is never dropped
        return [Head(head.parameters * masks) for head in heads]

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return [TrainingDraw(self._head(cell), []) for cell in cells]

    def _head(self, cell: Cell) -> Head:
        self.inventory.check(cell)
        return Head.of(self.heads[self.inventory.task_index(cell.task)])


class EnsembleHeads(HeadSource):
    """K heads per task over one encoder: averaged prediction uses all of them, plug-in the first, a plain JM.

    The members have different initialisations and are trained in one run: each cell drawn in a step trains K members
    drawn with replacement, so that every member sees its own bootstrap of the mini-batches (online bagging; Oza and
    Russell, 2001).
    """

    has_posterior = True

    def __init__(self, inventory: Inventory, n_features: int, members: int = MEMBERS) -> None:
        super().__init__()
        self.inventory, self.members = inventory, members
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


def build(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> JointHeads:
    """Build a head per task."""
    return JointHeads(inventory, n_features)


def build_dropout(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> JointHeads:
    """Build a head per task, sampled by Monte Carlo dropout at the rate that the features were trained with."""
    return JointHeads(inventory, n_features, config.encoder.dropout)


def build_ensemble(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> EnsembleHeads:
    """Build several heads per task."""
    return EnsembleHeads(inventory, n_features)


METHODS = (
    Method("jm", "joint multilingual", build),
    Method("jm-dropout", "joint, Monte Carlo dropout", build_dropout, trained_as="jm"),
    Method("jm-ensemble", "joint, ensemble of heads", build_ensemble),
)
