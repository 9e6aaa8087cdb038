"""Alignment of words with the pieces that a tokenizer splits their text into.

A piece belongs to every word it shares a character with, so scripts without spaces are aligned even where one piece
covers two words. Pieces that represent only a space belong to no word, unless a word has no other piece.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

NO_PIECE = -1


class Text(NamedTuple):
    """A sentence as one string, and where its words start and end in it."""

    string: str
    starts: Int[np.ndarray, "words"]
    ends: Int[np.ndarray, "words"]


class PieceRange(NamedTuple):
    """The first and last piece of each word; both `NO_PIECE` for a word that has none."""

    first: Int[np.ndarray, "words"]
    last: Int[np.ndarray, "words"]


class Windows(NamedTuple):
    """Parts of a sentence's pieces that are encoded separately, and the window that each word is taken from."""

    starts: Int[np.ndarray, "windows"]
    ends: Int[np.ndarray, "windows"]
    window_of: Int[np.ndarray, "words"]


def rebuild(words: tuple[str, ...], spaces: tuple[bool, ...] = ()) -> Text:
    """Write the sentence as it was; without `spaces`, one space follows every word."""
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
    gaps = np.array(spaces, dtype=np.int64) if spaces else np.ones(len(words), dtype=np.int64)
    ends = np.cumsum(lengths + gaps) - gaps
    string = " ".join(words) if not spaces else "".join(w + " " * s for w, s in zip(words, spaces, strict=True))
    return Text(string, ends - lengths, ends)


def align(
    text: Text, starts: Int[np.ndarray, "pieces"], ends: Int[np.ndarray, "pieces"], blank: Bool[np.ndarray, "pieces"]
) -> PieceRange:
    """Find the pieces of each word, by the characters that both cover."""
    first, last = _overlaps(text, starts, ends, np.flatnonzero(~blank))
    if blank.any() and (first == NO_PIECE).any():
        any_first, any_last = _overlaps(text, starts, ends, np.arange(len(starts)))
        missing = first == NO_PIECE
        first, last = np.where(missing, any_first, first), np.where(missing, any_last, last)
    return PieceRange(first, last)


def windows(span: PieceRange, n_pieces: int, capacity: int, overlap: int) -> Windows:
    """Cut pieces into windows of `capacity` that share `overlap`; each word is taken from where it has most context.

    A word that is in no such window completely gets a window around it; of a word that is longer than a window, only
    the first `capacity` pieces are used.
    """
    if n_pieces <= capacity:
        return Windows(np.array([0]), np.array([n_pieces]), np.zeros(len(span.first), dtype=np.int64))
    last_start = n_pieces - capacity
    starts = np.append(np.arange(0, last_start, capacity - overlap), last_start)
    before = span.first[:, None] - starts  # words × windows: pieces of context
    after = starts + capacity - 1 - span.last[:, None]
    context = np.minimum(
        np.where((starts == 0) & (before >= 0), n_pieces, before),
        np.where((starts == last_start) & (after >= 0), n_pieces, after),
    )
    window_of = context.argmax(axis=1)
    whole = context.max(axis=1) >= 0
    extra = []
    for word in np.flatnonzero(~whole & (span.first != NO_PIECE)):
        length = min(int(span.last[word] - span.first[word]) + 1, capacity)
        window_of[word] = len(starts) + len(extra)
        extra.append(min(max(0, int(span.first[word]) - (capacity - length) // 2), last_start))
    starts = np.append(starts, np.array(extra, dtype=np.int64))
    return Windows(starts, starts + capacity, window_of)


def _overlaps(
    text: Text, starts: Int[np.ndarray, "pieces"], ends: Int[np.ndarray, "pieces"], pieces: Int[np.ndarray, "chosen"]
) -> tuple[Int[np.ndarray, "words"], Int[np.ndarray, "words"]]:
    if not len(pieces):
        nothing = np.full(len(text.starts), NO_PIECE)
        return nothing, nothing
    first = np.searchsorted(np.maximum.accumulate(ends[pieces]), text.starts, side="right")
    last = np.searchsorted(np.maximum.accumulate(starts[pieces]), text.ends, side="left") - 1
    overlaps = (first <= last) & (text.starts < text.ends)
    places = np.append(pieces, NO_PIECE)  # its last element stands for words that overlap none
    return places[np.where(overlaps, first, -1)], places[np.where(overlaps, last, -1)]
