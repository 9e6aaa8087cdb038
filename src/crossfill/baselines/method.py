"""What a method is: how it makes heads, what it trains on, and whose head serves a cell without data."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from crossfill.config import Config
from crossfill.grid import Cell, Grid, Inventory
from crossfill.model import HeadSource

Build = Callable[[Inventory, Collection[Cell], int, Config], HeadSource]
"""From the inventory, the seen cells, the size of a word's vector and the config to the heads, not yet trained."""


@dataclass(frozen=True)
class Plan:
    """What a run of a method trains on."""

    grid: Grid
    """The data, cut where the method says so."""
    cells: frozenset[Cell]
    """The cells that train, and whose dev data select the best step."""
    seen: frozenset[Cell]
    """The cells that count as seen in results: those given as seen, and those that train."""
    sources: Mapping[Cell, str] = field(default_factory=dict)
    """The language whose head serves a cell, where the method picks one."""
    notes: tuple[str, ...] = ()
    """What a user should know of these choices: fallbacks, shortfalls."""


def train_on_seen(grid: Grid, seen: frozenset[Cell], config: Config) -> Plan:  # noqa: ARG001
    """All training data of the seen cells, and nothing else."""
    return Plan(grid, seen, seen)


class SourcedHeads(HeadSource, ABC):
    """Heads that serve cells of other languages than their own, as a plan says."""

    @abstractmethod
    def serve(self, sources: Mapping[Cell, str]) -> None:
        """Remember, with the weights, which language's head serves each cell."""


@dataclass(frozen=True)
class Method:
    """A method to compare."""

    name: str
    title: str
    build: Build
    plan: Callable[[Grid, frozenset[Cell], Config], Plan] = train_on_seen
    trained_as: str = ""
    """The method whose training this one shares, so that one run serves both; empty for its own."""
