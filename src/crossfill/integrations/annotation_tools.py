"""What annotation tools share: XML, places in UTF-16 units, names of labels, and annotated words as sentences."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from xml.parsers import expat

from crossfill.data.labels import split_tag
from crossfill.data.segmentation import Bounds, TextSpan, cut_at_spans, cut_with_spans
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task, TaskKind

Element = tuple[int, str, dict[str, str]]
"""Depth, name and attributes of an element."""
MOST_CHARACTERS = 200_000
_LARGEST_IN_ONE_UNIT = "\uffff"


def types_of(label_names: Iterable[str]) -> list[str]:
    """List what annotators choose from: the types of spans, or the labels other than `_`."""
    types = [tag[1] if (tag := split_tag(name)) else name for name in label_names if name not in ("O", "_")]
    return list(dict.fromkeys(types))


def labelled_sentence(text: str, bounds: Sequence[Bounds], spans: Sequence[TextSpan], task: Task) -> Sentence | None:
    """Label the words of a sentence by the spans that annotators marked in its text.

    A word in which a span begins or ends is cut there. None if words have no label where each needs one; DataError if
    spans overlap or have no word.
    """
    tagged = cut_with_spans(text, cut_at_spans(bounds, spans), spans)
    if task.kind is TaskKind.SPANS:
        return tagged
    labels = [label for tag in tagged.labels if (label := tag[2:] or task.absent)]
    return Sentence(tagged.words, tuple(labels), tagged.spaces) if len(labels) == len(tagged) else None


def elements(text: str, what: str, most_characters: int = MOST_CHARACTERS) -> list[Element]:
    """Parse the elements of an XML text, without document types and entities; `what` names it in errors."""
    if len(text) > most_characters:
        raise DataError(f"{what}: expected at most {most_characters:,} characters of XML, got {len(text):,}")
    parsed: list[Element] = []
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        parsed.append((depth, name, attributes))
        depth += 1

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise DataError(f"{what}: expected XML without a document type, got one; remove <!DOCTYPE …>")

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = start, end, refuse
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise DataError(f"{what}: expected XML; {error}") from None
    return parsed


class Utf16Places:
    """Converts places in a text between characters (Unicode code points) and UTF-16 units.

    JavaScript and Java count in units, of which an emoji or an Adlam letter has two.
    """

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._units: list[int] | None = None
        """The units before each character, and those of the whole text; none if they are the characters."""
        if text and max(text) > _LARGEST_IN_ONE_UNIT:
            self._units = list(accumulate((1 + (char > _LARGEST_IN_ONE_UNIT) for char in text), initial=0))

    def units(self, character: int) -> int:
        """Count the units before a character."""
        return character if self._units is None else self._units[character]

    def character(self, units: int) -> int:
        """Find the character that begins after so many units; an error if none does."""
        most = self._length if self._units is None else self._units[-1]
        if not 0 <= units <= most:
            raise DataError(f"expected a place within the text's {most} UTF-16 units, got {units}")
        if self._units is None:
            return units
        place = bisect_left(self._units, units)
        if self._units[place] != units:
            raise DataError(f"expected a place between two characters, got {units}, which is within one")
        return place
