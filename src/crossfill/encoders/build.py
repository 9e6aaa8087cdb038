"""The encoder that a config names."""

from collections.abc import Sequence
from pathlib import Path

import torch

from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.encoders.compact import CompactEncoder


def build_encoder(
    config: Config, languages: Sequence[str], cache: Path | bool = True, quiet: bool = True, weights: bool = True
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

        return FrozenEncoder(config.encoder, languages, cache, quiet)
    from crossfill.encoders.finetuned import FinetunedEncoder

    return FinetunedEncoder(config.encoder, cache, quiet, weights)
