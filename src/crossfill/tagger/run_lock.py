"""Whether a run may write into a model folder: nothing finished is overwritten unasked, and no two runs meet in one."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal

from crossfill import checkpoint
from crossfill.errors import CheckpointError
from crossfill.files import locked


def run_state(folder: Path) -> Literal["empty", "unfinished", "finished"]:
    """Tell how far the run in a folder has come."""
    if (folder / checkpoint.STATE).exists() or (folder / checkpoint.HELD_OUT).exists():
        return "unfinished"
    if not (folder / checkpoint.DESCRIPTION).exists():
        return "empty"
    return "finished" if (folder / checkpoint.CARD).exists() else "unfinished"


@contextmanager
def locked_for_run(folder: Path, resume: bool, force: bool) -> Iterator[None]:
    """Lock a folder for a run, from before its first work to its end, when what only served to resume it is deleted.

    A folder that holds a run is refused, unless it is resumed, or given up with `force`. A run that fails before it
    has written anything leaves no lock file.
    """
    new = not folder.exists()
    with ExitStack() as stack:
        try:
            held = stack.enter_context(locked(folder / checkpoint.LOCK, wait=False))
        except OSError as error:
            raise CheckpointError(
                f"{folder}: expected a folder that can be written; {error.strerror}; name another one with --out"
            ) from None
        if not held:
            raise CheckpointError(f"{folder}: another process is training into this folder; wait, or name another one")
        try:
            _make_ready(folder, resume, force)
            yield
            _remove_state(folder)
        except BaseException:
            with suppress(OSError):
                if [path.name for path in folder.iterdir()] == [checkpoint.LOCK]:
                    (folder / checkpoint.LOCK).unlink()
                    if new:
                        folder.rmdir()
            raise


def _remove_state(folder: Path) -> None:
    shutil.rmtree(folder / checkpoint.HELD_OUT, ignore_errors=True)
    (folder / checkpoint.STATE).unlink(missing_ok=True)


def _make_ready(folder: Path, resume: bool, force: bool) -> None:
    state = run_state(folder)
    if resume and state == "empty":
        raise CheckpointError(f"{folder}: expected a run to resume, found none; train without --resume")
    if resume and state == "finished":
        raise CheckpointError(
            f"{folder}: this run is finished, there is nothing to resume; --force (force=True) trains it again"
        )
    if resume or state == "empty":
        return
    if not force:
        what = "a finished model; "
        if state == "unfinished":
            what = "a run that is not finished; --resume (resume=True) goes on with it, "
        raise CheckpointError(
            f"{folder}: expected an empty folder, found {what}--force (force=True) replaces it, or name another "
            "folder with --out"
        )
    _remove_state(folder)
    checkpoint.remove_run(folder)
