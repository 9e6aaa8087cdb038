"""Files packed with gzip, unpacked within bounds."""

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
    most = min(LARGEST, max(_SMALL, MOST_EXPANSION * len(data)))
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
                raise DataError(
                    f"{where}: expected a corpus, got {len(data):,} bytes that unpack to more than {most:,}; "
                    "unpack it yourself if it is one"
                )
        position -= len(packed.unused_data)
    if data[position:].strip(b"\0"):  # tapes and some tools pad with zeros
        raise DataError(f"{where}: expected gzip, got other bytes after its end; fetch it again, or pack it anew")
    return b"".join(parts)
