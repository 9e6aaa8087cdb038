"""Rows of Parquet files, a run of them at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from typing import TYPE_CHECKING, Any

from crossfill.errors import DataError

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile


def count_rows(file: BufferedIOBase, where: str) -> int:
    """The number of rows of an open file; `where` names it in errors."""
    with _opened(file, where) as table:
        return int(table.metadata.num_rows)


def read_rows(file: BufferedIOBase, where: str, start: int, end: int) -> Iterator[dict[str, Any]]:
    """Rows `start` to `end` (exclusive) of an open file, one at a time; only the row groups that hold them are read."""
    with _opened(file, where) as table:
        place = 0
        for group in range(table.num_row_groups):
            n_rows = int(table.metadata.row_group(group).num_rows)
            first, last = max(start, place) - place, min(end, place + n_rows) - place
            if first < last:
                yield from table.read_row_group(group).slice(first, last - first).to_pylist()
            place += n_rows


@contextmanager
def _opened(file: BufferedIOBase, where: str) -> "Iterator[ParquetFile]":
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise DataError(
            f"{where}: expected pyarrow for Parquet files, found none; install it (pip install 'crossfill[datasets]')"
        ) from None
    try:
        yield parquet.ParquetFile(file)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        told = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise DataError(f"{where}: expected a Parquet file; {told}; fetch it again") from None
