"""Bytes of a text file into lines, whatever editor last saved them."""

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator

from crossfill.errors import DataError

Block = tuple[int, list[str]]
"""The number of a block's first line, from 1, and its lines."""


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


def blocks(lines: list[str]) -> Iterator[Block]:
    """Runs of lines between blank ones; a line of spaces and tabs is blank, and the last blank line may be missing."""
    start, kept = 0, []
    for number, line in enumerate(lines, start=1):
        if line and not line.isspace():
            if not kept:
                start = number
            kept.append(line)
        elif kept:
            yield start, kept
            kept = []
    if kept:
        yield start, kept
