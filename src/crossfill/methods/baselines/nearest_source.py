"""NS, nearest source: an unseen cell is labelled by the head of the most similar seen language.

WS, weighted sources, takes the mean of the heads of all seen languages, weighted by similarity: between NS and BEA, in
which all languages vote.
"""

from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np

from crossfill.config import Config, SourcesConfig
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.grid.partition import Similarity
from crossfill.grid.typology import load_typology, trigram_similarity
from crossfill.methods.baselines.language_heads import LanguageHeads, prepare
from crossfill.methods.method import Method, Plan

TIE = 1e-9
"""Similarities that differ by less are ties, broken by more training words, then alphabetically."""
POWER = 4.0
"""Exponent of the similarities that weigh heads in WS."""


def build(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> LanguageHeads:
    """Build a head per seen cell."""
    return LanguageHeads(inventory, seen, n_features)


def build_weighted(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> LanguageHeads:
    """Build a head per seen cell, with weights by similarity."""
    return LanguageHeads(inventory, seen, n_features, power=POWER)


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
    """The source with the highest similarity; None if no similarity is known (NaN)."""
    known = {source: value for source, value in similarities.items() if not np.isnan(value)}
    if not known:
        return None
    best = max(known.values())
    tied = [source for source, value in known.items() if value >= best - TIE]
    return min(tied, key=lambda source: (-words[source], source))


def similarity_choices(grid: Grid, seen: frozenset[Cell], config: SourcesConfig) -> dict[str, Similarity]:
    """Similarities to try in order: the one in the config, then URIEL's for languages that the first lacks."""
    typology = load_typology(config.vectors)
    choices: dict[str, Similarity] = {"the typological vectors": typology.similarity}
    if config.similarity == "family":
        choices = {"the family vectors": lambda a, b: typology.similarity(a, b, ("fam",))} | choices
    if config.similarity == "pos-trigrams":
        trigrams = {cell.language: trigram_counts(grid, cell) for cell in seen if cell.task == "pos"}
        choices = {"the seen POS trigrams": trigram_similarity(trigrams)} | choices
    return choices


def trigram_counts(grid: Grid, cell: Cell) -> Counter[tuple[str, str, str]]:
    """Counts of label trigrams in a cell's training data."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for sentence in grid.training(cell):
        counts.update(zip(sentence.labels, sentence.labels[1:], sentence.labels[2:], strict=False))
    return counts


METHODS = (
    Method("ns", "nearest source", build, plan, prepare, needs_typology=True),
    Method("ws", "weighted sources", build_weighted, plan, prepare, needs_typology=True, trained_as="ns"),
)
