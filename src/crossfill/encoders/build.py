"""Build the encoder that a config names."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from crossfill.config import Config, SentencePooling
from crossfill.encoders.base import Encoder
from crossfill.encoders.compact import CompactEncoder
from crossfill.errors import EncoderError

if TYPE_CHECKING:
    from crossfill.encoders.huggingface import Source


def build_encoder(
    config: Config,
    languages: Sequence[str],
    cache: Path | bool = True,
    quiet: bool = True,
    weights: bool = True,
    source: "Source | None" = None,
) -> Encoder:
    """Build the encoder that the config names, reproducibly for a given seed.

    `cache` is the folder for its features, or whether to use the default one. Without `weights`, a trainable encoder is
    built without pretrained weights, for those of a trained model to be loaded into. `source` is the pretrained model,
    if it was found before.
    """
    torch.manual_seed(config.training.seed)
    if config.encoder.surface and (config.encoder.name == "compact" or config.encoder.pretrained.mode != "frozen"):
        raise EncoderError(
            "encoder.surface: expected a frozen pretrained encoder, got one that trains and learns these itself; "
            "set encoder.pretrained.mode=frozen or encoder.surface=false"
        )
    if config.encoder.name == "compact":
        encoder: Encoder = CompactEncoder(config.encoder)
    elif config.encoder.pretrained.mode == "frozen":
        from crossfill.encoders.frozen import FrozenEncoder

        encoder = FrozenEncoder(config.encoder, languages, cache, quiet, source)
    else:
        from crossfill.encoders.finetuned import FinetunedEncoder

        encoder = FinetunedEncoder(config.encoder, cache, quiet, weights, source)
    return with_pooling(encoder, config.encoder.sentences)


def with_pooling(encoder: Encoder, sentences: SentencePooling) -> Encoder:
    """Let the encoder make vectors of sentences this way from now on; attention starts as the mean."""
    encoder.sentences = sentences
    encoder.query = nn.Parameter(torch.zeros(encoder.n_features)) if sentences == "attention" else None
    return encoder
