"""Places in a text as JavaScript and Java count them: in UTF-16 units, of which an emoji or an Adlam letter has two."""

from bisect import bisect_left
from itertools import accumulate

from crossfill.errors import DataError

_LARGEST_IN_ONE_UNIT = "\uffff"


class Utf16Places:
    """Converts places in a text between characters (Unicode code points) and UTF-16 units."""

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._units: list[int] | None = None
        """The units before each character, and those of the whole text; none if they are the characters."""
        if text and max(text) > _LARGEST_IN_ONE_UNIT:
            self._units = list(accumulate((1 + (char > _LARGEST_IN_ONE_UNIT) for char in text), initial=0))

    def units(self, character: int) -> int:
        """The units before a character."""
        return character if self._units is None else self._units[character]

    def character(self, units: int) -> int:
        """The character that begins after so many units; an error if none does."""
        most = self._length if self._units is None else self._units[-1]
        if not 0 <= units <= most:
            raise DataError(f"expected a place within the text's {most} UTF-16 units, got {units}")
        if self._units is None:
            return units
        place = bisect_left(self._units, units)
        if self._units[place] != units:
            raise DataError(f"expected a place between two characters, got {units}, which is within one")
        return place
