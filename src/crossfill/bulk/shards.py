"""Files to tag, by path, and their shards.

A shard is a file with its size and the time of its last change: if they are others when it is tagged, the shard fails.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedIOBase, BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

from crossfill.data.reading import LONGEST_LINE, unpacked
from crossfill.data.segmentation import LONGEST_WINDOW, Segmenter
from crossfill.data.streams import FIELD_TEXTS, Cutting, Format, Item, check_length, format_of, read_items, row_items
from crossfill.data.table_corpora import opened_parquet
from crossfill.errors import DataError, unreadable
from crossfill.grid.task import Unit

SourceFormat = Format | Literal["parquet"]
OnBadRecord = Callable[[int, str, str], None]
"""Called with the line (or row) where a bad record begins, what is wrong with it, and its first characters."""
_PATTERN = re.compile(r"[*?\[]")
_SHOWN = 1000  # bytes of a bad record


@dataclass(frozen=True)
class Shard:
    """A file that is tagged as a whole."""

    name: str
    """Name of what is made of it, without suffix."""
    file: str
    form: SourceFormat
    bytes: int
    changed: int
    """Time of its last change, in nanoseconds."""
    lines: int
    """Number of its lines or rows, as far as line ends are seen: a file in gzip has fewer."""


def matching_files(text: str) -> dict[str, Path]:
    """Find the files that are meant, by short names: one, all in a folder, or all that match a pattern."""
    path = Path(text).absolute()
    if (pattern := _PATTERN.search(str(path))) and not path.exists():
        root = Path(str(path)[: pattern.start()].rpartition("/")[0] or "/")
        paths = root.glob(str(path.relative_to(root)))
    elif path.is_dir():
        root, paths = path, path.rglob("*")
    else:
        root, paths = path.parent, [path]
    visible = (file for file in sorted(paths) if file.is_file() and (file == path or not file.name.startswith(".")))
    files = {str(file.relative_to(root)): file for file in visible}
    if not files:
        raise DataError(f"{path}: expected files to read, found none; check the path")
    return files


def source_format(name: str, named: str | None) -> SourceFormat:
    """Return the format of a file: the one that is named, else by its ending, with or without .gz."""
    path = Path(name.removesuffix(".gz"))
    if named == "parquet" or (named is None and path.suffix.lower() == ".parquet"):
        return "parquet"
    return format_of(path, named)


def find_shard(path: Path, name: str, form: SourceFormat) -> Shard | None:
    """Read a file once, and return its shard; an empty file has none."""
    if form == "parquet" and name.endswith(".gz"):
        raise DataError(f"{path}: expected a Parquet file as it is, got one packed with gzip; unpack it")
    try:
        status = path.stat()
        with path.open("rb") as file:
            if form == "parquet" and status.st_size:
                with opened_parquet(file, str(path)) as table:
                    n_lines = table.metadata.num_rows
            else:
                n_lines = sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b""))
    except OSError as error:
        raise unreadable(path, error) from None
    stem = str(PurePosixPath(name.removesuffix(".gz")).with_suffix(""))
    n_bytes = status.st_size
    return Shard(stem, str(path), form, n_bytes, status.st_mtime_ns, max(1, n_lines)) if n_bytes else None


def read_shard(
    shard: Shard, segmenter: Segmenter, cutting: Cutting, on_bad_record: OnBadRecord, unit: Unit = Unit.WORD
) -> Iterator[tuple[int, Item]]:
    """Yield the sentences of a shard, each with the line (or row) where its record begins."""
    for number, record in _records(shard, cutting):
        try:
            if isinstance(record, dict):
                items = [check_length(item, shard.file) for item in row_items(record, segmenter, cutting)]
            else:
                form = cast("Format", shard.form)
                file = BytesIO(record)
                items = list(read_items(file, shard.file, form, segmenter, cutting, unit=unit, first=number))
        except DataError as error:
            text = str(record) if isinstance(record, dict) else record[:_SHOWN].decode(errors="replace")
            on_bad_record(number, str(error), text)
        else:
            yield from ((number, item) for item in items)


def _records(shard: Shard, cutting: Cutting) -> Iterator[tuple[int, bytes | dict[str, Any]]]:
    """Yield the rows of a shard, or its lines or blocks of lines, each with its number.

    It has to be as planned, before and after it is read: it may change meanwhile.
    """
    _check_unchanged(shard)
    with Path(shard.file).open("rb") as file:
        yield from _rows(file, shard) if shard.form == "parquet" else _blocks(file, shard, cutting)
    _check_unchanged(shard)


def _check_unchanged(shard: Shard) -> None:
    status = Path(shard.file).stat()
    if (status.st_size, status.st_mtime_ns) != (shard.bytes, shard.changed):
        problem = f"expected the {shard.bytes:,} bytes that were there when the run began"
        raise DataError(f"{shard.file}: {problem}: the file has changed; run the command again with --force")


def _rows(file: BufferedIOBase, shard: Shard) -> Iterator[tuple[int, dict[str, Any]]]:
    with opened_parquet(file, shard.file) as table:
        rows = (row for part in table.iter_batches() for row in part.to_pylist())
        for number, row in enumerate(rows, start=1):
            yield number, json.loads(json.dumps(row, default=str))  # dates as text, as JSON lines have them


def _blocks(file: BufferedIOBase, shard: Shard, cutting: Cutting) -> Iterator[tuple[int, bytes]]:
    packed = shard.file.endswith(".gz")
    if shard.form in FIELD_TEXTS:
        yield 1, unpacked(file.read(), shard.file, packed)
        return
    lines = _lines(BytesIO(unpacked(file.read(), shard.file, packed)) if packed else file)
    joined = shard.form in ("conllu", "bio") or (shard.form == "text" and cutting == "raw")  # up to a blank line
    first, record, length = 1, [], 0
    for number, line in enumerate(lines, start=1):
        record.append(line)
        length += len(line)
        if not (joined and line.strip()) or (shard.form == "text" and length > LONGEST_WINDOW):
            yield first, b"".join(record)
            first, record, length = number + 1, [], 0
    if record:
        yield first, b"".join(record)


def _lines(file: BufferedIOBase) -> Iterator[bytes]:
    """Yield the lines of a file; of one that is too long, only so much that its reader refuses it."""
    while line := file.readline(LONGEST_LINE + 1):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(2**20)
        yield line
