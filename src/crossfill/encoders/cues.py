"""The cues of a word: numbers that say which word it is, where its features say what it is like.

They stand for its form, upper and lower case alike, for its last letters, and for the words before and after it: in
other text these come again, mostly with the same label. Only heads of adapted cells read them (`crossfill.adaptation`).
"""

import zlib
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from crossfill.grid.sentence import Column, Corpus


class Cue(IntEnum):
    """A kind of cue."""

    WORD = 0
    """The word itself."""
    ENDING = 1
    """Its last one, two or three letters, if it has more."""
    NEIGHBOUR = 2
    """The word before it, and the word after it."""


ENDINGS = (1, 2, 3)
"""Numbers of last letters."""
N_CUES = 1 + len(ENDINGS) + 2
"""Columns: the word, its endings, the word before it, the word after it."""
NONE = -1
"""The number where a word has no such cue."""
_FIRST = (0, 2**23, 2**23 + 2**22, 2**24)
"""Where the numbers of each kind of cue begin: there are so many that two cues hardly ever share one."""


def cues_of(text: Corpus) -> Int[Tensor, "words cues"]:
    """Return the cues of every word of a text."""
    return cue_numbers(text.words, np.diff(text.offsets))


def cue_numbers(words: Column, lengths: Int[np.ndarray, "sentences"]) -> Int[Tensor, "words cues"]:
    """Return the cues of words in sentences of these lengths, the same for upper and lower case."""
    forms, of_word = [word.lower() for word in words.vocabulary], words.codes

    def numbered(kind: Cue, texts: Sequence[str]) -> Int[np.ndarray, "forms"]:
        first, end = _FIRST[kind : kind + 2]
        hashes = [zlib.crc32(text.encode("utf-8", "surrogatepass")) % (end - first) + first for text in texts]
        return np.array(hashes, dtype=np.int64)

    cues = np.full((len(of_word), N_CUES), NONE, dtype=np.int64)
    cues[:, 0] = numbered(Cue.WORD, forms)[of_word]
    for column, n in enumerate(ENDINGS, start=1):
        longer = np.array([len(form) > n for form in forms], dtype=bool)
        cues[:, column] = np.where(longer, numbered(Cue.ENDING, [form[-n:] for form in forms]), NONE)[of_word]
    before, after = (numbered(Cue.NEIGHBOUR, [f"{side} {form}" for form in forms])[of_word] for side in "<>")
    follows = np.ones(len(of_word), dtype=bool)
    follows[(np.cumsum(lengths) - lengths)[lengths > 0]] = False  # the first word of a sentence follows none
    places = np.flatnonzero(follows)
    cues[places, -2], cues[places - 1, -1] = before[places - 1], after[places]
    return torch.from_numpy(cues)


def kinds(cues: Int[Tensor, "known"]) -> Int[Tensor, "known"]:
    """Return the kind of each cue."""
    return torch.bucketize(cues, torch.tensor(_FIRST[1:-1], device=cues.device), right=True)
