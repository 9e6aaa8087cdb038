"""The methods by name: every file of this folder that has `METHODS`. A new one is a file with a `HeadSource`."""

import pkgutil
from collections.abc import Collection
from functools import cache
from importlib import import_module
from pathlib import Path

import torch

from crossfill import baselines, checkpoint
from crossfill.baselines.factorized import anchor_priors
from crossfill.baselines.method import Method, Plan, SourcedHeads
from crossfill.config import Config, override
from crossfill.encoders.base import Encoder
from crossfill.encoders.compact import CompactEncoder
from crossfill.errors import ConfigError, unknown
from crossfill.grid import Cell, Grid, Inventory
from crossfill.model import FactorizedHeads, Model


@cache
def methods() -> dict[str, Method]:
    """All methods by name, sorted."""
    found: dict[str, Method] = {}
    for module in pkgutil.iter_modules(baselines.__path__, f"{baselines.__name__}."):
        for method in getattr(import_module(module.name), "METHODS", ()):
            found[method.name] = method
    return dict(sorted(found.items()))


def find_method(name: str) -> Method:
    """The method of this name."""
    if name not in methods():
        raise ConfigError(unknown("method", name, methods()))
    return methods()[name]


def plan_training(grid: Grid, seen: Collection[Cell], config: Config) -> Plan:
    """What the config's method trains on, given the cells that may."""
    return find_method(config.method).plan(grid, frozenset(seen), config)


def build_model(config: Config, inventory: Inventory, seen: Collection[Cell], encoder: Encoder | None = None) -> Model:
    """A new model of the config's method, the same for the same seed, over its encoder or the one given."""
    method = find_method(config.method)
    torch.manual_seed(config.training.seed)
    for cell in seen:
        inventory.check(cell)
    base = encoder or build_encoder(config, inventory)
    return Model(base, method.build(inventory, seen, base.n_features, config), inventory, seen)


def as_method(model: Model, config: Config, name: str) -> tuple[Model, Config]:
    """A trained model as another method that shares its training and encoder: ns as bea, jm as jm-dropout."""
    wanted, trained = find_method(name), find_method(config.method)
    if (wanted.trained_as or wanted.name) != (trained.trained_as or trained.name):
        kin = [m.name for m in methods().values() if (m.trained_as or m.name) == (trained.trained_as or trained.name)]
        raise ConfigError(f"expected a method that trains as {config.method} does: {', '.join(kin)}; got '{name}'")
    changed = override(config, [f"method={name}"])
    heads = wanted.build(model.inventory, model.seen, model.encoder.n_features, changed)
    weight = next(model.heads.parameters())
    heads.to(weight.device, weight.dtype).load_state_dict(model.heads.state_dict())
    return Model(model.encoder, heads, model.inventory, model.seen).train(model.training), changed


def build_encoder(config: Config, inventory: Inventory, cache: Path | bool = True, quiet: bool = True) -> Encoder:
    """The encoder that the config names; `cache` is the folder for its features, or whether to use the default one."""
    if config.encoder.name == "compact":
        return CompactEncoder(config.encoder)
    if config.encoder.pretrained.mode == "frozen":
        from crossfill.encoders.frozen import FrozenEncoder

        return FrozenEncoder(config.encoder, inventory.languages, cache, quiet)
    from crossfill.encoders.finetuned import FinetunedEncoder

    return FinetunedEncoder(config.encoder, cache, quiet)


def load_model(folder: Path) -> tuple[Model, Config]:
    """The model in a folder, ready to predict, and its config."""
    config, inventory, seen = checkpoint.read_description(folder)
    model = build_model(config, inventory, seen)
    path = folder / checkpoint.WEIGHTS
    checkpoint.load_weights(model, checkpoint.read_tensors(path)[0], path)
    return model.eval(), config


def follow_plan(model: Model, plan: Plan, config: Config) -> None:
    """Tell the heads what is settled before training: which language serves which cell, where priors are centred."""
    if isinstance(model.heads, SourcedHeads):
        model.heads.serve(plan.sources)
    if isinstance(model.heads, FactorizedHeads):
        anchor_priors(model.heads, model.encoder, config)
