"""The model: an encoder, and a source of heads, one classifier for each cell.

    p(y | x, cell) = softmax(W x + b)        x from the encoder, [W b] from the cell's head

x is the vector of a word, sentence or pair (`crossfill.encoders.base.pool`), after its task's hidden layers
(`heads.hidden`). Methods differ only in where heads come from. The paper's method generates them from task and language
vectors: `crossfill.methods.factorized`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from crossfill.encoders.base import Encoder, Inputs
from crossfill.encoders.cues import cues_of
from crossfill.grid.cells import Cell, Inventory
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Unit


class Classifier(ABC):
    """Draws of a classifier that labels the words of one cell."""

    @property
    @abstractmethod
    def n_samples(self) -> int: ...

    @property
    @abstractmethod
    def n_labels(self) -> int: ...

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Memory that the draws take in addition to the model's parameters, in bytes."""

    @abstractmethod
    def logits(
        self, features: Float[Tensor, "words features"], cues: Int[Tensor, "words cues"] | None = None
    ) -> Float[Tensor, "samples words labels"]:
        """Compute unnormalised log-probabilities, for all draws and words; only heads of adapted cells read cues."""

    def log_probabilities(self, features: Float[Tensor, "words features"]) -> Float[Tensor, "samples words labels"]:
        return self.logits(features).log_softmax(-1)


@dataclass(frozen=True)
class Head(Classifier):
    """Draws of the affine classifier of one cell, θ = [W b]."""

    parameters: Float[Tensor, "samples labels features_and_bias"]

    @classmethod
    def of(cls, *layers: nn.Module) -> "Head":
        thetas = [torch.cat([a.get_parameter("weight"), a.get_parameter("bias").unsqueeze(1)], 1) for a in layers]
        return cls(torch.stack(thetas))

    @property
    def n_samples(self) -> int:
        return self.parameters.shape[0]

    @property
    def n_labels(self) -> int:
        return self.parameters.shape[1]

    @property
    def n_bytes(self) -> int:
        return self.parameters.nbytes

    def logits(
        self, features: Float[Tensor, "words features"], cues: Int[Tensor, "words cues"] | None = None
    ) -> Float[Tensor, "samples words labels"]:
        """Compute W x + b, for all draws and words in one matrix product."""
        weight = self.parameters[..., :-1].reshape(self.n_samples * self.n_labels, -1)
        bias = self.parameters[..., -1].reshape(-1)
        return functional.linear(features, weight, bias).unflatten(-1, (self.n_samples, self.n_labels)).transpose(0, 1)


Scope = Literal["task", "language", "cell", "all"]
"""What a KL term belongs to: a task (row of the grid), a language (column), one cell, or the whole grid."""


class Divergence(NamedTuple):
    """One KL term of the ELBO, and what it belongs to."""

    value: Float[Tensor, ""]
    scope: Scope


class TrainingDraw(NamedTuple):
    """A seen cell's head, drawn for a training step, and its KL terms."""

    head: Classifier
    divergences: list[Divergence]


Vote = Callable[[Int[Tensor, "voters words"], int], Float[Tensor, "words labels"]]
"""Maps the voters' labels of each word, and the number of labels, to probabilities of the true label."""


class CellDecision(NamedTuple):
    """How the decisions of a cell differ from those of its task."""

    shift: float = 0.0
    """Added to the offset on the label that means none."""
    pairs: tuple[tuple[float, ...], ...] = ()
    """How often each label follows each in the cell's own sentences (`crossfill.prediction.rules.count_pairs`)."""


AS_ITS_TASK = CellDecision()


