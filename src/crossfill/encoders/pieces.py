"""A corpus as pieces of a tokenizer: tokenized once, then any of its sentences can be taken as tensors.

Words are data: a word that spells a special token of a tokenizer (`[SEP]`, `<pad>`) is split like any other word.
"""

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from crossfill.encoders.alignment import NO_PIECE, align, rebuild, windows
from crossfill.encoders.base import Inputs, ranges
from crossfill.encoders.hub import loading
from crossfill.errors import EncoderError
from crossfill.grid.sentence import Corpus

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BLANK = "▁Ġ \u00a0\t\n"
"""Characters of pieces that represent only white space, as spelt by SentencePiece and byte-level BPE."""
MOST_PADDING = 0.08
"""Largest share of padding in a batch; beyond it, the next batch begins."""
ENOUGH_PIECES = 512
"""Pieces that keep a core busy: a batch that has them ends where the length changes, and so needs no padding."""
_SENTENCES_AT_ONCE = 4096
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class PieceInputs(Inputs):
    """The pieces of a corpus, window by window, and each word's first and last piece, counted within its sentence."""

    ids: Int[Tensor, "pieces"]
    pieces_per_window: Int[Tensor, "windows"]
    windows_per_sentence: Int[Tensor, "sentences"]
    pieces_per_sentence: Int[Tensor, "sentences"]
    first: Int[Tensor, "words"]
    last: Int[Tensor, "words"]
    lengths: Int[Tensor, "sentences"]

    def rows(self) -> dict[str, Int[Tensor, "sentences"] | None]:
        return {
            "ids": self.pieces_per_sentence,
            "pieces_per_window": self.windows_per_sentence,
            **dict.fromkeys(("first", "last"), self.lengths),
            **dict.fromkeys(("windows_per_sentence", "pieces_per_sentence", "lengths")),
        }

    def word_pieces(self) -> tuple[Int[Tensor, "words"], Int[Tensor, "words"]]:
        """Find the first and last piece of each word, as positions in `ids`; meaningless for words without pieces."""
        offsets = torch.repeat_interleave(_starts(self.pieces_per_sentence), self.lengths)
        return offsets + self.first.clamp(min=0), offsets + self.last.clamp(min=0)


@dataclass(frozen=True)
class Batch:
    """Windows that are encoded together."""

    ids: Int[Tensor, "windows longest"]
    mask: Int[Tensor, "windows longest"]
    pieces: Int[Tensor, "pieces"]
    """Positions of the batch's pieces in the inputs, window by window."""


def batches(inputs: PieceInputs, budget: int, pad: int, enough: int | None = None) -> Iterator[Batch]:
    """Batch all windows, sorted by length; a batch has at most `budget` pieces and a share `MOST_PADDING` of padding.

    A batch of `enough` pieces has windows of one length only, or ends before a shorter one would add to its padding.
    """
    lengths = inputs.pieces_per_window
    order = lengths.argsort(descending=True, stable=True)
    order = order[: int((lengths > 0).sum())]  # empty sentences have no pieces if there are no special tokens
    starts = _starts(lengths)
    for place, end in _runs(lengths[order].tolist(), budget, budget if enough is None else enough):
        longest, chosen = int(lengths[order[place]]), order[place:end]
        mask = torch.arange(longest) < lengths[chosen].unsqueeze(1)
        pieces = ranges(starts[chosen], lengths[chosen])
        ids = torch.full(mask.shape, pad, dtype=torch.long)
        ids[mask] = inputs.ids[pieces]
        yield Batch(ids, mask.long(), pieces)


