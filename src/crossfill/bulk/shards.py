"""Shards of files: runs of lines, of blocks of lines, or of a table's rows, of about the same number of bytes."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from io import BufferedIOBase, BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from crossfill.bulk.places import Place
from crossfill.data.arrow_tables import count_rows, read_rows
from crossfill.data.lines import LONGEST_LINE, MOST_WORDS, unpacked
from crossfill.data.streams import Cutting, Format, Item, check_length, format_of, read_items, row_items
from crossfill.errors import DataError
from crossfill.grid.task import Unit

SourceFormat = Format | Literal["parquet"]
SetAside = Callable[[int, str, str], None]
"""Told the line (or row) where a bad record begins, what is wrong with it, and its first characters."""
_BLOCKS: tuple[SourceFormat, ...] = ("conllu", "bio")
"""Formats whose records end at a blank line, not at each line."""
_LONGEST_BLOCK = 3 * MOST_WORDS * 1000
_PIECE = 2**16
"""Bytes that are read at a time."""
_SHOWN = 1000
"""Bytes of a bad record that are told."""


@dataclass(frozen=True)
class Shard:
    """A part of a file that is worked on as a whole: only whole lines, sentences or rows."""

    name: str
    """Name of what is made of it, without suffix."""
    file: str
    form: SourceFormat
    start: int
    """First byte, or first row of a table."""
    end: int
    first: int
    """Number of its first line (or row) in the file, from 1."""
    bytes: int
    digest: str
    """Hash of its bytes; of the whole file, if that is a table or compressed."""
    packed: bool = False
    """Whether the file is compressed with gzip; it is then one shard."""

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def source_format(name: str, named: str | None) -> SourceFormat:
    """The format of a file: the one that is named, else by its ending, with or without .gz."""
    path = Path(name.removesuffix(".gz"))
    if named == "parquet" or (named is None and path.suffix.lower() == ".parquet"):
        return "parquet"
    return format_of(path, named)


def cut(place: Place, name: str, form: SourceFormat, size: int) -> list[Shard]:
    """The shards of a file, of about `size` bytes each; the file is read once."""
    packed = name.endswith(".gz")
    if packed and form == "parquet":
        raise DataError(f"{place}: expected a Parquet file as it is, got one packed with gzip; unpack it")
    with place.opened() as file:
        whole = _rows if form == "parquet" else _packed if packed else _runs
        parts = list(whole(file, str(place), form, size))
    stem = str(PurePosixPath(name.removesuffix(".gz")).with_suffix(""))
    n = len(parts)
    names = [stem if n == 1 else f"{stem}-{i:05}-of-{n:05}" for i in range(1, n + 1)]
    return [Shard(own, str(place), form, *part, packed) for own, part in zip(names, parts, strict=True)]


_Part = tuple[int, int, int, int, str]
"""Start, end, first line, bytes and digest of a shard."""


def _runs(file: BufferedIOBase, _where: str, form: SourceFormat, size: int) -> Iterator[_Part]:
    """Runs of whole records, in constant memory however long a line is."""
    start = place = 0
    first = line = 1
    digest, blank = blake2b(digest_size=16), True
    while piece := file.readline(_PIECE):
        digest.update(piece)
        place += len(piece)
        blank = blank and not piece.strip()
        if piece.endswith(b"\n"):
            line += 1
            if place - start >= size and (blank or form not in _BLOCKS):
                yield start, place, first, place - start, digest.hexdigest()
                start, first, digest = place, line, blake2b(digest_size=16)
            blank = True
    if place > start:
        yield start, place, first, place - start, digest.hexdigest()


def _packed(file: BufferedIOBase, _where: str, _form: SourceFormat, _size: int) -> Iterator[_Part]:
    n_bytes, digest = _hashed(file)
    yield 0, 0, 1, n_bytes, digest


def _rows(file: BufferedIOBase, where: str, _form: SourceFormat, size: int) -> Iterator[_Part]:
    n_rows = count_rows(file, where)
    n_bytes, digest = _hashed(file)
    step = max(1, n_rows * size // max(1, n_bytes))
    for start in range(0, n_rows, step):
        end = min(n_rows, start + step)
        yield start, end, start + 1, n_bytes * (end - start) // n_rows, digest


def _hashed(file: BufferedIOBase) -> tuple[int, str]:
    """The number of bytes of a file, and their hash."""
    digest, n_bytes = blake2b(digest_size=16), 0
    file.seek(0)
    while block := file.read(2**20):
        digest.update(block)
        n_bytes += len(block)
    return n_bytes, digest.hexdigest()


def read(
    shard: Shard, language: str, cutting: Cutting, set_aside: SetAside, unit: Unit = Unit.WORD
) -> Iterator[tuple[int, Item]]:
    """The sentences of a shard, each with the line (or row) where its record begins; bad records are set aside."""
    with Place(shard.file).opened() as file:
        if shard.form == "parquet":
            yield from _row_items(file, shard, language, cutting, set_aside)
            return
        if shard.packed:
            data = unpacked(file.read(), shard.file)
            records = _records(BytesIO(data), shard, len(data))
        else:
            file.seek(shard.start)
            records = _records(file, shard, shard.end - shard.start)
        for line, record, n_bytes in records:
            if n_bytes > len(record):
                shown = record[:_SHOWN].decode(errors="replace")
                set_aside(line, f"expected lines of at most {LONGEST_LINE:,} bytes, got {n_bytes:,}", shown)
                continue
            try:
                made = read_items(BytesIO(record), shard.file, shard.form, language, cutting, unit=unit, first=line)
                items = list(made)
            except DataError as error:
                set_aside(line, str(error), record[:_SHOWN].decode(errors="replace"))
            else:
                yield from ((line, item) for item in items)


def _records(file: BufferedIOBase, shard: Shard, left: int) -> Iterator[tuple[int, bytes, int]]:
    """The first line of each record, its bytes, and their number; of one that is too long, only the first bytes."""
    most = _LONGEST_BLOCK if shard.form in _BLOCKS else LONGEST_LINE + 2
    first = line = shard.first
    kept, n_bytes, blank = [], 0, True
    while left and (piece := file.readline(min(_PIECE, left))):
        left -= len(piece)
        if n_bytes + len(piece) <= most:
            kept.append(piece)
        n_bytes += len(piece)
        blank = blank and not piece.strip()
        if piece.endswith(b"\n"):
            line += 1
            if blank or shard.form not in _BLOCKS:
                yield first, b"".join(kept), n_bytes
                kept, n_bytes, first = [], 0, line
            blank = True
    if n_bytes:
        yield first, b"".join(kept), n_bytes


def _row_items(
    file: BufferedIOBase, shard: Shard, language: str, cutting: Cutting, set_aside: SetAside
) -> Iterator[tuple[int, Item]]:
    for number, row in enumerate(read_rows(file, shard.file, shard.start, shard.end), start=shard.first):
        try:
            plain = json.loads(json.dumps(row, default=str))  # dates and the like as text, as JSON lines have them
            items = [check_length(item, shard.file) for item in row_items(plain, language, cutting)]
        except (DataError, ValueError) as error:
            set_aside(number, str(error), str(row))
        else:
            yield from ((number, item) for item in items)
