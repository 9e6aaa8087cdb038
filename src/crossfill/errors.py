"""What can go wrong because of an input, as opposed to a bug: always shown as one message, never as a traceback."""

from collections.abc import Iterable
from difflib import get_close_matches


class CrossfillError(Exception):
    """Bad input. The message says what was expected, what was found, where, and what to do."""


class ConfigError(CrossfillError):
    """A setting that does not exist, or a value it cannot take."""


class DataError(CrossfillError):
    """A corpus, label or cell that is not what the grid needs."""


class EncoderError(CrossfillError):
    """A pretrained encoder that is not there, not whole, or not one that can be used."""


class CheckpointError(CrossfillError):
    """A model folder that is missing, damaged, or of another run."""


class ExportError(CrossfillError):
    """A model that the wanted format cannot carry."""


class TrainingError(CrossfillError):
    """A run that cannot go on."""


class ReportError(CrossfillError):
    """A study's folder that cannot be reported on."""


class StudyError(CrossfillError):
    """A study that cannot be run, or of which jobs have failed."""


def unknown(kind: str, found: str, known: Iterable[str]) -> str:
    """The message for a name that is not among the known ones, with the closest spelling where there is one.

    >>> unknown("task", "nre", ["pos", "ner"])
    "unknown task 'nre'; did you mean 'ner'? known: pos, ner"
    """
    names = list(known)
    close = get_close_matches(found, names, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ";"
    shown = ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
    return f"unknown {kind} '{found}'{hint} known: {shown or 'none'}"
