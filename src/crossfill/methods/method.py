"""What a method is: how it makes heads, what it trains on, and what it can do besides."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from crossfill.config import Config
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.model import HeadSource, Model

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


class LanguageVectors(NamedTuple):
    """Gaussian posteriors N(m, diag(δ²) + B Bᵀ) of language vectors, one for each language of the inventory."""

    mean: Float[Tensor, "languages latent"]
    variance: Float[Tensor, "languages latent"]
    factor: Float[Tensor, "languages latent rank"]
    """B; without columns where the covariance is diagonal."""


def train_on_seen(grid: Grid, seen: frozenset[Cell], config: Config) -> Plan:  # noqa: ARG001
    """All training data of the seen cells, and nothing else."""
    return Plan(grid, seen, seen)


def settle_nothing(model: Model, plan: Plan, config: Config) -> None:
    """For methods whose heads are complete when they are built."""


def affine_operations(config: Config, n_features: int, n_labels: int) -> float:  # noqa: ARG001
    """A head that only has to be looked up."""
    return 2 * n_labels * (n_features + 1)


@dataclass(frozen=True)
class Method:
    """A method, and all that the rest of the library asks of it."""

    name: str
    title: str
    build: Build
    plan: Callable[[Grid, frozenset[Cell], Config], Plan] = train_on_seen
    settle: Callable[[Model, Plan, Config], None] = settle_nothing
    """Tells the heads what is fixed before training: which language serves which cell, where priors are centred."""
    language_vectors: Callable[[Model], LanguageVectors] | None = None
    """The posteriors of language vectors, where the method has such vectors."""
    head_operations: Callable[[Config, int, int], float] = affine_operations
    """Floating-point operations that make one head, from the config, the features and the labels of its task."""
    needs_typology: bool = False
    """Whether it cannot do without typological vectors."""
    uses_outside_languages: bool = False
    """Whether it may train on languages outside the comparison (`data.source_only`)."""
    trained_as: str = ""
    """The method whose training this one shares, so that one run serves both; empty for its own."""

    @property
    def training(self) -> str:
        """The name of the method whose training this is."""
        return self.trained_as or self.name