class HeadSource(nn.Module, ABC):
    """Provides the heads of cells: the only part in which methods differ."""

    has_posterior: bool = False
    """Whether draws of a head differ, so that averaged prediction differs from plug-in prediction."""
    vote: Vote | None = None
    """Combines several draws of a head into one prediction; none averages their probabilities."""
    rows: Sequence[nn.Parameter] = ()
    """Parameters with one row per task or language and sparse gradients: a step updates only the rows it drew."""
    cue_cells: Collection[Cell] = ()
    """Cells whose heads read the cues of words (`crossfill.encoders.cues`) besides their features."""
    decisions: Mapping[Cell, CellDecision] = {}
    """How cells decide that have labelled sentences of their own."""
    deviations: Sequence[nn.Parameter] = ()
    """Parameters that make the cells of a task differ; `training.deviation_learning_rate` applies to them."""

    @abstractmethod
    def plug_in(self, cells: Sequence[Cell]) -> Sequence[Classifier]:
        """Return the head of each cell at the posterior means: one draw, or one per voter."""

    @abstractmethod
    def sample(
        self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None
    ) -> Sequence[Classifier]:
        """Take posterior draws of the head of each cell."""

    @abstractmethod
    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        """Draw the head of each cell, re-parametrised, with the KL terms that concern the cell."""


class PointHeads(HeadSource):
    """Heads without a posterior, and so without KL terms: a draw is the head itself."""

    def sample(
        self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None
    ) -> Sequence[Classifier]:
        return self.plug_in(cells)

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return [TrainingDraw(head, []) for head in self.plug_in(cells)]


class Model(nn.Module):
    """p(y | x, cell) = softmax(W x + b): x from the encoder and hidden layers, [W b] from the cell's head."""

    def __init__(
        self,
        encoder: Encoder,
        heads: HeadSource,
        inventory: Inventory,
        seen: Collection[Cell],
        hidden: nn.ModuleList | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.heads = encoder, heads
        self.inventory, self.seen = inventory, frozenset(seen)
        self.hidden = nn.ModuleList() if hidden is None else hidden
        """A network for each task between features and heads (`hidden_layers`), or nothing."""

    def features(self, inputs: Inputs, task: str) -> Float[Tensor, "items features"]:
        """Compute the vector of everything that a task labels in these inputs: of each word, sentence or pair."""
        return self.pool(self.encoder(inputs), inputs.lengths, task)

    def pool(
        self, words: Float[Tensor, "words features"], lengths: Int[Tensor, "sentences"], task: str
    ) -> Float[Tensor, "items width"]:
        """Compute what heads of a task read, from the vectors of words: those of its units, after its hidden layers."""
        return self.hidden_of(task)(self.encoder.pool(words, lengths, self.inventory.task(task).unit))

    def hidden_of(self, task: str) -> nn.Module:
        """Return the network between features and heads of a task; tasks that were added have none."""
        place = self.inventory.task_index(task)
        return self.hidden[place] if place < len(self.hidden) else nn.Identity()

    def width(self, task: str, unit: Unit) -> int:
        """Count the numbers that heads of a task read; one that the model does not know has no hidden layers."""
        network = self.hidden_of(task) if task in self.inventory.tasks else nn.Identity()
        layers = [module for module in network.modules() if isinstance(module, nn.Linear)]
        return layers[-1].out_features if layers else unit.width(self.encoder.n_features)

    def cues(self, cell: Cell, text: Corpus) -> Int[Tensor, "words cues"] | None:
        """Look up the cues of all words of a text, if the head of the cell reads them."""
        reads = cell in self.heads.cue_cells and self.inventory.task(cell.task).unit is Unit.WORD
        return cues_of(text) if reads else None


def hidden_layers(inventory: Inventory, n_features: int, widths: Sequence[int], dropout: float = 0.0) -> nn.ModuleList:
    """Build a network for each task, four times as wide for pairs."""
    tasks = inventory.tasks.values() if widths else ()
    sizes = ([task.unit.width(size) for size in (n_features, *widths)] for task in tasks)
    return nn.ModuleList(nn.Sequential(*affine_layers(of_task, dropout)) for of_task in sizes)


def affine_layers(sizes: Sequence[int], dropout: float = 0.0) -> list[nn.Module]:
    """Build affine layers from each size to the next, each followed by ReLU and dropout."""
    layers = [nn.Linear(narrow, wide) for narrow, wide in pairwise(sizes)]
    after = (nn.ReLU(), nn.Dropout(dropout)) if dropout else (nn.ReLU(),)
    return [module for layer in layers for module in (layer, *after)]


def n_parameters(module: nn.Module) -> int:
    """Count trainable parameters."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
