"""Cache of parsed corpora on disk, in safetensors files that are mapped into memory when they are opened again.

An entry is named by the place of a file and by how it was read, and says the file's size and time of change; if they
differ, the file is read again. Entries are renamed into place when complete, so processes can share a folder.
"""

import json
import mmap
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as serialized

from crossfill.data.readers import Reading
from crossfill.files import write_atomically
from crossfill.grid.column import Column
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Unit

_DTYPES = {"U8": np.dtype("u1"), "I32": np.dtype("<i4"), "I64": np.dtype("<i8"), "BOOL": np.dtype("?")}


def entry_path(folder: Path, source: Path, *how: str) -> Path:
    """Name the entry of a file that is read in this way."""
    key = "\0".join((str(source.resolve()), *how)).encode("utf-8", "surrogateescape")
    return folder / "corpora" / f"{blake2b(key, digest_size=16).hexdigest()}.safetensors"


def file_state(source: Path) -> str:
    """Return size and time of change of a file: while they are the same, it is not read again."""
    status = source.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def load_reading(path: Path, state: str) -> Reading | None:
    """Open an entry; none if it is missing or cut off, or if the file was not in this state when it was read."""
    try:
        about, columns = _opened(path)
        if about["state"] != state:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    corpus = Corpus(
        Column(_strings(columns["words"]), columns["word_codes"]),
        Column(_strings(columns["labels"]), columns["label_codes"]),
        columns["spaces"],
        columns["offsets"],
        Unit(about["unit"]),
        columns["seconds"],
    )
    changes = json.loads(about["reading"])
    changes |= {name: tuple((line, what) for line, what in changes[name]) for name in ("lost", "cut")}
    return Reading(corpus, **changes)


def save_reading(path: Path, state: str, reading: Reading) -> None:
    """Write an entry to a temporary file, then rename it, so that readers never see a partial one."""
    corpus = reading.corpus
    columns = {
        "words": _bytes(corpus.words),
        "word_codes": corpus.words.codes.astype("<i4", copy=False),
        "labels": _bytes(corpus.labels),
        "label_codes": corpus.labels.codes.astype("<i4", copy=False),
        "spaces": corpus.spaces,
        "offsets": corpus.offsets.astype("<i8", copy=False),
        "seconds": corpus.seconds.astype("<i8", copy=False),
    }
    columns = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    changes = {name: value for name, value in asdict(reading).items() if name != "corpus"}
    about = {"state": state, "unit": str(corpus.unit), "reading": json.dumps(changes), "digest": _digest(columns)}
    write_atomically(path, serialized(columns, about))


def is_intact(path: Path) -> bool:
    """Tell whether the bytes of an entry are those that were written; this reads all of it."""
    try:
        about, columns = _opened(path)
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return about["digest"] == _digest(columns)


def _opened(path: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Map the arrays of a safetensors file into memory, where its own library would copy them."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = int.from_bytes(mapped[:8], "little")
    header = json.loads(mapped[8 : 8 + size])
    about = header.pop("__metadata__")
    columns = {}
    for name, tensor in header.items():
        start, end = tensor["data_offsets"]
        dtype = _DTYPES[tensor["dtype"]]
        columns[name] = np.frombuffer(mapped, dtype, (end - start) // dtype.itemsize, 8 + size + start)
    return about, columns


def _digest(columns: dict[str, np.ndarray]) -> str:
    digest = blake2b(digest_size=16)
    for name in sorted(columns):
        digest.update(columns[name].tobytes())
    return digest.hexdigest()


def _bytes(column: Column) -> np.ndarray:
    # words contain no line ends, so these can separate them; text decoded from UTF-8 has no surrogates
    return np.frombuffer("".join(f"{text}\n" for text in column.vocabulary).encode("utf-8"), dtype=np.uint8)


def _strings(raw: np.ndarray) -> tuple[str, ...]:
    return tuple(raw.tobytes().decode("utf-8").split("\n")[:-1])
