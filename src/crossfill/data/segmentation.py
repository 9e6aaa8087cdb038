"""Split raw text into sentences (with sentencex) and words (with ICU), in any language.

Both know many languages and fall back to general rules for the rest. ICU splits scripts without spaces (Thai, Khmer,
Chinese, Japanese, …) by dictionary.
"""

import re
from collections.abc import Iterator

from crossfill.data.codes import language_tag
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence

_SPACE, _WORD = re.compile(r"\s"), re.compile(r"\S+")


def split_text(text: str, language: str) -> Iterator[Sentence]:
    """The sentences of raw text, each split into words; no sentence spans two lines."""
    position = 0
    for line in text.splitlines(keepends=True):
        for start, end in split_sentences(line, language) if line.strip() else ():
            if words := split_words(text, language, position + start, position + end):
                yield words
        position += len(line)


def split_sentences(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence of a paragraph, which together cover all of it."""
    try:
        from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError:
        raise _missing() from None
    end = 0
    for sentence in segment(language_tag(language), _SPACE.sub(" ", text)):  # it fails on other spaces after initials
        start, end = end, end + len(sentence)
        yield start, end


def split_words(text: str, language: str, start: int = 0, end: int | None = None) -> Sentence:
    """The words of a sentence, which is `text` from `start` to `end`; they hold all its characters but white space."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        raise _missing() from None
    bounds, position = [], start
    for piece in WordBreaker(text[start:end], language_tag(language)):
        # a piece can begin or end with a space: before a combining mark, or if the space must not break
        bounds += [(position + word.start(), position + word.end()) for word in _WORD.finditer(piece)]
        position += len(piece)
    return Sentence.cut(text, bounds)


def split_at_spaces(text: str, start: int = 0, end: int | None = None) -> Sentence:
    """The words of a sentence, `text` from `start` to `end`, that has white space between all its words."""
    words = list(_WORD.finditer(text, start, len(text) if end is None else end))
    return Sentence(tuple(word[0] for word in words), (), (), text, tuple(word.start() for word in words))


def _missing() -> DataError:
    return DataError(
        "expected a sentence splitter and word tokenizer for raw text, found none; install them "
        "(pip install 'crossfill[text]'), or pass words separated by spaces with --tokenised"
    )
