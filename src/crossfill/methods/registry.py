"""Registry of methods, collected from `METHODS` in every module of this package; to add one, see docs/extend.md."""

import pkgutil
from collections.abc import Collection
from functools import cache
from importlib import import_module

import torch

from crossfill import methods
from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.encoders.build import build_encoder
from crossfill.errors import ConfigError, unknown
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.method import Method
from crossfill.model import HeadSource, Model, hidden_layers


@cache
def all_methods() -> dict[str, Method]:
    """All methods by name, sorted."""
    found: dict[str, Method] = {}
    for module in pkgutil.walk_packages(methods.__path__, f"{methods.__name__}."):
        for method in getattr(import_module(module.name), "METHODS", ()):
            found[method.name] = method
    return dict(sorted(found.items()))


def find_method(name: str) -> Method:
    """The method of this name."""
    if name not in all_methods():
        raise ConfigError(unknown("method", name, all_methods()))
    return all_methods()[name]


def build_model(config: Config, inventory: Inventory, seen: Collection[Cell], encoder: Encoder | None = None) -> Model:
    """A new model of the config's method, initialised from its seed, over the encoder given or else the config's."""
    find_method(config.method)
    torch.manual_seed(config.training.seed)
    for cell in seen:
        inventory.check(cell)
    base = encoder or build_encoder(config, inventory.languages)
    hidden = hidden_layers(inventory, base.n_features, config.heads.hidden)
    return Model(base, build_heads(config, inventory, seen, base.n_features), inventory, seen, hidden)


def build_heads(config: Config, inventory: Inventory, seen: Collection[Cell], n_features: int) -> HeadSource:
    """Untrained heads of the config's method, over an encoder's features or over the last hidden layer."""
    width = config.heads.hidden[-1] if config.heads.hidden else n_features
    return find_method(config.method).build(inventory, seen, width, config)


def as_method(model: Model, config: Config, name: str) -> tuple[Model, Config]:
    """Turn a trained model into another method with the same training, over the same encoder, such as ns into bea."""
    wanted, trained = find_method(name), find_method(config.method)
    if wanted.training != trained.training:
        kin = [method.name for method in all_methods().values() if method.training == trained.training]
        raise ConfigError(f"expected a method that trains as {config.method} does: {', '.join(kin)}; got '{name}'")
    changed = config.change({"method": name})
    heads = build_heads(changed, model.inventory, model.seen, model.encoder.n_features)
    weight = next(model.heads.parameters())
    heads.to(weight.device, weight.dtype).load_state_dict(model.heads.state_dict())
    return Model(model.encoder, heads, model.inventory, model.seen, model.hidden).train(model.training), changed
