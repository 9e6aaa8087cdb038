"""Cache of features on disk: one safetensors file per encoder, settings and text, mapped into memory when it is opened.

A file is named by a hash of all that its features depend on, so it is never out of date, and it is renamed into place
when it is complete, so processes can share a folder. Opening a file checks its header and its size, which takes no
longer for a large file; its digest is checked on request, by `crossfill cache check`.

A file holds one tensor, `features` (words × features, F16 or F32). Its metadata are `about`, a JSON object of what the
features were computed from and how; `label`, the encoder's name for display; and `digest`, of the tensor's bytes.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from crossfill.files import default_cache, replacing

Blocks = Callable[[], Iterable[np.ndarray]]
"""Computes features, in blocks of words from the first to the last."""

_TENSOR = "features"
_DTYPES = {"<f2": "F16", "<f4": "F32"}
_DIGEST = 16
_BLOCK = 1 << 24
_LONGEST_HEADER = 1 << 20


class Entry(NamedTuple):
    """A file in the cache, and what its features were computed from and how; nothing if its header is damaged."""

    path: Path
    bytes: int
    about: Mapping[str, Any]


class Key(NamedTuple):
    """What features are computed from and how, and the size of their table."""

    about: Mapping[str, Any]
    words: int
    width: int
    dtype: Literal["<f2", "<f4"]

    def described(self) -> dict[str, Any]:
        return {**self.about, "rows": self.words, "columns": self.width, "dtype": self.dtype}


class FeatureCache:
    """A folder of features; without one, features are computed and kept in memory."""

    def __init__(self, cache: Path | bool = True) -> None:
        root = default_cache() if cache is True else cache or None
        self.folder = None if root is None else root / "features"
        self._warned = False

    def fetch(self, key: Key, blocks: Blocks, label: str = "") -> np.ndarray:
        """Read features from the cache; if they are not there, compute and store them.

        `label` is the encoder's name for display; it does not affect which file is used.
        """
        path = self._path(key)
        if path is None or not key.words:
            return _in_memory(key, blocks)
        rows = _open(path)
        if rows is None:
            try:
                _write(path, key, {"about": json.dumps(key.described()), "label": label}, blocks)
                rows = _open(path)
            except OSError as error:  # which only costs time
                if not self._warned:
                    self._warned = True
                    problem = f"{self.folder}: cannot keep features ({error.strerror or error}); going on without"
                    print(f"{problem}. Make room, or name another folder with --cache", file=sys.stderr)  # noqa: T201
        return _in_memory(key, blocks) if rows is None else rows

    def holds(self, key: Key) -> bool:
        """Tell whether there is a file with these features."""
        return (path := self._path(key)) is not None and _open(path) is not None

    def drop(self, key: Key) -> None:
        """Delete the file of these features, if there is one."""
        if (path := self._path(key)) is not None:
            path.unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        """List all files in the cache, damaged ones included."""
        entries = []
        for path in sorted(self.folder.glob("*.safetensors")) if self.folder is not None else ():
            with suppress(FileNotFoundError):  # another process has just removed it
                metadata = _metadata(path)
                about = {"label": metadata["label"], **json.loads(metadata["about"])} if metadata else {}
                entries.append(Entry(path, path.stat().st_size, about))
        return entries

    def is_whole(self, entry: Entry) -> bool:
        """Tell whether the features in a file have the digest that they were stored with; reads all of it."""
        if (rows := _open(entry.path)) is None:
            return False
        digest = blake2b(digest_size=_DIGEST)
        data = rows.reshape(-1).view(np.uint8).data
        for start in range(0, len(data), _BLOCK):
            digest.update(data[start : start + _BLOCK])
        return digest.hexdigest() == _metadata(entry.path)["digest"]

    def clear(self) -> None:
        """Delete all files, with the temporary ones that killed processes left."""
        for path in self.folder.glob("*") if self.folder is not None else ():
            path.unlink(missing_ok=True)

    def _path(self, key: Key) -> Path | None:
        name = blake2b(json.dumps(key.described(), sort_keys=True).encode(), digest_size=_DIGEST).hexdigest()
        return None if self.folder is None else self.folder / f"{name}.safetensors"


def _in_memory(key: Key, blocks: Blocks) -> np.ndarray:
    rows, done = np.zeros((key.words, key.width), key.dtype), 0
    for block in blocks() if key.words else ():
        rows[done : done + len(block)] = block
        done += len(block)
    return rows


def _write(path: Path, key: Key, metadata: dict[str, str], blocks: Blocks) -> None:
    """Write a file block by block, so that features need no more memory than a block has."""
    with replacing(path) as file:
        file.write(_header(key, metadata | {"digest": "0" * 2 * _DIGEST}))
        digest = blake2b(digest_size=_DIGEST)
        for block in blocks():
            data = np.ascontiguousarray(block, key.dtype).data
            file.write(data)
            digest.update(data)
        file.seek(0)
        file.write(_header(key, metadata | {"digest": digest.hexdigest()}))


def _header(key: Key, metadata: dict[str, str]) -> bytes:
    """Make the header of a safetensors file: length of its JSON, then the JSON, padded to align the tensor."""
    shape = (key.words, key.width)
    n_bytes = key.words * key.width * np.dtype(key.dtype).itemsize
    tensor = {"dtype": _DTYPES[key.dtype], "shape": shape, "data_offsets": [0, n_bytes]}
    text = json.dumps({"__metadata__": metadata, _TENSOR: tensor}).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _open(path: Path) -> np.ndarray | None:
    """Map the rows of a file into memory; none if it is missing, or its header and its size do not fit together."""
    with suppress(OSError, SafetensorError), safe_open(path, "pt") as file:
        return file.get_tensor(_TENSOR).numpy()  # read when used, copied when written to
    return None


def _metadata(path: Path) -> dict[str, str]:
    """Read what a file says of its features; empty if it is damaged."""
    with suppress(OSError, ValueError, KeyError, TypeError), path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return json.loads(file.read(min(size, _LONGEST_HEADER)))["__metadata__"]
    return {}
