"""Decode text files into lines, with or without a byte order mark, and with LF or CRLF line ends."""

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from io import BufferedIOBase

from crossfill.errors import DataError

Block = tuple[int, list[str]]
"""The number of a block's first line, from 1, and its lines."""
LONGEST_LINE = 1_000_000
"""Most bytes in a line of text to be tagged."""


def decode(data: bytes, where: str) -> list[str]:
    """The lines of UTF-8 text without byte order mark and line ends (LF or CRLF)."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise DataError(f"{where}:1: expected UTF-8, got UTF-16; save the file as UTF-8")
    try:
        text = data.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise DataError(f"{where}:{line}: expected UTF-8, got byte 0x{byte:02x}; save the file as UTF-8") from None
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        if (stray := text.find("\r")) >= 0:
            line = text.count("\n", 0, stray) + 1
            raise DataError(
                f"{where}:{line}: expected lines that end in LF or CRLF, got CR alone; convert the line ends"
            )
    return text.split("\n")


def stream(file: BufferedIOBase, where: str, longest: int = LONGEST_LINE) -> Iterator[str]:
    """Read the lines of UTF-8 text one at a time, without byte order mark and line ends."""
    number = 0
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
            line = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise DataError(
                f"{where}:{number}: expected UTF-8, got byte 0x{byte:02x}; save the file as UTF-8"
            ) from None
        if "\r" in line:
            raise DataError(
                f"{where}:{number}: expected lines that end in LF or CRLF, got CR alone; convert the line ends"
            )
        yield line


def blocks(lines: Iterable[str], longest: int | None = None, where: str = "") -> Iterator[Block]:
    """Groups of lines between blank lines; lines of white space are blank, and the last blank line may be missing."""
    start, kept = 0, []
    for number, line in enumerate(lines, start=1):
        if line and not line.isspace():
            if not kept:
                start = number
            kept.append(line)
            if longest is not None and len(kept) > longest:
                raise DataError(f"{where}:{start}: expected at most {longest:,} lines up to a blank line, got more")
        elif kept:
            yield start, kept
            kept = []
    if kept:
        yield start, kept
