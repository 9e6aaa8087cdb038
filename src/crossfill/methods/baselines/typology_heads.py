"""JM with a vector for each language.

`jm-embedding` reads it as an input, next to a word's features, and learns it. In `jm-kernel`, it is given, by typology
and by the centroid of the language's text, and heads deviate from language to language as a kernel of their similarity
allows:

    θ = θ_task + Σᵢ vᵢ D_task,i        v of the language, given; v · v′ is the similarity of two languages

With weight decay on D this is maximum a posteriori in a Gaussian process over languages, one for each parameter of a
task's head. It has what PF has over JM, heads that differ between languages and are alike for similar ones, but for
what PF is about: a language's vector is given, the same for all tasks, and not learned from its data.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.config import Config
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.anchors import language_anchors
from crossfill.methods.registry import Method, Plan
from crossfill.model import Classifier, Head, Model, PointHeads, affine_layers

HIDDEN = (256, 256)
"""Widths of the layers of jm-embedding, between features with the language's vector and labels."""


class LanguageVectorHeads(PointHeads, ABC):
    """Heads with a vector v for each language."""

    vectors: Float[Tensor, "languages size"]

    def __init__(self, inventory: Inventory, size: int) -> None:
        super().__init__()
        self.inventory = inventory
        self.register_buffer("vectors", torch.zeros(len(inventory.languages), size))

    @abstractmethod
    def head(self, task: int, vector: Float[Tensor, "size"]) -> Classifier:
        """Return the head of a task in a language with this vector, which has no posterior."""

    def plug_in(self, cells: Sequence[Cell]) -> list[Classifier]:
        task, language = self.inventory.task_index, self.inventory.language_index
        return [self.head(task(cell.task), self.vectors[language(cell.language)]) for cell in cells]

    @torch.no_grad()
    def describe(self, vectors: Mapping[str, Float[np.ndarray, "size"]]) -> None:
        """Set the vectors of these languages; they are saved with the weights."""
        for language, vector in vectors.items():
            self.vectors[self.inventory.language_index(language)] = torch.from_numpy(vector)


class KernelHeads(LanguageVectorHeads):
    """A shared head for each task, and a deviation from it that is linear in the language's vector, at first zero."""

    def __init__(self, inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> None:
        size, shapes = config.latents.size, inventory.head_shapes(n_features)
        super().__init__(inventory, size)
        self.shared = nn.ModuleList(nn.Linear(width, labels) for labels, width in shapes)
        self.slopes = nn.ParameterList(nn.Parameter(torch.zeros(size, n, width + 1)) for n, width in shapes)
        self.deviations = tuple(self.slopes)

    def head(self, task: int, vector: Float[Tensor, "size"]) -> Head:
        """Compute θ_task + Σᵢ vᵢ D_task,i."""
        return Head(Head.of(self.shared[task]).parameters + torch.tensordot(vector, self.slopes[task], 1))


@dataclass(frozen=True)
class EmbeddingHead(Classifier):
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


class EmbeddingHeads(LanguageVectorHeads):
    """A network per task, shared by all languages, that sees the language's vector next to the features of a word.

    Vectors are learned from the languages' seen cells, and zero for languages without any. An affine head over both
    could do no more than shift its biases from language to language; hence hidden layers.
    """

    def __init__(self, inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> None:
        size = config.latents.size
        super().__init__(inventory, size)
        start = self.vectors
        del self.vectors
        self.vectors = nn.Parameter(start)
        self.heads = nn.ModuleList(
            nn.Sequential(*affine_layers([width + size, *HIDDEN]), nn.Linear(HIDDEN[-1], labels))
            for labels, width in inventory.head_shapes(n_features)
        )

    def head(self, task: int, vector: Float[Tensor, "size"]) -> EmbeddingHead:
        return EmbeddingHead(cast("nn.Sequential", self.heads[task]), vector)


def prepare(model: Model, plan: Plan, config: Config) -> None:
    """Look up the vectors of all languages: those that `latents.prior: similar` centres priors on."""
    heads = cast("LanguageVectorHeads", model.heads)
    heads.describe(language_anchors(model.inventory.languages, model.encoder, config))


METHODS = (
    Method("jm-embedding", "joint, learned language vector", EmbeddingHeads),
    Method("jm-kernel", "joint, typology as kernel", KernelHeads, prepare=prepare, needs_typology=True),
)
