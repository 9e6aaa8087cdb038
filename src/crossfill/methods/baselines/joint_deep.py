"""JM with as many parameters as PF: a deep head per task in place of an affine one."""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossfill.config import Config
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.factorized.heads import FactorizedHeads
from crossfill.methods.method import Method
from crossfill.model import Classifier, HeadSource, Outline, TrainingDraw, n_parameters


@dataclass(frozen=True)
class NetworkHead(Classifier):
    """A network whose last layer gives the logits: a classifier with a single draw."""

    network: nn.Sequential

    @property
    def n_samples(self) -> int:
        return 1

    @property
    def n_labels(self) -> int:
        return self.network[-1].get_parameter("bias").shape[0]

    @property
    def n_bytes(self) -> int:
        return 0  # the parameters are the model's own


@dataclass(frozen=True)
class DeepHead(NetworkHead):
    """A network over the features of a word."""

    def logits(self, features: Float[Tensor, "words features"]) -> Float[Tensor, "samples words labels"]:
        return self.network(features).unsqueeze(0)


class DeepHeads(HeadSource):
    """A network with hidden layers for each task; no posterior, no KL."""

    def __init__(self, inventory: Inventory, n_features: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.inventory = inventory
        self.heads = nn.ModuleList(
            deep_network([width, *widths, labels]) for labels, width in inventory.head_shapes(n_features)
        )

    def plug_in(self, cells: Sequence[Cell]) -> list[DeepHead]:
        return [self._head(cell) for cell in cells]

    def sample(self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None) -> list[DeepHead]:
        return self.plug_in(cells)

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return [TrainingDraw(self._head(cell), []) for cell in cells]

    def _head(self, cell: Cell) -> DeepHead:
        self.inventory.check(cell)
        network = self.heads[self.inventory.task_index(cell.task)]
        if not isinstance(network, nn.Sequential):
            raise TypeError(f"expected a Sequential, got {type(network).__name__}")
        return DeepHead(network)


def matched_width(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> int:
    """The width at which the number of parameters of the deep heads is closest to that of pf-lr with these settings."""
    shapes = inventory.head_shapes(n_features)
    with Outline():
        target = n_parameters(FactorizedHeads(inventory, seen, n_features, config.change({"method": "pf-lr"})))

    def size(width: int) -> int:
        layers = [[features, *[width] * config.joint.layers, labels] for labels, features in shapes]
        return sum((narrow + 1) * wide for widths in layers for narrow, wide in itertools.pairwise(widths))

    low, high = 1, 1
    while size(high) < target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(middle) < target else (low, middle)
    return min((low, high), key=lambda width: (abs(size(width) - target), width))


def build(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> DeepHeads:
    """A deep head per task, with `joint.layers` hidden layers of width `joint.width`, or the one that matches pf-lr."""
    width = config.joint.width or matched_width(inventory, seen, n_features, config)
    return DeepHeads(inventory, n_features, [width] * config.joint.layers)


def deep_network(widths: Sequence[int]) -> nn.Sequential:
    """Affine layers of these widths, from features to labels, with ReLU between."""
    layers = [nn.Linear(narrow, wide) for narrow, wide in itertools.pairwise(widths)]
    between = [module for layer in layers[:-1] for module in (layer, nn.ReLU())]
    return nn.Sequential(*between, layers[-1])


METHODS = (Method("jm-deep", "joint, as many parameters as PF", build),)
