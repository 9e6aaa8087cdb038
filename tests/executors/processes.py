"""Processes of workers."""

from pathlib import Path


def children(pid: int) -> list[int]:
    """Worker processes of a process; multiprocessing's resource tracker is none."""
    return [child for child, parent in _parents().items() if parent == pid and "spawn_main" in command_of(child)]


def descendants(pid: int) -> list[int]:
    """All processes that a process has started, and those that these have started."""
    parents, found = _parents(), [pid]
    for known in found:
        found += [child for child, parent in parents.items() if parent == known]
    return found[1:]


def command_of(pid: int) -> str:
    """The command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _parents() -> dict[int, int]:
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(path.parent.name)] = int(path.read_text().rsplit(") ", 1)[1].split()[1])
        except OSError:
            continue
    return found
