"""JM that is told the language: a network per task over a word's features and its language's typological vector."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.config import Config
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.baselines.typology_heads import TypologyVectorHeads, prepare
from crossfill.methods.method import Method
from crossfill.model import Classifier, TrainingDraw


@dataclass(frozen=True)
class TypologyHead(Classifier):
    """A network over x ⊕ v, where v is the vector of the cell's language, with a single draw."""

    network: nn.Sequential
    vector: Float[Tensor, "size"]

    @property
    def n_samples(self) -> int:
        return 1

    @property
    def n_labels(self) -> int:
        return self.network[-1].get_parameter("bias").shape[0]

    @property
    def n_bytes(self) -> int:
        return 0  # the parameters are the model's own

    def logits(
        self, features: Float[Tensor, "words features"], cues: Int[Tensor, "words cues"] | None = None
    ) -> Float[Tensor, "samples words labels"]:
        return self.network(torch.cat([features, self.vector.expand(len(features), -1)], -1)).unsqueeze(0)


class TypologyHeads(TypologyVectorHeads):
    """A network per task, shared by all languages, that sees the language's vector beside the features of a word.

    An affine head over both could do no more than shift its biases from language to language; hence hidden layers.
    """

    def __init__(self, inventory: Inventory, n_features: int, size: int, widths: Sequence[int]) -> None:
        super().__init__(inventory, size)
        shapes = inventory.head_shapes(n_features)
        self.heads = nn.ModuleList(_network([width + size, *widths, labels]) for labels, width in shapes)

    def plug_in(self, cells: Sequence[Cell]) -> list[TypologyHead]:
        return [self._head(cell) for cell in cells]

    def sample(
        self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None
    ) -> list[TypologyHead]:
        return self.plug_in(cells)

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return [TrainingDraw(self._head(cell), []) for cell in cells]

    def _head(self, cell: Cell) -> TypologyHead:
        network = self.heads[self.inventory.task_index(cell.task)]
        if not isinstance(network, nn.Sequential):
            raise TypeError(f"expected a Sequential, got {type(network).__name__}")
        return TypologyHead(network, self.vector(cell.language))


def build(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> TypologyHeads:
    """A network per task with hidden layers of the widths `joint.hidden`."""
    return TypologyHeads(inventory, n_features, config.latents.size, config.joint.hidden)


def _network(widths: Sequence[int]) -> nn.Sequential:
    """Affine layers of these widths, from inputs to labels, with ReLU between."""
    layers = [nn.Linear(narrow, wide) for narrow, wide in pairwise(widths)]
    between = [module for layer in layers[:-1] for module in (layer, nn.ReLU())]
    return nn.Sequential(*between, layers[-1])


METHODS = (Method("jm-typology", "joint, typology as input", build, prepare=prepare, needs_typology=True),)
