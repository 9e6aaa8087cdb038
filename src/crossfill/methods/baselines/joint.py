"""One head per task for all languages: JM, joint multilingual, and LS.

LS, largest source, trains each task on one language, the one with most data, and applies its head to all others.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from torch import nn

from crossfill.config import Config
from crossfill.data.codes import find_language_in
from crossfill.grid.cells import Cell, Grid, Inventory, Splits
from crossfill.grid.sentence import EMPTY
from crossfill.methods.registry import Method, Plan
from crossfill.model import Head, PointHeads


class JointHeads(PointHeads):
    """One head θ per task, shared by all languages; no posterior and no KL."""

    def __init__(self, inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> None:
        super().__init__()
        self.inventory = inventory
        self.heads = nn.ModuleList(nn.Linear(width, labels) for labels, width in inventory.head_shapes(n_features))

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        for cell in cells:
            self.inventory.check(cell)
        return [Head.of(self.heads[self.inventory.task_index(cell.task)]) for cell in cells]


def plan(grid: Grid, seen: frozenset[Cell], config: Config) -> Plan:
    """Train each task on its largest source.

    The preferred language (`sources.largest`, English) is the source of a task if its cell is seen, or if none of its
    cells is: it is then outside the comparison. Held-out cells of languages in the comparison are never trained on.
    """
    preferred = find_language_in(config.sources.largest, grid.languages)
    outside = all(cell.language != preferred for cell in seen)
    corpora: dict[Cell, tuple[Splits, ...]] = {}
    notes = []
    for task in sorted({cell.task for cell in seen}):
        words = {cell: grid.training(cell).n_words for cell in seen if cell.task == task}
        wanted, total = Cell(task, preferred), sum(words.values())
        labelled = tuple(s for s in grid[wanted] if s.has_training_data) if wanted in grid.cells else ()
        if wanted in seen:
            corpora[wanted] = grid[wanted]
        elif outside and labelled:
            n_words = sum(splits.training.n_words for splits in labelled)
            corpora[wanted] = labelled
            if n_words > total:
                corpora[wanted] = cut(labelled, total, config.training.seed)
            elif n_words < total:
                notes.append(f"{wanted} has {n_words:,} training words, the seen cells of {task} {total:,} together")
        else:
            largest = max(words, key=lambda cell: (words[cell], cell))
            corpora[largest] = grid[largest]
            notes.append(
                f"{task} has no training data in '{preferred}' that may serve; its largest source is {largest}"
            )
    cells = frozenset(corpora)
    sources = {Cell(c.task, language): c.language for c in sorted(cells) for language in grid.inventory.languages}
    return Plan(Grid(corpora), cells, seen | cells, sources, tuple(notes))


def cut(corpora: Sequence[Splits], words: int, seed: int) -> tuple[Splits, ...]:
    """Keep random training sentences of about this many words, the same share of each corpus, in their order."""
    share, parts = words / sum(splits.training.n_words for splits in corpora), []
    for splits in corpora:
        corpus = splits.training
        order = np.random.default_rng(seed).permutation(len(corpus))
        n = int(np.searchsorted(np.cumsum(corpus.lengths[order]), share * corpus.n_words, side="right"))
        parts.append(replace(splits, train=corpus.take(np.sort(order[: max(1, n)]).tolist()), surplus=EMPTY))
    return tuple(parts)


METHODS = (
    Method("jm", "joint multilingual", JointHeads),
    Method("ls", "largest source", JointHeads, plan, uses_outside_languages=True),
)
