"""The cues of a word: numbers that say which word it is, where its features say what it is like.

A frequent word of a handful of sentences comes again in other text, mostly with the same label, and its features vary
with its neighbours. So do the first and last letters of words, the shapes of words, and the words next to a word. Only
heads of adapted cells read cues (`crossfill.adaptation`).
"""

import zlib
from collections.abc import Sequence
from enum import IntEnum
from itertools import groupby
from unicodedata import category

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from crossfill.grid.sentence import Column, Corpus


class Cue(IntEnum):
    """A kind of cue."""

    WORD = 0
    """The word itself, upper and lower case alike."""
    ENDING = 1
    """Its last one, two or three letters, if it has more."""
    BEGINNING = 2
    """Its first one, two or three letters, if it has more."""
    SHAPE = 3
    """Where it has capitals, digits and punctuation."""
    NEIGHBOUR = 4
    """The word before it, and the word after it; where there is none, that."""


LETTERS = (1, 2, 3)
"""Numbers of last and of first letters."""
KINDS = (Cue.WORD, *(Cue.ENDING,) * len(LETTERS), *(Cue.BEGINNING,) * len(LETTERS), Cue.SHAPE, *(Cue.NEIGHBOUR,) * 2)
"""The kind of cue in each column."""
NONE = -1
"""The number where a word has no such cue."""
LONGEST_SHAPE = 6
_SIZE = 2**24
"""Numbers of each kind of cue: so many that two cues hardly ever share one."""


def cues_of(text: Corpus) -> Int[Tensor, "words cues"]:
    """Return the cues of every word of a text."""
    return cue_numbers(text.words, np.diff(text.offsets))


def cue_numbers(words: Column, lengths: Int[np.ndarray, "sentences"]) -> Int[Tensor, "words cues"]:
    """Return the cues of words in sentences of these lengths."""
    forms, of_word = [word.lower() for word in words.vocabulary], words.codes
    columns = [_numbers(Cue.WORD, forms)]
    for kind in (Cue.ENDING, Cue.BEGINNING):
        for n in LETTERS:
            parts = [form[-n:] if kind is Cue.ENDING else form[:n] for form in forms]
            longer = np.array([len(form) > n for form in forms], dtype=bool)
            columns.append(np.where(longer, _numbers(kind, parts), NONE))
    columns.append(_numbers(Cue.SHAPE, [shape(word) for word in words.vocabulary]))
    by_form = np.stack(columns, 1)[of_word]
    starts = (np.cumsum(lengths) - lengths)[lengths > 0]
    ends = np.append(starts[1:], len(of_word))[: len(starts)] - 1
    before, after = (_numbers(Cue.NEIGHBOUR, [side, *(f"{side} {form}" for form in forms)]) for side in "<>")
    previous, following = np.roll(of_word, 1) + 1, np.roll(of_word, -1) + 1
    previous[starts] = following[ends] = 0
    return torch.from_numpy(np.column_stack([by_form, before[previous], after[following]]))


def shape(word: str) -> str:
    """Return the kinds of characters of a word, each run of them as one: "Mc-Coy2" is "Xx-Xxd"."""
    runs = "".join(kind for kind, _ in groupby(map(_kind_of_character, word)))
    return runs[:LONGEST_SHAPE]


def _kind_of_character(character: str) -> str:
    kind = category(character)
    return "X" if kind in ("Lu", "Lt") else {"N": "d", "P": "-", "S": "-"}.get(kind[0], "x")


def _numbers(kind: Cue, texts: Sequence[str]) -> Int[np.ndarray, "texts"]:
    hashes = [zlib.crc32(text.encode("utf-8", "surrogatepass")) % _SIZE + kind * _SIZE for text in texts]
    return np.array(hashes, dtype=np.int64)


def kinds(cues: Int[Tensor, "known"]) -> Int[Tensor, "known"]:
    """Return the kind of each cue."""
    return cues // _SIZE
