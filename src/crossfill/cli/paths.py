"""Files and folders that commands read and write: checked before any work; finished work is kept."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import cast

from crossfill.errors import OutputError, unreadable


def check_file(path: Path, source: Path | None = None, replace: bool = True) -> None:
    """Refuse a file that cannot be written, that is the input itself, or that exists and may not be replaced."""
    if path.is_dir():
        raise OutputError(f"{path}: expected a file to write, found a folder; name a file in it")
    if source is not None and path.exists() and path.samefile(source):
        raise OutputError(f"{path}: expected another file than the one that is read; name another with --out")
    if path.exists() and not replace:
        raise OutputError(f"{path}: expected a new file, found one that is there already; name another, or remove it")
    check_writable(path.parent)


def check_folder(path: Path) -> None:
    """Refuse a folder that cannot be written, or that has something in it."""
    check_writable(path)
    if path.is_dir() and (inside := next(path.iterdir(), None)) is not None:
        raise OutputError(
            f"{path}: expected a new or empty folder, found {inside.name} in it; name another, or empty it"
        )


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written, or cannot be made: a file is made there for a moment, and removed."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists() or place.is_symlink())
    if not there.is_dir():
        raise OutputError(f"{folder}: expected a folder to write to, found the file {there}; name another place")
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise OutputError(
            f"{folder}: expected a folder that can be written, got: {error.strerror} ({there}); change its "
            "permissions, or name another place"
        ) from None


@contextmanager
def opened(path: Path | None) -> Iterator[BufferedIOBase]:
    """Open a file to read, or standard input if `path` is None."""
    if path is None:
        yield cast(BufferedIOBase, sys.stdin.buffer)
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from None
    with file:
        yield file
