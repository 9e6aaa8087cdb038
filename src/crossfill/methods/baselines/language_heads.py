"""A head for each seen cell: NS, nearest source, takes that of the most similar seen language; in BEA, all vote."""

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from crossfill.config import Config
from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.grid.typology import load_typology
from crossfill.methods.baselines.bea import bea
from crossfill.methods.registry import Method, Plan
from crossfill.model import Head, Model, PointHeads

TIE = 1e-9
"""Similarities that differ by less are ties, broken by more training words, then alphabetically."""


class LanguageHeads(PointHeads):
    """One head per seen cell; unseen cells use that of their source (NS), or all of their task (BEA)."""

    sources: Int[Tensor, "tasks languages"]
    """Index of the source language whose head labels each cell; −1 where none was chosen."""

    def __init__(self, inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> None:
        super().__init__()
        self.inventory = inventory
        self.vote = bea if config.method == "bea" else None
        self.places = {cell: row for row, cell in enumerate(sorted(seen))}
        shapes = dict(zip(inventory.tasks, inventory.head_shapes(n_features), strict=True))
        head_shapes = [shapes[cell.task] for cell in self.places]
        self.heads = nn.ModuleList(nn.Linear(width, labels) for labels, width in head_shapes)
        shape = (len(inventory.tasks), len(inventory.languages))
        self.register_buffer("sources", torch.full(shape, -1, dtype=torch.long))

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        return [Head.of(*(self.heads[self.places[source]] for source in self.serving(cell))) for cell in cells]

    def serving(self, cell: Cell) -> list[Cell]:
        """Return the cells whose heads label the words of this one."""
        self.inventory.check(cell)
        if cell in self.places:
            return [cell]
        seen = [other for other in self.places if other.task == cell.task]
        if not seen:
            raise DataError(f"{cell}: expected a seen language with this task, got none; train on one at least")
        if self.vote is not None:
            return seen
        source = int(self.sources[self.inventory.task_index(cell.task), self.inventory.language_index(cell.language)])
        if source < 0:
            raise DataError(f"{cell}: no source language was chosen for it; train with crossfill.train")
        return [Cell(cell.task, self.inventory.languages[source])]


def prepare(model: Model, plan: Plan, config: Config) -> None:
    """Set the source languages that the plan has chosen."""
    heads = cast("LanguageHeads", model.heads)
    for cell, language in plan.sources.items():
        place = model.inventory.task_index(cell.task), model.inventory.language_index(cell.language)
        heads.sources[place] = model.inventory.language_index(language)


def plan(grid: Grid, seen: frozenset[Cell], config: Config) -> Plan:
    """Train on the seen cells; every other cell uses the head of its nearest source."""
    similarity = load_typology(config.sources.vectors).similarity
    words = {cell: grid.training(cell).n_words for cell in seen}
    sources: dict[Cell, str] = {}
    unknown: list[str] = []
    for task in grid.inventory.tasks:
        candidates = sorted(cell.language for cell in seen if cell.task == task)
        for language in grid.inventory.languages:
            cell = Cell(task, language)
            if cell in seen or not candidates:
                continue
            sizes = {other: words[Cell(task, other)] for other in candidates}
            source = nearest({other: similarity(language, other) for other in candidates}, sizes)
            if source is None:
                source = max(sizes, key=lambda other: (sizes[other], other))
                unknown.append(str(cell))
            sources[cell] = source
    note = f"without any known similarity, served by the largest source: {', '.join(sorted(unknown))}"
    return Plan(grid, seen, seen, sources, (note,) if unknown else ())


def nearest(similarities: Mapping[str, float], words: Mapping[str, int]) -> str | None:
    """Find the source with the highest similarity; None if no similarity is known (NaN)."""
    known = {source: value for source, value in similarities.items() if not np.isnan(value)}
    if not known:
        return None
    best = max(known.values())
    tied = [source for source, value in known.items() if value >= best - TIE]
    return min(tied, key=lambda source: (-words[source], source))


METHODS = (
    Method("ns", "nearest source", LanguageHeads, plan, prepare, needs_typology=True),
    Method("bea", "all sources vote", LanguageHeads, prepare=prepare, votes=True, trained_as="ns"),
)
