"""What annotation tools share: XML, places in UTF-16 units, predicted regions, and annotated words as sentences."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple
from xml.etree import ElementTree

from crossfill.data.labels import split_tag
from crossfill.data.segmentation import Bounds, TextSpan, cut_at_spans, cut_with_spans
from crossfill.errors import DataError
from crossfill.grid.sentence import UNLABELLED, Sentence
from crossfill.grid.task import Task, TaskKind
from crossfill.prediction.tagging import Tagging

MOST_CHARACTERS = 200_000
_LARGEST_IN_ONE_UNIT = "\uffff"


def types_of(label_names: Iterable[str]) -> list[str]:
    """List what annotators choose from: the types of spans, or the labels other than `_`."""
    types = [tag[1] if (tag := split_tag(name)) else name for name in label_names if name not in ("O", "_")]
    return list(dict.fromkeys(types))


class Region(NamedTuple):
    """A span that a tagger found, or a word that it labelled."""

    start: int
    end: int
    """In characters of the text, exclusive."""
    label: str
    probability: float
    words: range


def regions(tagging: Tagging, single_words: bool = False) -> Iterator[Region]:
    """List the spans of a tagging, or the words that have a label where a task has no spans, or `single_words`."""
    is_spans = tagging.task.kind is TaskKind.SPANS
    if is_spans and not single_words:
        for span in tagging.spans:
            yield Region(span.start_char, span.end_char, span.type, span.confidence, range(span.start, span.end))
        return
    for i, word in enumerate(tagging.words):
        if word.label != tagging.task.absent:
            label = word.label[2:] if is_spans else word.label
            yield Region(word.start_char, word.end_char, label, word.confidence, range(i, i + 1))


def labelled_sentence(
    text: str, bounds: Sequence[Bounds], spans: Sequence[TextSpan], task: Task, partial: bool = False
) -> Sentence | None:
    """Label the words of a sentence by the spans that annotators marked in its text.

    A word in which a span begins or ends is cut there. Where each word needs a label, or if marks are `partial`, a word
    without a mark stays open; none if all do. DataError if spans overlap or have no word.
    """
    tagged = cut_with_spans(text, cut_at_spans(bounds, spans), spans)
    if task.kind is TaskKind.SPANS:
        if not partial:
            return tagged
        labels = tuple(UNLABELLED if label == "O" else label for label in tagged.labels)
    else:
        labels = tuple(tag[2:] or ("" if partial else task.absent) or UNLABELLED for tag in tagged.labels)
    return replace(tagged, labels=labels) if any(labels) else None


def parse_xml(text: str, what: str, most_characters: int = MOST_CHARACTERS) -> ElementTree.Element:
    """Parse a text as XML without document types and entities; `what` names it in errors."""
    if len(text) > most_characters:
        raise DataError(f"{what}: expected at most {most_characters:,} characters of XML, got {len(text):,}")
    if "<!DOCTYPE" in text:
        raise DataError(f"{what}: expected XML without a document type, got one; remove <!DOCTYPE …>")
    try:
        parser = ElementTree.XMLParser(encoding="utf-8")  # noqa: S314  what entities need was refused
        return ElementTree.fromstring(text.encode("utf-8", "surrogatepass"), parser)  # noqa: S314
    except ElementTree.ParseError as error:
        raise DataError(f"{what}: expected XML; {error}") from None


class Utf16Places:
    """Converts places in a text between characters (Unicode code points) and UTF-16 units.

    JavaScript and Java count in units, of which an emoji or an Adlam letter has two.
    """

    def __init__(self, text: str) -> None:
        sizes = (1 + (char > _LARGEST_IN_ONE_UNIT) for char in text)
        self._units = array("I", accumulate(sizes, initial=0))  # before each character, and of the whole text

    def units(self, character: int) -> int:
        """Count the units before a character."""
        return self._units[character]

    def character(self, units: int) -> int:
        """Find the character that begins after so many units; an error if none does."""
        if not 0 <= units <= self._units[-1]:
            raise DataError(f"expected a place within the text's {self._units[-1]} UTF-16 units, got {units}")
        place = bisect_left(self._units, units)
        if self._units[place] != units:
            raise DataError(f"expected a place between two characters, got {units}, which is within one")
        return place
