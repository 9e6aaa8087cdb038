"""Crossfill fills the empty cells of a task × language grid: tags text where a language has no data for a task."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crossfill.config import Config as Config
    from crossfill.data.folder import load_grid as load_grid
    from crossfill.errors import CrossfillError as CrossfillError
    from crossfill.evaluation.results import Results as Results
    from crossfill.grid.cells import Cell as Cell
    from crossfill.grid.cells import Grid as Grid
    from crossfill.grid.sentence import Corpus as Corpus
    from crossfill.grid.sentence import Sentence as Sentence
    from crossfill.prediction.tagging import Tagging as Tagging
    from crossfill.prediction.tagging import TaggingOptions as TaggingOptions
    from crossfill.tagger.check import check as check
    from crossfill.tagger.tagger import Tagger as Tagger
    from crossfill.tagger.tagger import load as load
    from crossfill.tagger.training_run import train as train

_HOMES = {
    "crossfill.config": ["Config"],
    "crossfill.data.folder": ["load_grid"],
    "crossfill.errors": ["CrossfillError"],
    "crossfill.evaluation.results": ["Results"],
    "crossfill.grid.cells": ["Cell", "Grid"],
    "crossfill.grid.sentence": ["Corpus", "Sentence"],
    "crossfill.prediction.tagging": ["Tagging", "TaggingOptions"],
    "crossfill.tagger.check": ["check"],
    "crossfill.tagger.tagger": ["Tagger", "load"],
    "crossfill.tagger.training_run": ["train"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = ["__version__", *_HOME]  # pyright: ignore[reportUnsupportedDunderAll]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import the module of a public name on first use, so that `import crossfill` is fast and does not load torch."""
    if name not in _HOME:
        raise AttributeError(f"module 'crossfill' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
