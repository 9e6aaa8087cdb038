"""One head per task for all languages: JM, joint multilingual, with Monte Carlo dropout or as an ensemble; and LS.

LS, largest source, trains each task on one language, the one with most data, and applies its head to all others.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from crossfill.config import Config
from crossfill.data.codes import find_language_in
from crossfill.grid.cells import Cell, Grid, Inventory, Splits
from crossfill.grid.sentence import EMPTY
from crossfill.methods.registry import Method, Plan
from crossfill.model import Head, HeadSource, TrainingDraw

MEMBERS = 5
"""Heads per task in an ensemble."""


class JointHeads(HeadSource):
    """One head θ per task, shared by all languages; no posterior and no KL.

    Samples of `jm-dropout` are those of Monte Carlo dropout (Gal and Ghahramani, 2016): each draw zeroes a random share
    of the features, the same for all words, which amounts to a draw of W.
    """

    def __init__(self, inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> None:
        super().__init__()
        self.inventory = inventory
        self.dropout = config.encoder.dropout if config.method == "jm-dropout" else 0.0
        self.has_posterior = self.dropout > 0
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

    def __init__(self, inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> None:
        super().__init__()
        self.inventory = inventory
        self.heads = nn.ParameterList()
        for labels, width in inventory.head_shapes(n_features):
            bound = 1 / math.sqrt(width)  # as nn.Linear is initialised
            self.heads.append(nn.Parameter(torch.empty(MEMBERS, labels, width + 1).uniform_(-bound, bound)))

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        return [Head(self._theta(cell)[:1]) for cell in cells]

    def sample(self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None) -> list[Head]:
        return [Head(self._theta(cell)) for cell in cells]

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        drawn = torch.randint(MEMBERS, (len(cells), MEMBERS), device=self.heads[0].device)
        return [TrainingDraw(Head(self._theta(c)[rows]), []) for c, rows in zip(cells, drawn, strict=True)]

    def _theta(self, cell: Cell) -> Tensor:
        self.inventory.check(cell)
        return self.heads[self.inventory.task_index(cell.task)]


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
            if config.sources.cut and n_words > total:
                corpora[wanted] = cut(labelled, total, config.training.seed)
            elif n_words < total:
                notes.append(
                    f"{wanted} has {n_words:,} training words, {total - n_words:,} fewer than the {total:,} of the "
                    f"{len(words)} seen cells of {task} together"
                )
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
    Method("jm-dropout", "joint, Monte Carlo dropout", JointHeads, trained_as="jm"),
    Method("jm-ensemble", "joint, ensemble of heads", EnsembleHeads),
    Method("ls", "largest source", JointHeads, plan, uses_outside_languages=True),
)
