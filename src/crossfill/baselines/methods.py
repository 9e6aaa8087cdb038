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
from crossfill.errors import CheckpointError, ConfigError, unknown
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


def build_encoder(
    config: Config, inventory: Inventory, cache: Path | bool = True, quiet: bool = True, weights: bool = True
) -> Encoder:
    """The encoder that the config names, the same for the same seed.

    `cache` is the folder for its features, or whether to use the default one. Without `weights` an encoder that trains
    is made without pretrained ones, to be filled from a trained model.
    """
    torch.manual_seed(config.training.seed)
    if config.encoder.name == "compact":
        return CompactEncoder(config.encoder)
    if config.encoder.pretrained.mode == "frozen":
        from crossfill.encoders.frozen import FrozenEncoder

        return FrozenEncoder(config.encoder, inventory.languages, cache, quiet)
    from crossfill.encoders.finetuned import FinetunedEncoder

    return FinetunedEncoder(config.encoder, cache, quiet, weights)


def load_model(
    folder: Path, encoder: str | None = None, cache: Path | bool = True, quiet: bool = True
) -> tuple[Model, Config]:
    """The model in a folder, ready to predict, and its config.

    The encoder is the one named, else the one in the folder, else the one it was trained over. The folder may come
    from anywhere: the model is first built as an outline without memory, and all shapes compared with those on file.
    """
    config, inventory, seen = checkpoint.read_description(folder)
    path = folder / checkpoint.WEIGHTS
    shapes = checkpoint.read_shapes(path)
    carried = folder / checkpoint.ENCODER
    name = encoder or (str(carried) if carried.is_dir() else config.encoder.name)
    named = config.model_copy(update={"encoder": config.encoder.model_copy(update={"name": name})})
    _check_counts(named, inventory, len(shapes), folder)
    frozen = name != "compact" and config.encoder.pretrained.mode == "frozen"
    base = build_encoder(named, inventory, cache, quiet) if frozen else None

    def build() -> Model:
        own = base or build_encoder(named, inventory, cache, quiet, weights=False)
        return build_model(named, inventory, seen, own)

    try:
        with torch.device("meta"):
            outline = build()
    except (RuntimeError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise CheckpointError(f"{folder}: expected settings of a model that fits its weights; {reason}") from None
    checkpoint.check_shapes(outline, shapes, path)
    model = build()
    tensors = checkpoint.read_tensors(path)[0]
    checkpoint.check_finite(tensors, path)
    checkpoint.load_weights(model, tensors, path)
    return model.eval(), config


def follow_plan(model: Model, plan: Plan, config: Config) -> None:
    """Tell the heads what is settled before training: which language serves which cell, where priors are centred."""
    if isinstance(model.heads, SourcedHeads):
        model.heads.serve(plan.sources)
    if isinstance(model.heads, FactorizedHeads):
        anchor_priors(model.heads, model.encoder, config)


def _check_counts(config: Config, inventory: Inventory, n_tensors: int, folder: Path) -> None:
    """Refuse a description of more parts than there are tensors, before any of them is made."""
    counts = {"tasks": len(inventory.tasks), "generator.hidden": len(config.generator.hidden)}
    if config.encoder.name == "compact":
        counts["encoder.layers"] = config.encoder.layers
    elif config.encoder.pretrained.mode != "frozen":
        from crossfill.encoders.huggingface import Source

        counts["layers of the encoder"] = Source.find(config.encoder.name, weights=False).n_layers
    for name, count in counts.items():
        if count > n_tensors:
            raise CheckpointError(f"{folder}: expected at most {n_tensors} {name}, one per tensor, got {count}")
