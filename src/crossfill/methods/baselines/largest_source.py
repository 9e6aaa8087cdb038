"""LS, largest source: each task is trained on one language, the one with most data, and applied to all others."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from crossfill.config import Config
from crossfill.data.codes import find_language_in
from crossfill.grid.cells import Cell, Grid, Inventory, Splits
from crossfill.grid.sentence import EMPTY, Corpus
from crossfill.methods.baselines.joint import JointHeads
from crossfill.methods.method import Method, Plan


def build(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> JointHeads:
    """Build a head per task, as in the joint baseline, but trained on one language."""
    return JointHeads(inventory, n_features)


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
        wanted = Cell(task, preferred)
        if wanted in seen:
            corpora[wanted] = grid[wanted]
        elif outside and wanted in grid.cells and any(splits.has_training_data for splits in grid[wanted]):
            total = sum(words.values())
            corpora[wanted] = tuple(s for s in grid[wanted] if s.has_training_data)
            n_words = sum(splits.training.n_words for splits in corpora[wanted])
            if config.sources.cut and n_words > total:
                corpora[wanted] = cut(corpora[wanted], total, config.training.seed)
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
    share = words / sum(splits.training.n_words for splits in corpora)
    return tuple(
        replace(splits, train=_cut(splits.training, share * splits.training.n_words, seed), surplus=EMPTY)
        for splits in corpora
    )


def _cut(corpus: Corpus, words: float, seed: int) -> Corpus:
    order = np.random.default_rng(seed).permutation(len(corpus))
    n = max(1, int(np.searchsorted(np.cumsum(corpus.lengths[order]), words, side="right")))
    return corpus.take(np.sort(order[:n]).tolist())


METHODS = (Method("ls", "largest source", build, plan, uses_outside_languages=True),)
