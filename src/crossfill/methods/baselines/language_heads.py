"""A head for each seen cell, as trained by NS, WS and BEA, which differ in how they label unseen cells."""

from collections.abc import Collection, Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.config import Config
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Inventory
from crossfill.grid.partition import Similarity
from crossfill.grid.typology import load_typology
from crossfill.methods.method import Plan
from crossfill.model import Head, HeadSource, Model, TrainingDraw, Vote


class LanguageHeads(HeadSource):
    """One head per seen cell; unseen cells use those of other languages.

    That is the head of the source language; with a vote, the heads of all sources; with a power k, their mean, weighted
    by similarity: θ = Σₛ wₛ θₛ, wₛ ∝ similarityₛᵏ.
    """

    sources: Int[Tensor, "tasks languages"]
    """Index of the source language whose head labels each cell; −1 where none was chosen."""
    similarities: Float[Tensor, "languages languages"]
    """How similar languages are, from 0 to 1."""

    def __init__(
        self,
        inventory: Inventory,
        seen: Collection[Cell],
        n_features: int,
        vote: Vote | None = None,
        power: float | None = None,
    ) -> None:
        super().__init__()
        self.inventory, self.vote, self.power = inventory, vote, power
        self.places = {cell: row for row, cell in enumerate(sorted(seen))}
        shapes = dict(zip(inventory.tasks, inventory.head_shapes(n_features), strict=True))
        head_shapes = [shapes[cell.task] for cell in self.places]
        self.heads = nn.ModuleList(nn.Linear(width, labels) for labels, width in head_shapes)
        shape = (len(inventory.tasks), len(inventory.languages))
        self.register_buffer("sources", torch.full(shape, -1, dtype=torch.long))
        self.register_buffer("similarities", torch.zeros(shape[1], shape[1]))

    def compare(self, similarity: Similarity) -> None:
        """Set how similar languages are; it is saved with the weights. Pairs of which nothing is known have 0."""
        for row, one in enumerate(self.inventory.languages):
            known = [similarity(one, other) for other in self.inventory.languages]
            self.similarities[row] = torch.tensor(known).nan_to_num(0.0).clamp(min=0.0)

    def serve(self, sources: Mapping[Cell, str]) -> None:
        """Set the source language of each of these cells; it is saved with the weights."""
        for cell, language in sources.items():
            task, target = self.inventory.task_index(cell.task), self.inventory.language_index(cell.language)
            self.sources[task, target] = self.inventory.language_index(language)

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        return [self._head(*self.serving(cell)) if self.power is None else self._mean_head(cell) for cell in cells]

    def sample(self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None) -> list[Head]:
        return self.plug_in(cells)

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return [TrainingDraw(self._head(cell), []) for cell in cells]

    def serving(self, cell: Cell) -> list[Cell]:
        """The cells whose heads label the words of this one."""
        self.inventory.check(cell)
        if cell in self.places:
            return [cell]
        seen = [other for other in self.places if other.task == cell.task]
        if not seen:
            raise DataError(f"{cell}: expected a seen language with this task, got none; train on one at least")
        if self.vote is not None or self.power is not None:
            return seen
        source = int(self.sources[self.inventory.task_index(cell.task), self.inventory.language_index(cell.language)])
        if source < 0:
            raise DataError(f"{cell}: no source language was chosen for it; train with crossfill.train")
        return [Cell(cell.task, self.inventory.languages[source])]

    def _head(self, *cells: Cell) -> Head:
        return Head.of(*(self.heads[self.places[cell]] for cell in cells))

    def _mean_head(self, cell: Cell) -> Head:
        """θ = Σₛ wₛ θₛ; where no similarity is above 0, or their powers vanish, all sources weigh the same."""
        serving = self.serving(cell)
        rows = [self.inventory.language_index(source.language) for source in serving]
        known = self.similarities[self.inventory.language_index(cell.language), rows].clamp(min=0.0)
        powers = known ** (self.power or 0.0)
        weights = powers if bool(powers.any()) else torch.ones_like(known)
        return Head(((weights / weights.sum())[:, None, None] * self._head(*serving).parameters).sum(0, keepdim=True))


def prepare(model: Model, plan: Plan, config: Config) -> None:
    """Set the source languages that the plan has chosen, and how similar languages are by typology if that is known."""
    if not isinstance(model.heads, LanguageHeads):
        raise TypeError(f"expected heads of languages, got {type(model.heads).__name__}")
    model.heads.serve(plan.sources)
    if plan.sources:
        model.heads.compare(load_typology(config.sources.vectors).similarity)
