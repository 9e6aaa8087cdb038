"""Unicode's composed form (NFC) in linear time, and characters that no line of a corpus can hold."""

import re
from unicodedata import combining, is_normalized, normalize

MOST_MARKS = 30
"""Most combining marks in a row, as in Unicode's stream-safe format (UAX #15); more are parted by U+034F."""
_JOINER = "\N{COMBINING GRAPHEME JOINER}"
_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")


def composed(word: str) -> str:
    """The word in composed form.

    Composing sorts each run of combining marks, in quadratic time: tens of thousands in a word would take seconds.
    """
    return normalize("NFC", word if len(word) <= MOST_MARKS else _stream_safe(word))


def is_composed(word: str) -> bool:
    """Whether `composed` leaves the word as it is."""
    return is_normalized("NFC", word) if len(word) <= MOST_MARKS else composed(word) == word


def on_one_line(text: str) -> str:
    r"""The text with a space for tabs and line breaks, which would end a column or a line.

    >>> on_one_line("New\\tYork\\r\\nCity")
    'New York City'
    """
    return _BREAKS.sub(" ", text)


def _stream_safe(word: str) -> str:
    """The word with no more than `MOST_MARKS` combining marks in a row."""
    found, run = [], 0
    for character in word:
        run = run + 1 if combining(character) else 0
        if run > MOST_MARKS:
            found.append(_JOINER)
            run = 1
        found.append(character)
    return "".join(found)
