"""Files by their address: a path on this machine, or any that fsspec knows, such as s3://bucket/news/*.jsonl."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase, BufferedReader
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from crossfill.errors import DataError
from crossfill.files import write_atomically

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_BUFFER = 2**20
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Place:
    """A file or folder."""

    address: str

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> "Place":
        return Place(f"{self.address.rstrip('/')}/{name}")

    @property
    def local(self) -> Path | None:
        """Its path, if it is on this machine's file system."""
        return None if "://" in self.address else Path(self.address)

    @contextmanager
    def opened(self) -> Iterator[BufferedIOBase]:
        """The file, open for reading from any byte on."""
        with _told(self.address):
            files, path = _resolved(self.address)
            raw = files.open(path, "rb", cache_type="readahead", block_size=_BUFFER) if self.local is None else None
            file = Path(path).open("rb") if raw is None else BufferedReader(cast("Any", raw), _BUFFER)  # noqa: SIM115
        with file:
            yield cast("BufferedIOBase", file)

    def read(self) -> bytes | None:
        """All bytes of the file; none if there is no such file."""
        with _told(self.address):
            files, path = _resolved(self.address)
            return cast("bytes", files.cat_file(path)) if files.isfile(path) else None

    def write(self, content: bytes) -> None:
        """Write the file as a whole or not at all: renamed into place here, put as one object elsewhere."""
        if self.local is not None:
            write_atomically(self.local, content)
            return
        with _told(self.address):
            files, path = _resolved(self.address)
            files.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
            files.pipe_file(path, content)

    def remove(self) -> None:
        """Delete the file."""
        with _told(self.address):
            files, path = _resolved(self.address)
            files.rm_file(path)

    def sizes(self) -> dict[str, int]:
        """The sizes of all files in the folder, by their names relative to it; none if there is no such folder."""
        with _told(self.address):
            files, path = _resolved(self.address)
            if not files.isdir(path):
                return {}
            found = cast("dict[str, dict[str, Any]]", files.find(path, detail=True))
            return {str(PurePosixPath(name).relative_to(path)): int(about["size"]) for name, about in found.items()}

    def matches(self) -> dict[str, "Place"]:
        """The files that an address means, by short names: one, all in a folder, or all that match a pattern."""
        with _told(self.address):
            files, path = _resolved(self.address)
            pattern = self.local is None or not self.local.exists()
            if pattern and _PATTERN.search(self.address):
                root = path[: _PATTERN.search(path).start()].rpartition("/")[0]  # pyright: ignore[reportOptionalMemberAccess]
                found = [name for name in sorted(map(str, files.glob(path))) if files.isfile(name)]
            elif files.isdir(path):
                root, found = path, sorted(cast("list[str]", files.find(path)))
                found = [name for name in found if not PurePosixPath(name).name.startswith(".")]
            else:
                root, found = str(PurePosixPath(path).parent), [path] if files.isfile(path) else []
            if not found:
                raise DataError(f"{self.address}: expected files to read, found none; check the path")
            full = str if self.local is not None else files.unstrip_protocol
            return {str(PurePosixPath(name).relative_to(root or "/")): Place(full(name)) for name in found}


def _resolved(address: str) -> "tuple[AbstractFileSystem, str]":
    from fsspec.core import url_to_fs

    return url_to_fs(address)


@contextmanager
def _told(address: str) -> Iterator[None]:
    """Errors of file systems, and of ones that are not installed, as errors of data."""
    try:
        yield
    except ImportError as error:
        raise DataError(f"{address}: expected a file system that is installed; {error}") from None
    except ValueError as error:
        raise DataError(f"{address}: expected an address that can be read; {error}") from None
    except OSError as error:
        raise DataError(f"{address}: expected a readable file or folder; {error.strerror or error}") from None