class PieceCutter:
    """Splits corpora into the pieces of a tokenizer."""

    def __init__(self, tokenizer: Any, max_pieces: int, overlap: int) -> None:
        self.tokenizer, self.overlap = tokenizer, overlap
        vocabulary = tokenizer.get_vocab()
        self.blank = np.zeros(max(vocabulary.values(), default=-1) + 1, dtype=np.bool_)
        self.blank[[i for piece, i in vocabulary.items() if not piece.strip(BLANK)]] = True
        self.unknown = getattr(tokenizer.backend_tokenizer.model, "unk_token", tokenizer.unk_token)
        """The piece that stands for what the tokenizer cannot spell, if it has one."""
        self.special = np.zeros_like(self.blank)
        """Whether a piece is special: text never has such pieces, but for the one that stands for what is unknown."""
        self.special[[i for token, i in special_tokens(tokenizer).items() if token != self.unknown]] = True
        letter = self._encode(["a"], special=True)
        special, ids = letter["special_tokens_mask"][0], letter["input_ids"][0]
        n_before = special.index(0) if 0 in special else len(special)
        n_after = special[::-1].index(0) if 0 in special else 0
        self.before, self.after = ids[:n_before], ids[len(ids) - n_after :]
        self.capacity = max_pieces - n_before - n_after
        if self.capacity <= overlap:
            least = f"{overlap + n_before + n_after} (overlap and special tokens)"
            raise EncoderError(f"encoder.pretrained.max_pieces: expected more than {least}, got {max_pieces}; raise it")

    def cut(self, corpus: Corpus) -> PieceInputs:
        """Cut all sentences into pieces."""
        ids, window_sizes, n_windows, n_pieces, first, last = ([] for _ in range(6))
        for begin in range(0, len(corpus), _SENTENCES_AT_ONCE):
            sentences = list(corpus[begin : begin + _SENTENCES_AT_ONCE])
            texts = [rebuild(sentence.words, sentence.spaces) for sentence in sentences]
            encoded = self._encode([text.string for text in texts], special=False)
            for text, piece_ids, offsets in zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True):
                spells_unknown = self.unknown is not None and self.unknown in text.string
                if spells_unknown or self.special[np.array(piece_ids, dtype=np.int64)].any():
                    as_text = self._plain.encode(text.string, add_special_tokens=False)
                    piece_ids, offsets = as_text.ids, as_text.offsets
                covers = np.array(offsets, dtype=np.int64).reshape(-1, 2)
                span = align(text, covers[:, 0], covers[:, 1], self.blank[np.array(piece_ids, dtype=np.int64)])
                parts = windows(span, len(piece_ids), self.capacity, self.overlap)
                bounds = zip(parts.starts.tolist(), parts.ends.tolist(), strict=True)
                rows = [[*self.before, *piece_ids[start:end], *self.after] for start, end in bounds]
                sizes = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
                # a word's pieces, counted from the first piece of its sentence's first window
                shift = (np.cumsum(sizes) - sizes + len(self.before) - parts.starts)[parts.window_of]
                limit = parts.ends[parts.window_of] - 1
                first.append(np.where(span.first == NO_PIECE, NO_PIECE, span.first + shift))
                last.append(np.where(span.first == NO_PIECE, NO_PIECE, np.minimum(span.last, limit) + shift))
                ids += [np.array(row, dtype=np.int64) for row in rows]
                window_sizes.append(sizes)
                n_windows.append(len(rows))
                n_pieces.append(int(sizes.sum()))
        return PieceInputs(
            _joined(ids),
            _joined(window_sizes),
            torch.tensor(n_windows, dtype=torch.long),
            torch.tensor(n_pieces, dtype=torch.long),
            _joined(first),
            _joined(last),
            torch.from_numpy(corpus.lengths),
        )

    def _encode(self, texts: list[str], special: bool) -> dict[str, list[list[int]]]:
        options = {"padding": False, "truncation": False, "return_offsets_mapping": True, "verbose": False}
        with loading("expected a tokenizer that splits text into pieces"):
            return dict(
                self.tokenizer(texts, add_special_tokens=special, return_special_tokens_mask=special, **options)
            )

    @cached_property
    def _plain(self) -> "Tokenizer":
        return reading_all_as_text(self.tokenizer)  # made when the first text needs it: this takes seconds


def _runs(lengths: Sequence[int], budget: int, enough: int) -> Iterator[tuple[int, int]]:
    """Find the start and end of each batch in a list of decreasing lengths."""
    place = real = 0
    for i, length in enumerate(lengths):
        padded = (i - place + 1) * lengths[place]
        shorter = real >= enough and length < lengths[i - 1]
        if i > place and (shorter or padded > budget or real + length < (1 - MOST_PADDING) * padded):
            yield place, i
            place, real = i, 0
        real += length
    if lengths:
        yield place, len(lengths)


def _starts(counts: Int[Tensor, "n"]) -> Int[Tensor, "n"]:
    return counts.cumsum(0) - counts


def _joined(parts: Sequence[np.ndarray]) -> Int[Tensor, "n"]:
    return torch.from_numpy(np.concatenate(parts)) if parts else torch.zeros(0, dtype=torch.long)


def special_tokens(tokenizer: Any) -> dict[str, int]:
    """List all special tokens and their ids, but not the bytes that stand for unknown characters: those are text."""
    added = tokenizer.added_tokens_decoder
    tokens = {str(token): i for i, token in added.items() if token.special}
    tokens |= dict(zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True))
    return {token: i for token, i in tokens.items() if not _BYTE.fullmatch(token)}


def reading_all_as_text(tokenizer: Any) -> "Tokenizer":
    """Copy the tokenizer so that no text spells a special token.

    Every special token keeps its id under a random name. (`split_special_tokens` of transformers is not enough: a
    Unigram model has `</s>` among its pieces, and finds it in the text by itself.)
    """
    from tokenizers import Tokenizer

    backend = json.loads(tokenizer.backend_tokenizer.to_str())
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
