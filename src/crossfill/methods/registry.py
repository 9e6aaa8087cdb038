"""What a method is, and all methods, collected from every module of this package; to add one, see docs/extend.md."""

import pkgutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from crossfill import methods
from crossfill.config import Config
from crossfill.encoders.base import Encoder, build_encoder
from crossfill.errors import ConfigError, unknown
from crossfill.grid.cells import Cell, Grid, Inventory
from crossfill.model import HeadSource, Model, hidden_layers


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


@dataclass(frozen=True)
class Method:
    """A method, with all that the rest of the library needs to know about it."""

    name: str
    title: str
    build: Callable[[Inventory, Collection[Cell], int, Config], HeadSource]
    """Builds untrained heads from the inventory, the seen cells, the number of features and the config."""
    plan: Callable[[Grid, frozenset[Cell], Config], Plan] = lambda grid, seen, _config: Plan(grid, seen, seen)
    """Says what to train on; by default, all training data of the seen cells and nothing else."""
    prepare: Callable[[Model, Plan, Config], None] = lambda *_: None
    """Completes the heads before training with what is then fixed: source languages, centres of priors."""
    add_language: Callable[[HeadSource, Sequence[str], str, Encoder, Config], None] = lambda *_: None
    """Places a language that joins after training among those that have corpora: languages, then the newcomer."""
    language_vectors: Callable[[Model], LanguageVectors] | None = None
    """Returns the posteriors of language vectors; None for methods without such vectors."""
    needs_typology: bool = False
    """Whether it requires typological vectors."""
    uses_outside_languages: bool = False
    """Whether it may train on languages outside the comparison (`data.source_only`)."""
    votes: bool = False
    """Whether a cell has several heads, which vote."""
    trained_as: str = ""
    """The method whose training run this one reuses; empty if it has its own."""

    @property
    def training(self) -> str:
        """The name of the method whose training run this one uses."""
        return self.trained_as or self.name


@cache
def all_methods() -> dict[str, Method]:
    """Collect all methods by name, sorted."""
    modules = [import_module(module.name) for module in pkgutil.walk_packages(methods.__path__, f"{methods.__name__}.")]
    every = {method.name: method for module in modules for method in getattr(module, "METHODS", ())}
    return dict(sorted(every.items()))


def find_method(name: str) -> Method:
    """Find the method of this name."""
    if name not in all_methods():
        raise ConfigError(unknown("method", name, all_methods()))
    return all_methods()[name]


def build_model(config: Config, inventory: Inventory, seen: Collection[Cell], encoder: Encoder | None = None) -> Model:
    """Build a new model of the config's method, initialised from its seed, over this encoder or else the config's."""
    find_method(config.method)
    torch.manual_seed(config.training.seed)
    for cell in seen:
        inventory.check(cell)
    base = encoder or build_encoder(config, inventory.languages)
    hidden = hidden_layers(inventory, base.n_features, config.heads.hidden, config.heads.dropout)
    return Model(base, build_heads(config, inventory, seen, base.n_features), inventory, seen, hidden)


def build_heads(config: Config, inventory: Inventory, seen: Collection[Cell], n_features: int) -> HeadSource:
    """Build untrained heads of the config's method, over an encoder's features or over the last hidden layer."""
    width = config.heads.hidden[-1] if config.heads.hidden else n_features
    return find_method(config.method).build(inventory, seen, width, config)


def as_method(model: Model, config: Config, name: str) -> tuple[Model, Config]:
    """Turn a trained model into another method with the same training, over the same encoder, such as ns into bea."""
    if name == config.method:
        return model, config
    training = find_method(config.method).training
    if find_method(name).training != training:
        kin = [method.name for method in all_methods().values() if method.training == training]
        raise ConfigError(f"expected a method that trains as {config.method} does: {', '.join(kin)}; got '{name}'")
    changed = config.change({"method": name})
    heads = build_heads(changed, model.inventory, model.seen, model.encoder.n_features)
    weight = next(model.heads.parameters())
    heads.to(weight.device, weight.dtype).load_state_dict(model.heads.state_dict())
    return Model(model.encoder, heads, model.inventory, model.seen, model.hidden).train(model.training), changed
