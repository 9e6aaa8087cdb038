"""A head for each seen cell, and three ways to label the unseen ones with them.

NS, nearest source, takes the head of the most similar seen language; WS, weighted sources, the mean of the heads of all
seen languages, weighted by similarity; in BEA, all of them vote (`bea`).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.config import Config, SourcesConfig
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.grid.partition import Similarity
from crossfill.grid.typology import load_typology, trigram_similarity
from crossfill.methods.baselines.bea import bea
from crossfill.methods.registry import Method, Plan
from crossfill.model import Head, HeadSource, Model, TrainingDraw

TIE = 1e-9
"""Similarities that differ by less are ties, broken by more training words, then alphabetically."""
POWER = 4.0
"""Exponent of the similarities that weigh heads in WS."""


class LanguageHeads(HeadSource):
    """One head per seen cell; unseen cells use that of their source (NS), all of their task (BEA), or a mean (WS)."""

    sources: Int[Tensor, "tasks languages"]
    """Index of the source language whose head labels each cell; −1 where none was chosen."""
    similarities: Float[Tensor, "languages languages"]
    """How similar languages are, from 0 to 1."""

    def __init__(self, inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> None:
        super().__init__()
        self.inventory = inventory
        self.vote = bea if config.method == "bea" else None
        self.is_weighted = config.method == "ws"
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

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        return [self._mean_head(cell) if self.is_weighted else self._head(*self.serving(cell)) for cell in cells]

    def sample(self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None) -> list[Head]:
        return self.plug_in(cells)

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return [TrainingDraw(self._head(cell), []) for cell in cells]

    def serving(self, cell: Cell) -> list[Cell]:
        """Return the cells whose heads label the words of this one."""
        self.inventory.check(cell)
        if cell in self.places:
            return [cell]
        seen = [other for other in self.places if other.task == cell.task]
        if not seen:
            raise DataError(f"{cell}: expected a seen language with this task, got none; train on one at least")
        if self.vote is not None or self.is_weighted:
            return seen
        source = int(self.sources[self.inventory.task_index(cell.task), self.inventory.language_index(cell.language)])
        if source < 0:
            raise DataError(f"{cell}: no source language was chosen for it; train with crossfill.train")
        return [Cell(cell.task, self.inventory.languages[source])]

    def _head(self, *cells: Cell) -> Head:
        return Head.of(*(self.heads[self.places[cell]] for cell in cells))

    def _mean_head(self, cell: Cell) -> Head:
        """Compute θ = Σₛ wₛ θₛ, wₛ ∝ similarityₛᵏ; all weigh the same where no power of a similarity is above 0."""
        serving = self.serving(cell)
        rows = [self.inventory.language_index(source.language) for source in serving]
        known = self.similarities[self.inventory.language_index(cell.language), rows].clamp(min=0.0)
        powers = known**POWER
        weights = powers if bool(powers.any()) else torch.ones_like(known)
        return Head(((weights / weights.sum())[:, None, None] * self._head(*serving).parameters).sum(0, keepdim=True))


def prepare(model: Model, plan: Plan, config: Config) -> None:
    """Set the source languages that the plan has chosen, and how similar languages are by typology if that is known."""
    if not isinstance(model.heads, LanguageHeads):
        raise TypeError(f"expected heads of languages, got {type(model.heads).__name__}")
    for cell, language in plan.sources.items():
        place = model.inventory.task_index(cell.task), model.inventory.language_index(cell.language)
        model.heads.sources[place] = model.inventory.language_index(language)
    if plan.sources:
        model.heads.compare(load_typology(config.sources.vectors).similarity)


def plan(grid: Grid, seen: frozenset[Cell], config: Config) -> Plan:
    """Train on the seen cells; every other cell uses the head of its nearest source."""
    similarities = similarity_choices(grid, seen, config.sources)
    words = {cell: grid.training(cell).n_words for cell in seen}
    sources: dict[Cell, str] = {}
    fallbacks: dict[str, list[str]] = {}
    for task in grid.inventory.tasks:
        candidates = sorted(cell.language for cell in seen if cell.task == task)
        for language in grid.inventory.languages:
            cell = Cell(task, language)
            if cell in seen or not candidates:
                continue
            sizes = {other: words[Cell(task, other)] for other in candidates}
            for name, similarity in similarities.items():
                source = nearest({other: similarity(language, other) for other in candidates}, sizes)
                if source is not None:
                    break
                fallbacks.setdefault(f"not known to {name}", []).append(str(cell))
            else:
                source = max(sizes, key=lambda other: (sizes[other], other))
                fallbacks.setdefault("without any known similarity, served by the largest source", []).append(str(cell))
            sources[cell] = source
    notes = tuple(f"{message}: {', '.join(sorted(cells))}" for message, cells in fallbacks.items())
    return Plan(grid, seen, seen, sources, notes)


def nearest(similarities: Mapping[str, float], words: Mapping[str, int]) -> str | None:
    """Find the source with the highest similarity; None if no similarity is known (NaN)."""
    known = {source: value for source, value in similarities.items() if not np.isnan(value)}
    if not known:
        return None
    best = max(known.values())
    tied = [source for source, value in known.items() if value >= best - TIE]
    return min(tied, key=lambda source: (-words[source], source))


def similarity_choices(grid: Grid, seen: frozenset[Cell], config: SourcesConfig) -> dict[str, Similarity]:
    """List similarities to try in order: the one in the config, then URIEL's for languages that the first lacks."""
    typology = load_typology(config.vectors)
    choices: dict[str, Similarity] = {"the typological vectors": typology.similarity}
    if config.similarity == "family":
        choices = {"the family vectors": lambda a, b: typology.similarity(a, b, ("fam",))} | choices
    if config.similarity == "pos-trigrams":
        trigrams: dict[str, Counter[tuple[str, str, str]]] = {c.language: Counter() for c in seen if c.task == "pos"}
        for language, counts in trigrams.items():
            for sentence in grid.training(Cell("pos", language)):
                counts.update(zip(sentence.labels, sentence.labels[1:], sentence.labels[2:], strict=False))
        choices = {"the seen POS trigrams": trigram_similarity(trigrams)} | choices
    return choices


METHODS = (
    Method("ns", "nearest source", LanguageHeads, plan, prepare, needs_typology=True),
    Method("ws", "weighted sources", LanguageHeads, plan, prepare, needs_typology=True, trained_as="ns"),
    Method("bea", "all sources vote", LanguageHeads, prepare=prepare, trained_as="ns"),
)
