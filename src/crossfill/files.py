"""The cache folder, shipped settings files, atomic writes and file locks."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def default_cache() -> Path:
    """The cache folder: `$CROSSFILL_CACHE`, or `crossfill` in the user's cache folder."""
    if named := os.environ.get("CROSSFILL_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crossfill"


def shipped(path: Path) -> Path:
    """The settings file at `path`, or else the one shipped with crossfill, as for `configs/frozen.yaml`."""
    inside, beside = Path(__file__).parent / "configs", Path(__file__).parents[2] / "configs"
    ours = [folder / path.name for folder in (inside, beside)] if path.parent in (Path(), Path("configs")) else []
    return next((candidate for candidate in (path, *ours) if candidate.is_file()), path)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, even if the process is killed or the machine crashes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write a JSON file atomically; without `indent`, everything is on one line."""
    write_atomically(path, (json.dumps(value, indent=indent, ensure_ascii=False) + "\n").encode())


@contextmanager
def locked(path: Path, wait: bool) -> Iterator[bool]:
    """Hold a lock file; yields true if it is held. Without `wait`, yields false if another process holds it.

    The operating system releases the lock when the process ends, for whatever reason.
    """
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
