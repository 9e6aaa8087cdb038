"""Words are data: a word that spells a special token of a tokenizer (`[SEP]`, `<pad>`) is split like any other word."""

import json
import re
import secrets
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


def special_tokens(tokenizer: "PreTrainedTokenizerBase") -> dict[str, int]:
    """All special tokens and their ids, but not the bytes that stand for unknown characters: those are text."""
    added = tokenizer.added_tokens_decoder
    found = {str(token): i for i, token in added.items() if token.special}
    found |= dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
    return {token: i for token, i in found.items() if not _BYTE.fullmatch(token)}


def reading_all_as_text(tokenizer: "PreTrainedTokenizerBase") -> "Tokenizer":
    """A copy of the tokenizer in which no text spells a special token.

    Every special token keeps its id under a random name. (`split_special_tokens` of transformers is not enough: a
    Unigram model has `</s>` among its pieces, and finds it in the text by itself.)
    """
    from tokenizers import Tokenizer

    backend = json.loads(_backend(tokenizer).to_str())
    names = {token: f"\ufdd0{secrets.token_hex(16)}" for token in special_tokens(tokenizer)}
    model = backend["model"]
    merges = (merge.split(" ") if isinstance(merge, str) else merge for merge in model.get("merges", ()))
    merged = {piece for left, right in merges for piece in (left, right, left + right)}
    names = {token: name for token, name in names.items() if token not in merged}  # merges name pieces: they stay
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = {names.get(piece, piece): i for piece, i in vocabulary.items()}
    else:  # Unigram: pieces with scores
        model["vocab"] = [[names.get(piece, piece), score] for piece, score in vocabulary]
    if model.get("unk_token") is not None:
        model["unk_token"] = names.get(model["unk_token"], model["unk_token"])
    for token in backend["added_tokens"]:
        token["content"] = names.get(token["content"], token["content"])
    copy = Tokenizer.from_str(json.dumps(backend))
    copy.no_truncation()
    copy.no_padding()
    return copy


def unknown_piece(tokenizer: "PreTrainedTokenizerBase") -> str | None:
    """The piece that stands for what the tokenizer cannot spell, if it has one."""
    found: Any = getattr(_backend(tokenizer).model, "unk_token", tokenizer.unk_token)
    return found


def _backend(tokenizer: "PreTrainedTokenizerBase") -> Any:
    return tokenizer.backend_tokenizer
