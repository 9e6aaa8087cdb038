"""The bytes of spaCy's DocBin files (`.spacy`): msgpack within zlib, read field by field; nothing in it is executed.

    attrs        numbers of attributes, one for each column of `tokens`; ORTH is the word
    tokens       uint64, words of all documents × attributes: hashes of strings, or numbers
    spaces       bool: whether a space follows each word
    lengths      int32: words of each document
    strings      all strings that are hashed
    flags        of each document, as `has_unknown_spaces`
    span_groups  of each document, packed again: its groups of spans

A damaged file meets checks here, and never the memory that spaCy would copy it to.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any

import numpy as np

from crossfill.data.gzipped import inflated
from crossfill.errors import DataError

_SPAN = Struct(">QQQllll")  # hashes of id, knowledge base and label; first word, last; first character, last
_AGAIN = "write it again with spaCy"


@dataclass(frozen=True)
class Document:
    """One document: attributes of its words by name, whether a space follows each, and spans by group."""

    columns: dict[str, np.ndarray]
    spaces: np.ndarray
    packed_groups: Any
    strings: Any

    def __len__(self) -> int:
        return len(self.spaces)

    def numbers(self, name: str) -> list[int]:
        """An attribute that is a number, of every word; 0 where the file lacks it."""
        return self.columns[name].tolist() if name in self.columns else [0] * len(self)

    def texts(self, name: str) -> list[str]:
        """An attribute that is a string, of every word; empty where there is none."""
        try:
            return [self.strings[value] for value in self.numbers(name)]
        except (KeyError, OverflowError):
            raise DataError(f"expected all strings of {name}, got some by their hash alone; {_AGAIN}") from None

    def groups(self) -> dict[str, list[tuple[int, int, str]]]:
        """First word, last word (exclusive) and label of spans, by the names of their groups."""
        if not self.packed_groups:
            return {}
        found = unpack(self.packed_groups)
        try:
            named = {key: unpack(group)["spans"] for group, keys in dict(found or {}).items() for key in keys}
            spans = {key: [_SPAN.unpack(span) for span in own] for key, own in named.items()}
            return {key: [(s[3], s[4], self.strings[s[2]]) for s in own] for key, own in spans.items()}
        except Exception as error:
            raise DataError(f"expected groups of spans, got {_shown(error)}; {_AGAIN}") from None


def documents(data: bytes, where: str) -> Iterator[Document]:
    """The documents of a file."""
    check_installed()
    from spacy.attrs import IDS
    from spacy.strings import StringStore

    try:
        found = unpack(inflated(data, where))
    except DataError as error:
        raise DataError(f"{where}: {str(error).removeprefix(f'{where}: ')}") from None
    try:
        known = {number: name for name, number in IDS.items()}
        names = [known[number] for number in found["attrs"]]
        tokens = np.frombuffer(found["tokens"], dtype="<u8").reshape(-1, len(names))
        spaces = np.frombuffer(found["spaces"], dtype=np.uint8) > 0
        lengths = np.frombuffer(found["lengths"], dtype="<i4").tolist()
        flags, groups = (list(found.get(name) or [b""] * len(lengths)) for name in ("flags", "span_groups"))
        strings = StringStore(found["strings"])
    except Exception as error:
        raise DataError(f"{where}: expected the fields of a DocBin, got {_shown(error)}; {_AGAIN}") from None
    counts = {len(tokens), len(spaces), sum(lengths)}
    if min(lengths, default=0) < 0 or len(counts) > 1 or {len(flags), len(groups)} != {len(lengths)}:
        raise DataError(f"{where}: expected fields of a DocBin that are equally long, got others; {_AGAIN}")
    start = 0
    for length, flag, group in zip(lengths, flags, groups, strict=True):
        own, unknown = slice(start, start + length), isinstance(flag, dict) and flag.get("has_unknown_spaces")
        columns = {name: tokens[own, i] for i, name in enumerate(names)}
        yield Document(columns, np.ones(length, bool) if unknown else spaces[own], group, strings)
        start += length


def unpack(data: Any) -> Any:
    """What msgpack packed; any bytes may come, and any error of msgpack's becomes one of ours."""
    from srsly.msgpack import loads

    try:
        return loads(data, raw=False)
    except Exception as error:
        raise DataError(f"expected msgpack, got {_shown(error)}; {_AGAIN}") from None


def _shown(error: Exception) -> str:
    return f"{type(error).__name__} ({(str(error).splitlines() or [''])[0][:80]})"


def check_installed() -> None:
    """Ask for spaCy, if it is not there."""
    try:
        import spacy  # noqa: F401
    except ImportError:
        raise DataError(
            "expected spaCy for .spacy files, found none; install it (pip install 'crossfill[spacy]')"
        ) from None
