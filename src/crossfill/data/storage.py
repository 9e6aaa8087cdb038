"""Cache of parsed corpora on disk, mapped into memory when they are opened again.

An entry is named by a hash of the file's bytes and of how it was read, so it can never be stale; it carries a checksum,
so a damaged one is detected and rebuilt; and it is renamed into place when complete, so processes can share a folder.
"""

import json
import mmap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from crossfill.data.labels import Scheme
from crossfill.files import write_atomically
from crossfill.grid.column import Column
from crossfill.grid.sentence import Corpus
from crossfill.grid.unit import Unit

_MAGIC = b"crossfill corpus 2\n"
_DIGEST = 16
_ALIGN = 8
_DTYPES = {
    "words": "u1",
    "word_codes": "<i4",
    "labels": "u1",
    "label_codes": "<i4",
    "spaces": "?",
    "offsets": "<i8",
    "seconds": "<i8",
}


@dataclass(frozen=True)
class Reading:
    """A corpus as it was read, and what reading it changed."""

    corpus: Corpus
    scheme: Scheme = "none"
    repaired: int = 0
    """Tags that do not fit the scheme (`mixed` only)."""
    normalised: int = 0
    """Words that were not in Unicode's composed form (NFC)."""
    prefix: str = ""
    """The language prefix that was removed from every word."""
    recased: int = 0
    """Tags that were written in another case."""
    columns: str = ""
    """How the columns of words and tags were recognised; empty if that was no question."""
    doubtful: bool = False
    """Whether these columns are so unusual that a person should look at them."""
    lost: tuple[tuple[int, str], ...] = ()
    """The first sentences that were left out: the number of a bad line, and what is wrong with it."""
    n_lost: int = 0
    cut: tuple[tuple[int, str], ...] = ()
    """The first lines with words that were split where a span begins or ends, and what was split."""
    n_cut: int = 0


def entry_name(data: bytes, *how: str) -> str:
    """The name of the entry for these bytes read in this way."""
    digest = blake2b(data, digest_size=_DIGEST)
    digest.update("\0".join(how).encode("utf-8", "surrogateescape"))
    return f"{digest.hexdigest()}.corpus"


def load(path: Path) -> Reading | None:
    """The reading in an entry; none if it is missing or damaged."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    body = memoryview(mapped)[len(_MAGIC) + _DIGEST :]
    if mapped[: len(_MAGIC)] != _MAGIC or mapped[len(_MAGIC) : len(_MAGIC) + _DIGEST] != _checksum(body):
        return None
    size = int.from_bytes(body[:8], "little")
    header = json.loads(bytes(body[8 : 8 + size]))
    start = 8 + size
    columns: dict[str, np.ndarray] = {}
    for name, dtype in _DTYPES.items():
        columns[name] = np.frombuffer(body, dtype, header["lengths"][name], start)
        start += _padded(columns[name].nbytes)
    corpus = Corpus(
        Column(_strings(columns["words"]), columns["word_codes"]),
        Column(_strings(columns["labels"]), columns["label_codes"]),
        columns["spaces"],
        columns["offsets"],
        Unit(header["unit"]),
        columns["seconds"],
    )
    told = header["reading"]
    told |= {name: tuple((line, what) for line, what in told[name]) for name in ("lost", "cut")}
    return Reading(corpus, **told)


def save(path: Path, reading: Reading) -> None:
    """Write an entry to a temporary file, then rename it, so that readers never see a partial one."""
    corpus = reading.corpus
    columns: Mapping[str, np.ndarray] = {
        "words": _bytes(corpus.words),
        "word_codes": corpus.words.codes,
        "labels": _bytes(corpus.labels),
        "label_codes": corpus.labels.codes,
        "spaces": corpus.spaces,
        "offsets": corpus.offsets,
        "seconds": corpus.seconds,
    }
    told = {name: value for name, value in asdict(reading).items() if name != "corpus"}
    header = {"reading": told, "unit": corpus.unit, "lengths": {name: len(column) for name, column in columns.items()}}
    # spaces in the header align the columns for their types
    lead = len(_MAGIC) + _DIGEST + 8
    text = json.dumps(header).encode()
    text += b" " * (-(lead + len(text)) % _ALIGN)
    parts = [len(text).to_bytes(8, "little"), text]
    for name, dtype in _DTYPES.items():
        raw = np.ascontiguousarray(columns[name], dtype=dtype).tobytes()
        parts += [raw, bytes(_padded(len(raw)) - len(raw))]
    body = b"".join(parts)
    write_atomically(path, _MAGIC + _checksum(body) + body)


def _checksum(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=_DIGEST).digest()


def _padded(n_bytes: int) -> int:
    return n_bytes + -n_bytes % _ALIGN


def _bytes(column: Column) -> np.ndarray:
    # words contain no line ends, so these can separate them; text decoded from UTF-8 has no surrogates
    return np.frombuffer("".join(f"{text}\n" for text in column.vocabulary).encode("utf-8"), dtype=np.uint8)


def _strings(raw: np.ndarray) -> tuple[str, ...]:
    return tuple(raw.tobytes().decode("utf-8").split("\n")[:-1])
