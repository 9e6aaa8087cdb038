"""A language with nothing but text: a place for it in a trained model.

Its features are centred on its own text. Its vector's prior is centred among those of the model's languages by how
similar it is to each of them, exactly as training would have placed it had its text been in the data folder; its
posterior is that prior, with the width of the seen languages (`FactorizedHeads.language_scales`). No other language
moves, and no weight changes.
"""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from crossfill.adaptation.heads import adapted_cells, with_adapted, without_adapted
from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus
from crossfill.methods.registry import build_heads, find_method
from crossfill.model import HeadSource, Model


def add_language(model: Model, config: Config, language: str, text: Corpus) -> Model:
    """The model with one more language, of which there is only unlabelled text; its tasks and weights are shared."""
    if language in model.inventory.languages:
        raise DataError(f"expected a language that the model does not know, got '{language}', which it tags already")
    if not text.n_words:
        raise DataError(f"{language}: expected some text of the language, got none")
    adapted, base = adapted_cells(model), without_adapted(model)
    before = base.inventory
    inventory = replace(before, languages=(*before.languages, language), newcomers=before.newcomers | {language})
    encoder = _encoder(base.encoder, language, text)
    method = find_method(config.method)
    heads = build_heads(config, inventory, base.seen, encoder.n_features)
    weight = next(base.heads.parameters())
    _grow(heads.to(weight.device, weight.dtype), base.heads.state_dict())
    method.add_language(heads, placed_languages(base), language, encoder, config)
    return with_adapted(Model(encoder, heads, inventory, base.seen, base.hidden).train(model.training), adapted)


def placed_languages(model: Model) -> list[str]:
    """The languages that place others: all but those without a corpus, whose vectors no seen cell has moved."""
    newcomers = model.inventory.newcomers
    return [language for language in model.inventory.languages if language not in newcomers]


def _encoder(encoder: Encoder, language: str, text: Corpus) -> Encoder:
    """The encoder, with the mean features of the new language if it centres them."""
    if not isinstance(encoder, FrozenEncoder):
        return encoder
    return encoder.with_language(language, text)


def _grow(heads: HeadSource, trained: Mapping[str, Tensor]) -> None:
    """Copy trained weights into heads with more languages, whose rows come last; new rows stay as they were built."""
    own = heads.state_dict()
    with torch.no_grad():
        for name, tensor in trained.items():
            part = tuple(slice(n) for n in tensor.shape)
            own[name][part] = tensor
    heads.load_state_dict(own)
