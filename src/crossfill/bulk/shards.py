"""Files to tag, by path or by address (any that fsspec knows, such as s3://bucket/news/*.jsonl), and their shards.

A shard is a file, or a row group of a Parquet file, with a digest of its bytes: if they are others when it is tagged,
the file has changed meanwhile, and the shard fails.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from io import BufferedIOBase, BytesIO
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

from crossfill.data.reading import LONGEST_LINE, unpacked
from crossfill.data.streams import Cutting, Format, Item, check_length, format_of, read_items, row_items
from crossfill.data.table_corpora import opened_parquet
from crossfill.errors import DataError
from crossfill.files import replacing
from crossfill.grid.task import Unit

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem
    from pyarrow.parquet import ParquetFile

SourceFormat = Format | Literal["parquet"]
OnBadRecord = Callable[[int, str, str], None]
"""Called with the line (or row) where a bad record begins, what is wrong with it, and its first characters."""
_PATTERN = re.compile(r"[*?\[]")
_SHOWN = 1000  # bytes of a bad record


@dataclass(frozen=True)
class Address:
    """The path or address of a file or folder."""

    text: str

    @classmethod
    def of(cls, text: str) -> "Address":
        """Make an address; a path becomes absolute."""
        return cls(text if "://" in text else str(Path(text).absolute()))

    def __str__(self) -> str:
        return self.text

    def __truediv__(self, name: str) -> "Address":
        return Address(f"{self.text.rstrip('/')}/{name}")

    @property
    def local(self) -> Path | None:
        """Its path, if it is on this machine's file system."""
        return None if "://" in self.text else Path(self.text)

    @contextmanager
    def opened(self) -> Iterator[BufferedIOBase]:
        """Open the file for reading."""
        with self._resolved() as (files, path):
            file = cast("BufferedIOBase", files.open(path, "rb"))
        with file:
            yield file

    def read(self) -> bytes | None:
        """Read all bytes of the file; None if there is no such file."""
        with self._resolved() as (files, path):
            return cast("bytes", files.cat_file(path)) if files.isfile(path) else None

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """Open the file for writing, as a whole or not at all: it is put into place when the block ends."""
        if self.local is not None:
            with replacing(self.local) as file:
                yield file
            return
        with NamedTemporaryFile() as file:
            yield cast("BinaryIO", file)
            file.flush()
            with self._resolved() as (files, path):
                files.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
                files.put_file(file.name, path)

    def write(self, content: bytes) -> None:
        """Write the file as a whole or not at all."""
        with self.writing() as file:
            file.write(content)

    def remove(self) -> None:
        """Delete the file."""
        with self._resolved() as (files, path):
            files.rm_file(path)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all files in the folder, by their names in it; none if there is no such folder."""
        with self._resolved() as (files, path):
            found = cast("dict[str, dict[str, Any]]", files.find(path, detail=True) if files.isdir(path) else {})
            return {str(PurePosixPath(name).relative_to(path)): int(info["size"]) for name, info in found.items()}

    def matches(self) -> dict[str, "Address"]:
        """Find the files that are meant, by short names: one, all in a folder, or all that match a pattern."""
        with self._resolved() as (files, path):
            pattern = _PATTERN.search(path) if self.local is None or not self.local.exists() else None
            if pattern:
                root = path[: pattern.start()].rpartition("/")[0]
                names = [name for name in sorted(map(str, files.glob(path))) if files.isfile(name)]
            elif files.isdir(path):
                root, names = path, sorted(cast("list[str]", files.find(path)))
                names = [name for name in names if not PurePosixPath(name).name.startswith(".")]
            else:
                root, names = str(PurePosixPath(path).parent), [path] if files.isfile(path) else []
            if not names:
                raise DataError(f"{self}: expected files to read, found none; check the path")
            full = str if self.local is not None else files.unstrip_protocol
            return {str(PurePosixPath(name).relative_to(root or "/")): Address(full(name)) for name in names}

    @contextmanager
    def _resolved(self) -> "Iterator[tuple[AbstractFileSystem, str]]":
        """Find the file system and the path in it; errors of both become errors of data."""
        from fsspec.core import url_to_fs

        try:
            yield url_to_fs(self.text)
        except ImportError as error:
            raise DataError(f"{self}: expected a file system that is installed; {error}") from None
        except ValueError as error:
            raise DataError(f"{self}: expected an address that can be read; {error}") from None
        except OSError as error:
            raise DataError(f"{self}: expected a readable file or folder; {error.strerror or error}") from None


@dataclass(frozen=True)
class Shard:
    """A file, or a row group of a Parquet file, which is tagged as a whole."""

    name: str
    """Name of what is made of it, without suffix."""
    file: str
    form: SourceFormat
    bytes: int
    digest: str
    """Hash of its bytes."""
    lines: int
    """Number of its lines or rows, as far as line ends are seen: a file in gzip has fewer."""
    group: int = 0
    """Number of the row group."""
    first: int = 1
    """Number of its first line or row in the file."""


def source_format(name: str, named: str | None) -> SourceFormat:
    """Return the format of a file: the one that is named, else by its ending, with or without .gz."""
    path = Path(name.removesuffix(".gz"))
    if named == "parquet" or (named is None and path.suffix.lower() == ".parquet"):
        return "parquet"
    return format_of(path, named)


def find_shards(address: Address, name: str, form: SourceFormat) -> list[Shard]:
    """Read a file once, and return its shards; an empty file has none."""
    stem = str(PurePosixPath(name.removesuffix(".gz")).with_suffix(""))
    with address.opened() as file:
        if form != "parquet":
            n_bytes, digest, n_lines = _contents(file)
            return [Shard(stem, str(address), form, n_bytes, digest, max(1, n_lines))] if n_bytes else []
        if name.endswith(".gz"):
            raise DataError(f"{address}: expected a Parquet file as it is, got one packed with gzip; unpack it")
        shards, first = [], 1
        with opened_parquet(file, str(address)) as table:
            n_groups = table.num_row_groups
            for group in range(n_groups):
                part = stem if n_groups == 1 else f"{stem}-{group + 1:05}-of-{n_groups:05}"
                n_bytes, digest, _ = _contents(file, *_extent(table, group))
                n_rows = table.metadata.row_group(group).num_rows
                shards.append(Shard(part, str(address), form, n_bytes, digest, n_rows, group, first))
                first += n_rows
        return shards


def read_shard(
    shard: Shard, language: str, cutting: Cutting, on_bad_record: OnBadRecord, unit: Unit = Unit.WORD
) -> Iterator[tuple[int, Item]]:
    """Yield the sentences of a shard, each with the line (or row) where its record begins."""
    for number, record in _records(shard):
        try:
            if isinstance(record, dict):
                items = [check_length(item, shard.file) for item in row_items(record, language, cutting)]
            else:
                form = cast("Format", shard.form)
                file = BytesIO(record)
                items = list(read_items(file, shard.file, form, language, cutting, unit=unit, first=number))
        except DataError as error:
            text = str(record) if isinstance(record, dict) else record[:_SHOWN].decode(errors="replace")
            on_bad_record(number, str(error), text)
        else:
            yield from ((number, item) for item in items)


def _records(shard: Shard) -> Iterator[tuple[int, bytes | dict[str, Any]]]:
    """Yield the rows of a shard, or its lines or blocks of lines, each with its number, if its bytes are as planned."""
    with Address(shard.file).opened() as file:
        if shard.form == "parquet":
            with opened_parquet(file, shard.file) as table:
                is_there = shard.group < table.num_row_groups
                _check(shard, file, _extent(table, shard.group) if is_there else (0, 0))
                parts = table.iter_batches(row_groups=[shard.group])
                for number, row in enumerate((row for part in parts for row in part.to_pylist()), start=shard.first):
                    yield number, json.loads(json.dumps(row, default=str))  # dates as text, as JSON lines have them
            return
        _check(shard, file)
        lines = _lines(BytesIO(unpacked(file.read(), shard.file, packed=True)) if shard.file.endswith(".gz") else file)
        first, record = 1, []
        for number, line in enumerate(lines, start=1):
            record.append(line)
            if shard.form not in ("conllu", "bio") or not line.strip():  # in these, records end at a blank line
                yield first, b"".join(record)
                first, record = number + 1, []
        if record:
            yield first, b"".join(record)


def _lines(file: BufferedIOBase) -> Iterator[bytes]:
    """Yield the lines of a file; of one that is too long, only so much that its reader refuses it."""
    while line := file.readline(LONGEST_LINE + 1):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(2**20)
        yield line


def _check(shard: Shard, file: BufferedIOBase, extent: tuple[int, int | None] = (0, None)) -> None:
    n_bytes, digest, _ = _contents(file, *extent)
    if (n_bytes, digest) != (shard.bytes, shard.digest):
        raise DataError(
            f"{shard.file}: expected the {shard.bytes:,} bytes that were there when the run began, got others "
            f"({n_bytes:,} bytes): the file has changed; run the command again with --force"
        )
    file.seek(0)


def _contents(file: BufferedIOBase, start: int = 0, end: int | None = None) -> tuple[int, str, int]:
    """Return the number of bytes of a file, or of a part of it, their hash, and the number of line ends."""
    digest, n_bytes, n_lines = blake2b(digest_size=16), 0, 0
    file.seek(start)
    while block := file.read(2**20 if end is None else min(2**20, end - start - n_bytes)):
        digest.update(block)
        n_bytes += len(block)
        n_lines += block.count(b"\n")
    return n_bytes, digest.hexdigest(), n_lines


def _extent(table: "ParquetFile", group: int) -> tuple[int, int]:
    """Return the first byte of a row group, and the one after its last."""
    metadata = table.metadata.row_group(group)
    columns = [metadata.column(i) for i in range(metadata.num_columns)]
    starts = [column.dictionary_page_offset or column.data_page_offset for column in columns]
    ends = [start + column.total_compressed_size for start, column in zip(starts, columns, strict=True)]
    return min(starts), max(ends)
