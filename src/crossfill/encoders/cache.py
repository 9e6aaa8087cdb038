"""Cache of features on disk: one file per encoder, settings and text, mapped into memory when it is opened again.

An entry is named by a hash of what its features depend on, so it can never be stale; it carries a checksum, so a
damaged one is detected and rebuilt; and it is renamed into place when complete, so processes can share a folder.
"""

import errno
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, Literal

import numpy as np

from crossfill.errors import EncoderError
from crossfill.files import default_cache, locked

Fill = Callable[[np.ndarray], None]
"""Writes all rows of the array it is given."""

_MAGIC = b"crossfill features 1\n"
_DIGEST = 16
_HEADER = 4096
"""Bytes before the first row: one page of memory."""
_BLOCK = 1 << 24


@dataclass(frozen=True)
class Entry:
    """A file in the cache."""

    path: Path
    bytes: int
    about: Mapping[str, Any]
    """What the features were computed from and how: encoder, layer, pooling, text."""


class FeatureCache:
    """A folder of features; without one, features are computed and kept in memory."""

    def __init__(self, cache: Path | bool = True) -> None:
        root = default_cache() if cache is True else cache or None
        self.folder = None if root is None else root / "features"
        self._told = False

    def fetch(
        self,
        about: Mapping[str, Any],
        shape: tuple[int, int],
        dtype: Literal["<f2", "<f4"],
        fill: Fill,
        label: str = "",
    ) -> np.ndarray:
        """The features that `about` describes: read from an intact entry on disk, else computed by `fill` and stored.

        `label` is the encoder's name for display; it does not affect which entry is used.
        """
        if self.folder is None or not shape[0]:
            return _filled(shape, dtype, fill)
        full = _described(about, shape, dtype)
        path = self.folder / f"{_name(full)}.features"
        if (found := _open(path)) is not None:
            return found
        place = self.folder / f".{token_hex(8)}.part"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part = place.open("x+b")
        except OSError as error:
            return self._without(error, shape, dtype, fill)
        try:
            with part, locked(place, wait=True):  # so that nobody takes it for a leftover
                try:
                    _reserve(part, _size(shape, dtype))
                except OSError as error:
                    return self._without(error, shape, dtype, fill)
                rows = _write(part, {"label": label[-500:], **full}, shape, dtype, fill)
                found = _open(place)
                if found is None and place.exists():
                    raise EncoderError(f"{place}: expected the features that were just written; is the disk failing?")
                with suppress(OSError):  # the folder was removed meanwhile: what is mapped stays in memory
                    place.replace(path)
                return rows if found is None else found
        finally:
            place.unlink(missing_ok=True)

    def _without(self, error: OSError, shape: tuple[int, int], dtype: str, fill: Fill) -> np.ndarray:
        """Go on without the cache, which only costs time, and say so once."""
        if not self._told:
            self._told = True
            print(  # noqa: T201
                f"{self.folder}: cannot keep features ({error.strerror or error}); going on without, and computing "
                "them again next time. Make room, or name another folder with --cache",
                file=sys.stderr,
            )
        return _filled(shape, dtype, fill)

    def holds(self, about: Mapping[str, Any], shape: tuple[int, int], dtype: Literal["<f2", "<f4"]) -> bool:
        """Whether there is an entry, intact or not, for the features that `about` describes."""
        return self.folder is not None and (self.folder / f"{_name(_described(about, shape, dtype))}.features").exists()

    def drop(self, about: Mapping[str, Any], shape: tuple[int, int], dtype: Literal["<f2", "<f4"]) -> None:
        """Delete the entry of these features, if there is one."""
        if self.folder is not None:
            (self.folder / f"{_name(_described(about, shape, dtype))}.features").unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        """All files in the cache, damaged ones included; `about` is empty where the header cannot be read."""
        if self.folder is None or not self.folder.is_dir():
            return []
        found = []
        for path in sorted(self.folder.glob("*.features")):
            with suppress(FileNotFoundError):  # another process has just removed it
                found.append(Entry(path, path.stat().st_size, _about(path)))
        return found

    def is_whole(self, entry: Entry) -> bool:
        """Whether an entry is intact."""
        return _open(entry.path) is not None

    def remove(self, entries: list[Entry]) -> None:
        """Delete these entries."""
        for entry in entries:
            entry.path.unlink(missing_ok=True)

    def remove_leftovers(self) -> int:
        """Delete temporary files that killed processes left behind; returns their number."""
        n_removed = 0
        for part in self.folder.glob(".*.part") if self.folder is not None else ():
            with locked(part, wait=False) as left:  # a process that still writes it holds its lock
                if left:
                    part.unlink(missing_ok=True)
                    n_removed += 1
        return n_removed


def _filled(shape: tuple[int, int], dtype: str, fill: Fill) -> np.ndarray:
    rows = np.zeros(shape, dtype)
    if shape[0]:
        fill(rows)
    return rows


def _described(about: Mapping[str, Any], shape: tuple[int, int], dtype: str) -> dict[str, Any]:
    return {**about, "rows": shape[0], "columns": shape[1], "dtype": dtype}


def _name(about: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=_DIGEST).hexdigest()


def _size(shape: tuple[int, int], dtype: str) -> int:
    return _HEADER + shape[0] * shape[1] * np.dtype(dtype).itemsize


def _reserve(file: IO[bytes], size: int) -> None:
    """Give the file its whole size on disk: a full disk is an error here, and would kill the process in `_write`."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
        else:
            return
    for start in range(0, size, _BLOCK):
        file.write(bytes(min(_BLOCK, size - start)))
    file.flush()
    os.fsync(file.fileno())


def _write(file: IO[bytes], about: Mapping[str, Any], shape: tuple[int, int], dtype: str, fill: Fill) -> np.ndarray:
    text = json.dumps(about).encode()
    room = _HEADER - len(_MAGIC) - _DIGEST
    if len(text) > room:
        raise EncoderError(f"expected a description of features of at most {room} bytes, got {len(text)}")
    rows = np.memmap(file.name, dtype, "r+", _HEADER, shape)
    fill(rows)
    rows.flush()
    file.seek(len(_MAGIC) + _DIGEST)
    file.write(text.ljust(room))
    file.flush()
    digest = _checksum(file)
    file.seek(0)
    file.write(_MAGIC + digest)
    file.flush()
    return rows


def _open(path: Path) -> np.ndarray | None:
    """The rows of an entry; none if it is missing or damaged."""
    about = _about(path)
    with suppress(OSError, KeyError, ValueError, TypeError):
        shape = (int(about["rows"]), int(about["columns"]))
        if path.stat().st_size != _size(shape, about["dtype"]):
            return None
        with path.open("rb") as file:
            if file.read(len(_MAGIC) + _DIGEST)[len(_MAGIC) :] != _checksum(file):
                return None
        return np.memmap(path, about["dtype"], "c", _HEADER, shape)  # copy-on-write: torch expects writable memory
    return None


def _about(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError), path.open("rb") as file:
        header = file.read(_HEADER)
        found = json.loads(header[len(_MAGIC) + _DIGEST :])
        if header.startswith(_MAGIC) and isinstance(found, dict):
            return found
    return {}


def _checksum(file: IO[bytes]) -> bytes:
    """The digest of all that follows it in an open file."""
    digest = blake2b(digest_size=_DIGEST)
    file.seek(len(_MAGIC) + _DIGEST)
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.digest()
