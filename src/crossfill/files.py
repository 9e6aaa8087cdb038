"""The cache folder, shipped settings files, atomic writes and file locks."""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO


def default_cache() -> Path:
    """Return the cache folder: `$CROSSFILL_CACHE`, or the one that the system has for programs of the user."""
    from platformdirs import user_cache_path

    return Path(os.environ.get("CROSSFILL_CACHE") or user_cache_path("crossfill", appauthor=False))


def shipped(path: Path) -> Path:
    """Find the settings file at `path`, or else the one shipped with crossfill, as for `configs/frozen.yaml`."""
    inside, beside = Path(__file__).parent / "configs", Path(__file__).parents[2] / "configs"
    ours = [folder / path.name for folder in (inside, beside)] if path.parent in (Path(), Path("configs")) else []
    return next((candidate for candidate in (path, *ours) if candidate.is_file()), path)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file completely or not at all, even if the machine crashes."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when the block ends, and is removed if the block fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.parent / f".{path.name}-{secrets.token_hex(8)}"
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk; Windows has no such wait for folders."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write a JSON file atomically; without `indent`, everything is on one line."""
    content = json.dumps(value, indent=indent, ensure_ascii=False).encode("utf-8", "backslashreplace")
    write_atomically(path, content + b"\n")


@contextmanager
def locked(path: Path, wait: bool) -> Iterator[bool]:
    """Hold a lock file until the process ends at the latest; yields false if another has it and there is no `wait`."""
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    with suppress(Timeout):
        lock.acquire(timeout=-1 if wait else 0)
    try:
        yield lock.is_locked
    finally:
        lock.release()
