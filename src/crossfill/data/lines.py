"""Decode files into lines of text: gzip, UTF-8 with or without a byte order mark, LF or CRLF line ends."""

import gzip
import io
import re
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator
from io import BufferedIOBase
from typing import Literal

from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence

Block = tuple[int, list[str]]
"""The number of a block's first line, from 1, and its lines."""
Note = tuple[Literal["warning", "note"], int, str]
"""What to say of a file: how bad it is, of which line (0: of no single one), and the text."""
OnBadLine = Callable[[int, str], None]
"""Called with the number of a bad line and what is wrong with it; its sentence is then left out."""
GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file."""
LARGEST = 2 * 2**30
"""Most bytes that a gzip file may unpack to."""
LONGEST_LINE = 1_000_000
"""Most bytes in a line of text to be tagged."""
MOST_WORDS = 5000
"""Most words in a sentence; with more, sentence breaks are probably missing."""
MOST_LOST = 0.1
"""Largest share of sentences that may be left out of a file for a bad line."""
_NOT_IN_COLUMNS = re.compile("[\t\n\r\ud800-\udfff]")  # would end a column or a line, or cannot be written
_MOST_NAMED = 3  # bad lines that are named one by one


class FileNotes:
    """The bad lines of a file, for each of which a sentence is left out, and lines whose words were split."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.bad: list[tuple[int, str]] = []
        self.split: list[tuple[int, str]] = []

    def __call__(self, line: int, problem: str) -> None:
        """Leave out the sentence of a bad line."""
        self.bad.append((line, problem))

    def checked(self, n_read: int) -> tuple[Note, ...]:
        """Return what to say, of the first few lines one by one.

        A file of which more than one sentence in ten is bad, and more than one, or that has no other, is refused.
        """
        n_bad, total = len(self.bad), n_read + len(self.bad)
        if n_bad and (not n_read or n_bad > max(1, MOST_LOST * total)):
            line, problem = self.bad[0]
            counted = f" ({n_bad:,} of {total:,} sentences are bad)" if n_bad > 1 else ""
            raise DataError(f"{self.where}:{line}: {problem}{counted}")
        notes: list[Note] = [("warning", line, f"sentence left out: {why}") for line, why in self.bad[:_MOST_NAMED]]
        why = "split where spans begin or end within words"
        notes.extend(("note", line, f"{why}: {words}") for line, words in self.split[:_MOST_NAMED])
        if n_bad > _MOST_NAMED:
            notes.append(("warning", 0, f"{n_bad - _MOST_NAMED:,} more left out, each for a bad line"))
        if len(self.split) > _MOST_NAMED:
            notes.append(("note", 0, f"words split on {len(self.split) - _MOST_NAMED:,} more lines"))
        return tuple(notes)


def check_printable(sentence: Sentence) -> Sentence:
    """Return the sentence if its words and labels can be written in columns of text; else raise an error."""
    for name, values in (("word", sentence.words), ("label", sentence.labels)):
        for value in values:
            if not value or _NOT_IN_COLUMNS.search(value):
                raise DataError(
                    f"expected every {name} as text without tabs and line ends, got {value[:40]!r}; correct it"
                )
    return sentence


def unpacked(data: bytes, where: str) -> bytes:
    """Return the content of a gzip file; `where` names it in errors."""
    if not data.startswith(GZIP):
        raise DataError(f"{where}: expected gzip, as its name ends in .gz, got other bytes; rename it")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(LARGEST + 1)
    except EOFError:
        raise DataError(f"{where}: expected gzip, got a file that is cut off; fetch it again") from None
    except (OSError, zlib.error) as error:
        raise DataError(f"{where}: expected gzip, got damaged bytes ({error}); fetch it again") from None
    if len(content) > LARGEST:
        raise DataError(f"{where}: expected at most {LARGEST:,} bytes when unpacked, got more; unpack it yourself")
    return content


def decode(data: bytes, where: str) -> list[str]:
    """Return the lines of UTF-8 text without byte order mark and line ends (LF or CRLF)."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise DataError(f"{where}:1: expected UTF-8, got UTF-16; save the file as UTF-8")
    try:
        text = data.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(error, where, error.object.count(b"\n", 0, error.start) + 1) from None
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        if (stray := text.find("\r")) >= 0:
            raise _stray_return(where, text.count("\n", 0, stray) + 1)
    return text.split("\n")


def stream(
    file: BufferedIOBase, where: str, longest: int = LONGEST_LINE, keep_ends: bool = False, first: int = 1
) -> Iterator[str]:
    """Read the lines of UTF-8 text one at a time, without byte order mark; without line ends, or with `keep_ends`.

    `first` is the number of the first line, if what is read is a part of a file.
    """
    number = first - 1
    while data := file.readline(longest + 1):
        number += 1
        if number == 1:
            if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                raise DataError(f"{where}:1: expected UTF-8, got UTF-16; save the file as UTF-8")
            data = data.removeprefix(BOM_UTF8)
        if b"\0" in data:
            raise DataError(f"{where}:{number}: expected text, got a zero byte; is this a binary file?")
        if len(data) > longest:
            raise DataError(
                f"{where}:{number}: expected lines of at most {longest:,} bytes, got more; break the line up"
            )
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _not_utf8(error, where, number) from None
        line = text.removesuffix("\n").removesuffix("\r")
        if "\r" in line:
            raise _stray_return(where, number)
        yield text if keep_ends else line


def _not_utf8(error: UnicodeDecodeError, where: str, line: int) -> DataError:
    byte = error.object[error.start]
    return DataError(f"{where}:{line}: expected UTF-8, got byte 0x{byte:02x}; save the file as UTF-8")


def _stray_return(where: str, line: int) -> DataError:
    return DataError(f"{where}:{line}: expected lines that end in LF or CRLF, got CR alone; convert the line ends")


def blocks(lines: Iterable[str], longest: int | None = None, where: str = "", first: int = 1) -> Iterator[Block]:
    """Group lines between blank lines; lines of white space are blank, and the last blank line may be missing."""
    start, block = 0, []
    for number, line in enumerate(lines, start=first):
        if line and not line.isspace():
            if not block:
                start = number
            block.append(line)
            if longest is not None and len(block) > longest:
                raise DataError(f"{where}:{start}: expected at most {longest:,} lines up to a blank line, got more")
        elif block:
            yield start, block
            block = []
    if block:
        yield start, block
