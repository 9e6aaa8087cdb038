"""Build the encoder that a config names."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from crossfill.config import Config, SentencePooling
from crossfill.encoders.base import Encoder
from crossfill.encoders.compact import CompactEncoder
from crossfill.errors import EncoderError


def build_encoder(
    config: Config, languages: Sequence[str], cache: Path | bool = True, quiet: bool = True, weights: bool = True
) -> Encoder:
    """Build the encoder that the config names, reproducibly for a given seed.

    `cache` is the folder for its features, or whether to use the default one. Without `weights`, a trainable encoder is
    built without pretrained weights, for those of a trained model to be loaded into.
    """
    torch.manual_seed(config.training.seed)
    if config.encoder.surface and (config.encoder.name == "compact" or config.encoder.pretrained.mode != "frozen"):
        raise EncoderError(
            "encoder.surface: expected a frozen pretrained encoder, got one that trains and learns these itself; "
            "set encoder.pretrained.mode=frozen or encoder.surface=false"
        )
    found = _built(config, languages, cache, quiet, weights)
    return with_pooling(found, config.encoder.sentences)


def with_pooling(encoder: Encoder, sentences: SentencePooling) -> Encoder:
    """The encoder, which from now on makes vectors of sentences this way; attention starts as the mean."""
    encoder.sentences = sentences
    encoder.query = nn.Parameter(torch.zeros(encoder.n_features)) if sentences == "attention" else None
    return encoder


def _built(config: Config, languages: Sequence[str], cache: Path | bool, quiet: bool, weights: bool) -> Encoder:
    if config.encoder.name == "compact":
        return CompactEncoder(config.encoder)
    if config.encoder.pretrained.mode == "frozen":
        from crossfill.encoders.frozen import FrozenEncoder

        return FrozenEncoder(config.encoder, languages, cache, quiet)
    from crossfill.encoders.finetuned import FinetunedEncoder

    return FinetunedEncoder(config.encoder, cache, quiet, weights)
