"""WS, weighted sources: the head of an unseen cell is the mean of all seen languages' heads, weighted by similarity.

Between NS, which takes the head of the most similar language alone, and BEA, in which all languages vote.
"""

from collections.abc import Collection

from crossfill.config import Config
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.baselines.language_heads import LanguageHeads, prepare
from crossfill.methods.baselines.nearest_source import plan
from crossfill.methods.method import Method


def build(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> LanguageHeads:
    """A head per seen cell, and weights by similarity to the power of `sources.power`."""
    return LanguageHeads(inventory, seen, n_features, power=config.sources.power)


METHODS = (Method("ws", "weighted sources", build, plan, prepare, needs_typology=True, trained_as="ns"),)
