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
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus
from crossfill.methods.registry import build_heads, find_method
from crossfill.model import HeadSource, Model


def add_language(model: Model, config: Config, language: str, text: Corpus) -> Model:
    """Return the model with one more language, of which there is only text; its tasks and weights are shared."""
    if language in model.inventory.languages:
        raise DataError(f"expected a language that the model does not know, got '{language}', which it tags already")
    if not text.n_words:
        raise DataError(f"{language}: expected some text of the language, got none")
    adapted, base = adapted_cells(model), without_adapted(model)
    before = base.inventory
    inventory = replace(before, languages=(*before.languages, language), newcomers=before.newcomers | {language})
    encoder = base.encoder.with_language(language, text)
    heads = build_heads(config, inventory, base.seen, encoder.n_features)
    weight = next(base.heads.parameters())
    _grow(heads.to(weight.device, weight.dtype), base.heads.state_dict())
    # languages without a corpus place no others: no seen cell has moved their vectors
    placed = [name for name in before.languages if name not in before.newcomers]
    find_method(config.method).add_language(heads, placed, language, encoder, config)
    return with_adapted(Model(encoder, heads, inventory, base.seen, base.hidden).train(model.training), adapted)


def _grow(heads: HeadSource, trained: Mapping[str, Tensor]) -> None:
    """Copy trained weights into heads with more languages, whose rows come last; new rows stay as they were built."""
    grown = heads.state_dict()
    with torch.no_grad():
        for name, tensor in trained.items():
            part = tuple(slice(n) for n in tensor.shape)
            grown[name][part] = tensor
    heads.load_state_dict(grown)
