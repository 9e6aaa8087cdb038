"""Cache of parsed corpora on disk, in safetensors files.

An entry is named by the place of a file and by how it was read, and says the file's size and time of change; if they
differ, the file is read again. Entries are renamed into place when complete, so processes can share a folder.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as serialized

from crossfill.data.readers import Reading
from crossfill.files import write_atomically
from crossfill.grid.sentence import Column, Corpus
from crossfill.grid.task import Unit


def cached(store: Path | None, source: Path, how: Sequence[str], read: Callable[[], Reading]) -> Reading:
    """Read a file in this way, or take what was read from the cache in `store` if the file has not changed since."""
    status = source.stat()
    state = f"{status.st_size} {status.st_mtime_ns}"
    key = "\0".join((str(source.resolve()), *how)).encode("utf-8", "surrogateescape")
    entry = None if store is None else store / "corpora" / f"{blake2b(key, digest_size=16).hexdigest()}.safetensors"
    if entry and (reading := load_reading(entry, state)) is not None:
        return reading
    reading = read()
    if entry:
        with suppress(OSError):  # a cache that cannot be written only costs time
            save_reading(entry, state, reading)
    return reading


def load_reading(path: Path, state: str) -> Reading | None:
    """Open an entry; none if it is missing or cut off, or if the file was not in this state when it was read."""
    try:
        with safe_open(path, "np") as file:
            about, columns = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError):
        return None
    if about["state"] != state:
        return None
    words, labels = (
        Column(tuple(columns[name].tobytes().decode("utf-8").split("\n")[:-1]), columns[f"{name}_codes"])
        for name in ("words", "labels")
    )
    unit = Unit(about["unit"])
    corpus = Corpus(words, labels, columns["spaces"], columns["offsets"], unit, columns["seconds"], columns["lines"])
    changes, notes, said = json.loads(about["reading"])
    return Reading(corpus, tuple(map(tuple, changes)), tuple(map(tuple, notes)), said)


def save_reading(path: Path, state: str, reading: Reading) -> None:
    """Write an entry to a temporary file, then rename it, so that readers never see a partial one."""
    corpus = reading.corpus
    columns = {
        "spaces": np.ascontiguousarray(corpus.spaces),
        "offsets": np.ascontiguousarray(corpus.offsets, dtype="<i8"),
        "seconds": np.ascontiguousarray(corpus.seconds, dtype="<i8"),
        "lines": np.ascontiguousarray(corpus.lines, dtype="<i4"),
    }
    for name, column in (("words", corpus.words), ("labels", corpus.labels)):
        # words contain no line ends, so these can separate them; text decoded from UTF-8 has no surrogates
        text = "".join(f"{text}\n" for text in column.vocabulary).encode("utf-8")
        columns |= {name: np.frombuffer(text, np.uint8), f"{name}_codes": np.ascontiguousarray(column.codes, "<i4")}
    said = json.dumps([reading.changes, reading.notes, reading.columns])
    about = {"state": state, "unit": str(corpus.unit), "reading": said}
    write_atomically(path, serialized(columns, about))
