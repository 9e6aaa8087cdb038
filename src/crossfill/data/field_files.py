"""What files of ELAN and FLEx have in common: XML that is changed in place, and sentences whose words stand in it.

Every element knows where it stands in the bytes of its file. Elements are added and removed there, and all else stays
as it was, byte for byte. The files are data and never trusted: one with a DTD, and so with entities of its own, is
refused.
"""

import re
from abc import ABC, abstractmethod
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from crossfill.data.labels import split_tag
from crossfill.data.reading import FileNotes, ReadingHints, check_printable
from crossfill.errors import DataError
from crossfill.grid.sentence import UNLABELLED, Sentence
from crossfill.grid.task import Unit

_TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPACES = (b" ", b"\t", b"\r", b"\n")


@dataclass(slots=True)
class Element:
    """An element of an XML file, and where it stands."""

    name: str
    attributes: dict[str, str]
    line: int
    start: int
    """The byte at which its start tag begins."""
    end: int
    """The byte after its end tag."""
    content: "list[Element | str]" = field(default_factory=list)

    def __getitem__(self, attribute: str) -> str:
        """Return an attribute; empty if there is none."""
        return self.attributes.get(attribute, "")

    def every(self, *path: str) -> "Iterator[Element]":
        """Yield the elements at the end of a path of names, in their order."""
        for child in self.content:
            if isinstance(child, Element) and child.name == path[0]:
                yield from child.every(*path[1:]) if path[1:] else (child,)

    def characters(self) -> str:
        """Return all characters in it."""
        return "".join(part if isinstance(part, str) else part.characters() for part in self.content)

    @property
    def text(self) -> str:
        """All text in it, with single spaces."""
        return " ".join(self.characters().split())


def parse_elements(data: bytes, where: str, root: str) -> Element:
    """Parse an XML file whose outermost element has the name `root`; `where` names it in errors."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise DataError(f"{where}:1: expected UTF-8, got UTF-16; save the file as UTF-8")
    parser, top, open_elements = expat.ParserCreate(), Element("", {}, 0, 0, 0), list[Element]()
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        where_it_is = f"{where}:{parser.CurrentLineNumber}"
        raise DataError(f"{where_it_is}: expected XML without a DTD and entities of its own, got <!DOCTYPE; remove it")

    def check_encoding(_version: str, encoding: str | None, _standalone: int) -> None:
        if encoding and encoding.lower() not in ("utf-8", "us-ascii"):
            raise DataError(f"{where}:1: expected UTF-8, got {encoding[:40]}; save the file as UTF-8")

    def begin(name: str, attributes: dict[str, str]) -> None:
        line = parser.CurrentLineNumber
        if not open_elements[1:] and name != root:
            raise DataError(f"{where}:{line}: expected <{root}>, got <{name[:40]}>; is this another kind of file?")
        start_tag = _TAG.match(data, start := parser.CurrentByteIndex)
        element = Element(name, attributes, line, start, start_tag.end() if start_tag else start)
        open_elements[-1].content.append(element)
        open_elements.append(element)

    def finish(_name: str) -> None:
        element = open_elements.pop()
        if data[element.end - 2 : element.end] != b"/>":
            element.end = data.index(b">", parser.CurrentByteIndex) + 1

    open_elements.append(top)
    parser.XmlDeclHandler, parser.StartDoctypeDeclHandler = check_encoding, refuse
    parser.StartElementHandler, parser.EndElementHandler = begin, finish
    parser.CharacterDataHandler = lambda text: open_elements[-1].content.append(text)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        raise DataError(f"{where}:{error.lineno}: expected XML, got {problem}; correct it, or save it again") from None
    return next(top.every(root))


Edit = tuple[int, int, str]
"""The bytes from a start to an end, and what comes in their place."""


def removal(data: bytes, element: Element) -> Edit:
    """Remove an element and the white space before it."""
    return element.start - len(space_before(data, element)), element.end, ""


def space_before(data: bytes, element: Element) -> bytes:
    """Return the white space before an element."""
    start = element.start
    while data[start - 1 : start] in _SPACES:
        start -= 1
    return data[start : element.start]


def edited(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Make these changes, of which none overlap, with line ends as the file has them."""
    line_end, parts, place = "\r\n" if b"\r\n" in data else "\n", [], 0
    for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
        parts += [data[place:start], text.replace("\n", line_end).encode()]
        place = end
    return b"".join([*parts, data[place:]])


def tag(name: str, attributes: Mapping[str, str], text: str | None = None, close: bool = True) -> str:
    """Write an element with text, or without any; or its start tag alone."""
    shown = "".join(f" {key}={quoteattr(_printable(value))}" for key, value in attributes.items())
    if text is not None:
        return f"<{name}{shown}>{escape(_printable(text))}</{name}>"
    return f"<{name}{shown}{'/' if close else ''}>"


def _printable(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)


@dataclass(frozen=True)
class FieldSentence:
    """A sentence of such a file, without labels, and what stands around it."""

    sentence: Sentence
    line: int
    fields: dict[str, Any]
    """What identifies it: its tier, names, times."""
    whole: Any
    """What stands for the sentence in its file; none if nothing does."""
    words: Sequence[Any]
    """What stands for each word; nothing where the file has sentences that were cut into words."""


def sentence_of(words: Sequence[str], text: str) -> Sentence:
    """Make a sentence of words, with the spaces that they have in its text if they are all that is in it."""
    bounds, end = [], 0
    for word in words:
        if (start := text.find(word, end)) < 0 or text[end:start].strip():
            break
        end = start + len(word)
        bounds.append((start, end))
    whole = len(bounds) == len(words) and not text[end:].strip()
    return Sentence.cut(text, bounds) if whole else Sentence(tuple(words))


class FieldText(ABC):
    """The sentences of a file of ELAN or FLEx, the labels of their words, and the file with tags."""

    how: str
    """What was read."""
    sentences: Sequence[FieldSentence]
    unit: Unit = Unit.WORD
    """What has labels."""

    @abstractmethod
    def __init__(self, data: bytes, where: str, language: str, tier: str = "", task: str = "", label: str = "") -> None:
        """Read the words, or sentences, that stand in the `tier`; and labels of a task, which stand in `label`."""

    @abstractmethod
    def labels(self, notes: FileNotes) -> list[list[str]]:
        """Return the labels of each sentence: of its words, or its own; empty where there is none."""

    @abstractmethod
    def tagged(self, columns: Sequence[Mapping[str, Sequence[str]]], unit: Unit) -> bytes:
        """Write the file with each column added, which has a value for every word, or one for the sentence."""

    @classmethod
    def parse(cls, data: bytes, where: str, task: str, hints: ReadingHints, notes: FileNotes) -> Iterator[Sentence]:
        """Yield the sentences that have labels; `columns.txt` may say where these are, as `text` and `label`.

        Where labels are of spans, a word without one is in none.
        """
        file = cls(data, where, hints.language, hints.texts[0] if hints.texts else "", task, hints.label)
        notes.columns, labels = file.how, file.labels(notes)
        distinct = {label for given in labels for label in given}
        spans = distinct > {UNLABELLED} and all(label in (UNLABELLED, "O") or split_tag(label) for label in distinct)
        for one, given in zip(file.sentences, labels, strict=True):
            if any(given):
                tags, lines = tuple(label or "O" * spans for label in given), (one.line,) * len(one.sentence)
                sentence = Sentence(one.sentence.words, tags, one.sentence.spaces, unit=file.unit, lines=lines)
                try:
                    yield check_printable(sentence)
                except DataError as error:
                    notes(one.line, str(error))
