"""The methods by name. A new one is a file with a `HeadSource` and a line here."""

from collections.abc import Callable, Collection
from pathlib import Path

import torch

from crossfill import checkpoint
from crossfill.baselines.joint import JointHeads
from crossfill.config import Config, MethodName
from crossfill.encoders.base import Encoder
from crossfill.encoders.compact import CompactEncoder
from crossfill.grid import Cell, Inventory
from crossfill.model import FactorizedHeads, HeadSource, Model

METHODS: dict[MethodName, Callable[[Inventory, Collection[Cell], int, Config], HeadSource]] = {
    "pf-lr": FactorizedHeads,
    "pf-d": FactorizedHeads,
    "jm": lambda inventory, _seen, n_features, _config: JointHeads(inventory, n_features),
}


def build_model(config: Config, inventory: Inventory, seen: Collection[Cell], encoder: Encoder | None = None) -> Model:
    """A new model of the config's method, the same for the same seed, over its encoder or the one given."""
    torch.manual_seed(config.training.seed)
    for cell in seen:
        inventory.check(cell)
    base = encoder or build_encoder(config, inventory)
    return Model(base, METHODS[config.method](inventory, seen, base.n_features, config), inventory, seen)


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
