"""The definition of a method: how it builds heads, what it trains on, and what else it can do."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.model import HeadSource, Model

Build = Callable[[Inventory, Collection[Cell], int, Config], HeadSource]
"""Builds untrained heads from the inventory, the seen cells, the number of features and the config."""


@dataclass(frozen=True)
class Plan:
    """What a run of a method trains on."""

    grid: Grid
    """The data, reduced where the method requires it."""
    cells: frozenset[Cell]
    """The cells that are trained on, and whose dev data select the best step."""
    seen: frozenset[Cell]
    """The cells that count as seen in results: those given as seen, and those trained on."""
    sources: Mapping[Cell, str] = field(default_factory=dict)
    """The source language whose head labels a cell, for methods that choose one."""
    notes: tuple[str, ...] = ()
    """Messages to the user about these choices, such as fallbacks and shortfalls."""


class LanguageVectors(NamedTuple):
    """Gaussian posteriors N(m, diag(δ²) + B Bᵀ) of language vectors, one for each language of the inventory."""

    mean: Float[Tensor, "languages latent"]
    variance: Float[Tensor, "languages latent"]
    factor: Float[Tensor, "languages latent rank"]
    """B, which has no columns if the covariance is diagonal."""


def train_on_seen(grid: Grid, seen: frozenset[Cell], config: Config) -> Plan:
    """Train on all training data of the seen cells, and nothing else."""
    return Plan(grid, seen, seen)


def prepare_nothing(model: Model, plan: Plan, config: Config) -> None:
    """Do nothing: for methods whose heads are complete once built."""


def add_nothing(heads: HeadSource, languages: Sequence[str], newcomer: str, encoder: Encoder, config: Config) -> None:
    """Do nothing: for methods whose heads do not depend on where a language lies among others."""


@dataclass(frozen=True)
class Method:
    """A method, with all that the rest of the library needs to know about it."""

    name: str
    title: str
    build: Build
    plan: Callable[[Grid, frozenset[Cell], Config], Plan] = train_on_seen
    prepare: Callable[[Model, Plan, Config], None] = prepare_nothing
    """Completes the heads before training with what is then fixed: source languages, centres of priors."""
    add_language: Callable[[HeadSource, Sequence[str], str, Encoder, Config], None] = add_nothing
    """Places a language that joins after training among those that have corpora: languages, then the newcomer."""
    language_vectors: Callable[[Model], LanguageVectors] | None = None
    """Returns the posteriors of language vectors; None for methods without such vectors."""
    needs_typology: bool = False
    """Whether it requires typological vectors."""
    uses_outside_languages: bool = False
    """Whether it may train on languages outside the comparison (`data.source_only`)."""
    trained_as: str = ""
    """The method whose training run this one reuses; empty if it has its own."""

    @property
    def training(self) -> str:
        """The name of the method whose training run this one uses."""
        return self.trained_as or self.name
