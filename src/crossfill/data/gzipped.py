"""Files packed with gzip or zlib, unpacked within bounds."""

import zlib

from crossfill.errors import DataError

MAGIC = b"\x1f\x8b"
LARGEST = 2 * 2**30
"""Most bytes that a file may unpack to."""
MOST_EXPANSION = 1000
"""Most bytes that a packed byte may unpack to, on average; no text comes near."""
_SMALL = 2**24  # bytes that any file may unpack to
_CHUNK = 2**20


def unpacked(data: bytes, where: str) -> bytes:
    """The content of a gzip file, of one part or several; `where` names it in errors."""
    if not data.startswith(MAGIC):
        raise DataError(f"{where}: expected gzip, as its name ends in .gz, got other bytes; rename it, or pack it anew")
    most = _most(data)
    parts, size, position = [], 0, 0
    while data[position : position + len(MAGIC)] == MAGIC:
        packed = zlib.decompressobj(wbits=31)
        while not packed.eof:
            given = packed.unconsumed_tail or data[position : position + _CHUNK]
            position += 0 if packed.unconsumed_tail else len(given)
            try:
                part = packed.decompress(given, _CHUNK)
            except zlib.error:
                raise DataError(f"{where}: expected gzip, got damaged bytes; fetch it again, or pack it anew") from None
            if not (part or given):
                raise DataError(f"{where}: expected gzip, got a file that is cut off; fetch it again, or pack it anew")
            parts.append(part)
            size += len(part)
            if size > most:
                raise _bomb(data, where)
        position -= len(packed.unused_data)
    if data[position:].strip(b"\0"):  # tapes and some tools pad with zeros
        raise DataError(f"{where}: expected gzip, got other bytes after its end; fetch it again, or pack it anew")
    return b"".join(parts)


def inflated(data: bytes, where: str) -> bytes:
    """The content of a zlib stream."""
    packed = zlib.decompressobj()
    try:
        content = packed.decompress(data, _most(data) + 1)
    except zlib.error:
        raise DataError(f"{where}: expected bytes packed with zlib, got others; fetch it again") from None
    if len(content) > _most(data):
        raise _bomb(data, where)
    if not packed.eof:
        raise DataError(f"{where}: expected bytes packed with zlib, got a file that is cut off; fetch it again")
    return content


def _most(data: bytes) -> int:
    return min(LARGEST, max(_SMALL, MOST_EXPANSION * len(data)))


def _bomb(data: bytes, where: str) -> DataError:
    return DataError(
        f"{where}: expected a corpus, got {len(data):,} bytes that unpack to more than {_most(data):,}; "
        "unpack it yourself if it is one"
    )
