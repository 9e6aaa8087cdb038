"""Split raw text into sentences (with sentencex) and words (with ICU), in any language.

Both know many languages and fall back to general rules for the rest. ICU splits scripts without spaces (Thai, Khmer,
Chinese, Japanese, …) by dictionary.
"""

import re
from collections.abc import Iterator

from crossfill.data.codes import language_tag
from crossfill.errors import DataError, missing_package
from crossfill.grid.sentence import Sentence

LONGEST_WINDOW = 50_000
"""Most characters that are split into sentences at a time."""
_SPACE, _WORD = re.compile(r"\s"), re.compile(r"\S+")


def split_text(text: str, language: str) -> Iterator[Sentence]:
    """Split raw text into sentences and these into words; no sentence spans two lines."""
    position = 0
    for line in text.splitlines(keepends=True):
        for start, end in split_sentences(line, language) if line.strip() else ():
            if words := split_words(text, language, position + start, position + end):
                yield words
        position += len(line)


def split_sentences(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence of a paragraph, which together cover all of it.

    A long paragraph is looked at in windows, each from where the last whole sentence ended: with quotes and brackets,
    the time that sentencex takes grows with the square of the length.
    """
    try:
        from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError:
        raise _missing() from None
    start, tag = 0, language_tag(language)
    while start < len(text):
        window = text[start : start + LONGEST_WINDOW]
        lengths = [len(sentence) for sentence in segment(tag, _SPACE.sub(" ", window))]  # it fails on other spaces
        if start + len(window) < len(text):  # the last sentence may go on
            lengths = lengths[:-1] or [window.rfind(" ") + 1 or len(window)]
        for length in lengths or [len(window)]:
            yield start, start + length
            start += length


def split_words(text: str, language: str, start: int = 0, end: int | None = None) -> Sentence:
    """Split the words of a sentence, `text` from `start` to `end`; they hold all its characters but white space."""
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
    """Split the words of a sentence, `text` from `start` to `end`, that has white space between all its words."""
    words = list(_WORD.finditer(text, start, len(text) if end is None else end))
    return Sentence(tuple(word[0] for word in words), (), (), text, tuple(word.start() for word in words))


def _missing() -> DataError:
    return DataError(
        missing_package("a sentence splitter and word tokenizer for raw text", "text")
        + ", or pass words separated by spaces with --from words"
    )
