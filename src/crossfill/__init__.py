"""Crossfill fills the empty cells of a task × language grid: tags text where a language has no data for a task."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crossfill.config import Config as Config
    from crossfill.data.folder import load_grid as load_grid
    from crossfill.doubt import Doubt as Doubt
    from crossfill.errors import CrossfillError as CrossfillError
    from crossfill.grid import Cell as Cell
    from crossfill.grid import Grid as Grid
    from crossfill.sentence import Corpus as Corpus
    from crossfill.sentence import Sentence as Sentence
    from crossfill.tagger import load as load
    from crossfill.tagger import train as train

_HOMES = {
    "Cell": "crossfill.grid",
    "Config": "crossfill.config",
    "Corpus": "crossfill.sentence",
    "CrossfillError": "crossfill.errors",
    "Doubt": "crossfill.doubt",
    "Grid": "crossfill.grid",
    "Sentence": "crossfill.sentence",
    "load": "crossfill.tagger",
    "load_grid": "crossfill.data.folder",
    "train": "crossfill.tagger",
}

__all__ = [
    "Cell",
    "Config",
    "Corpus",
    "CrossfillError",
    "Doubt",
    "Grid",
    "Sentence",
    "__version__",
    "load",
    "load_grid",
    "train",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Public names load their module on first use, so that `import crossfill` stays instant and without torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'crossfill' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
