"""A simulated Windows or macOS for child processes: what those systems lack is taken away before anything else runs.

A folder with this as `sitecustomize.py` on PYTHONPATH does it, in the process itself and in all that it spawns.
"""

import importlib
import os
import sys
import types

LACKING = {"windows": ("fcntl", "resource", "uvloop", "pwd", "grp", "termios"), "macos": ("uvloop",)}
FUNCTIONS = ("sched_getaffinity", "sched_setaffinity", "posix_fallocate", "process_cpu_count")


class _Missing:
    """Finds no module of these names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def find_spec(self, name: str, *_: object) -> None:
        if name in self.names:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)


def _msvcrt() -> types.ModuleType:
    """Windows' locks, over the files of this process: a second one on the same file is refused."""
    found, held = types.ModuleType("msvcrt"), {}
    found.LK_NBLCK, found.LK_UNLCK = 2, 0

    def locking(handle: int, mode: int, _: int) -> None:
        about = os.fstat(handle)
        place = (about.st_dev, about.st_ino)
        if mode == found.LK_UNLCK:
            held.pop(place, None)
        elif held.setdefault(place, handle) != handle:
            raise PermissionError(13, "Permission denied")

    found.locking = locking
    return found


def simulate(system: str) -> None:
    """Take away what a system lacks; Windows gets its own locks."""
    sys.meta_path.insert(0, _Missing(LACKING[system]))
    for name in LACKING[system]:
        sys.modules.pop(name, None)
    for name in FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)
    if system == "windows":
        importlib.import_module("subprocess")  # which would take msvcrt for a sign of Windows
        sys.modules["msvcrt"] = _msvcrt()


if __name__ == "sitecustomize":
    simulate(os.environ["SIMULATED_SYSTEM"])
