"""Places that commands write to: checked before any work, and finished work is kept unless --force is given."""

import tempfile
from pathlib import Path

from crossfill.errors import OutputError


def check_file(path: Path, force: bool = True, source: Path | None = None) -> None:
    """Refuse a file that cannot be written, that is the input itself, or that is there already, unless forced."""
    if path.is_dir():
        raise OutputError(f"{path}: expected a file to write, found a folder; name a file in it")
    if source is not None and path.exists() and path.samefile(source):
        raise OutputError(f"{path}: expected another file than the one that is read; name another with --out")
    if path.exists() and not force:
        raise OutputError(f"{path}: expected a new file, found one that is there already; name another, or add --force")
    check_writable(path.parent)


def check_folder(path: Path, force: bool) -> None:
    """Refuse a folder that cannot be written, or that has something in it, unless forced."""
    check_writable(path)
    if not force and path.is_dir() and (found := next(path.iterdir(), None)) is not None:
        raise OutputError(
            f"{path}: expected a new or empty folder, found {found.name} in it; name another, or add --force"
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
