"""JM whose heads deviate from language to language as a kernel of their similarity allows: no vector is inferred.

    θ = θ_task + Σᵢ vᵢ D_task,i        v of the language, given; v · v′ is the similarity of two languages

With weight decay on D this is maximum a posteriori in a Gaussian process over languages, one for each parameter of a
task's head. It has what PF has over JM, heads that differ between languages and are alike for similar ones, but for
what PF is about: a language's vector is given, the same for all tasks, and not learned from its data.
"""

from collections.abc import Collection, Sequence

import torch
from torch import nn

from crossfill.config import Config
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.baselines.typology_heads import TypologyVectorHeads, prepare
from crossfill.methods.method import Method
from crossfill.model import Head, TrainingDraw


class KernelHeads(TypologyVectorHeads):
    """A shared head for each task, and a deviation from it that is linear in the language's vector."""

    def __init__(self, inventory: Inventory, n_features: int, size: int) -> None:
        super().__init__(inventory, size)
        shapes = inventory.head_shapes(n_features)
        self.shared = nn.ModuleList(nn.Linear(width, labels) for labels, width in shapes)
        self.slopes = nn.ParameterList(nn.Parameter(torch.zeros(size, n, width + 1)) for n, width in shapes)
        self.deviations = tuple(self.slopes)

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        return [self._head(cell) for cell in cells]

    def sample(self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None) -> list[Head]:
        return self.plug_in(cells)

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return [TrainingDraw(self._head(cell), []) for cell in cells]

    def _head(self, cell: Cell) -> Head:
        """θ_task + Σᵢ vᵢ D_task,i."""
        task = self.inventory.task_index(cell.task)
        vector = self.vector(cell.language)
        return Head(Head.of(self.shared[task]).parameters + torch.tensordot(vector, self.slopes[task], 1))


def build(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> KernelHeads:
    """Heads that start without deviations, with vectors of `latents.size` numbers."""
    return KernelHeads(inventory, n_features, config.latents.size)


METHODS = (Method("jm-kernel", "joint, typology as kernel", build, prepare=prepare, needs_typology=True),)
