"""Errors caused by input rather than by bugs: users see one message, never a traceback."""

from collections.abc import Iterable
from difflib import get_close_matches


class CrossfillError(Exception):
    """Bad input. The message says what was expected, what was found, where, and what to do."""


class ConfigError(CrossfillError):
    """An unknown setting, or a value that it cannot have."""


class DataError(CrossfillError):
    """A corpus, label or cell that is unknown or cannot be used."""


class EncoderError(CrossfillError):
    """A pretrained encoder that is missing, incomplete or not supported."""


class CheckpointError(CrossfillError):
    """A model folder that is missing, damaged, or from another run."""


class ExportError(CrossfillError):
    """A model that cannot be exported to the requested format."""


class TrainingError(CrossfillError):
    """A training run that cannot continue."""


class OutputError(CrossfillError):
    """A file or folder that cannot be written, or that holds finished work."""


class StudyError(CrossfillError):
    """A study that cannot be run or reported, or some of whose jobs failed."""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Describe an unknown name, with the closest known spelling where there is one.

    >>> unknown("task", "nre", ["pos", "ner"])
    "unknown task 'nre'; did you mean 'ner'? known: pos, ner"
    """
    names, name = list(known), name if len(name) <= 100 else name[:100] + "…"
    close = get_close_matches(name, names, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ";"
    shown = ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
    return f"unknown {kind} '{name}'{hint} known: {shown or 'none'}"


def listed(names: Iterable[object], most: int = 10) -> str:
    """Join names; of more than `most`, the first ones and how many more there are."""
    texts = list(map(str, names))
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if texts[most:] else "")


def unreadable(where: object, error: OSError) -> DataError:
    """Return the error for a file that the system does not let us read."""
    return DataError(f"{where}: expected a readable file; {error.strerror or error}; check the path")


def first_line(error: BaseException | None) -> str:
    """Return the beginning of an error's message, or its type if it has none."""
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__


def missing_package(package: str, extra: str) -> str:
    """Say that a package is not installed, and which extra of crossfill brings it."""
    return f"expected {package}, found none; install it with: pip install 'crossfill[{extra}]'"
