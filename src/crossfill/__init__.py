"""Crossfill fills the empty cells of a task × language grid: tags text where a language has no data for a task."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crossfill.config import Config as Config
    from crossfill.data.folder import load_grid as load_grid
    from crossfill.errors import CrossfillError as CrossfillError
    from crossfill.evaluation.table import Results as Results
    from crossfill.grid.cells import Cell as Cell
    from crossfill.grid.cells import Grid as Grid
    from crossfill.grid.sentence import Corpus as Corpus
    from crossfill.grid.sentence import Sentence as Sentence
    from crossfill.prediction.tagging import Tagging as Tagging
    from crossfill.prediction.tagging import TaggingOptions as TaggingOptions
    from crossfill.tagger.tagger import Tagger as Tagger
    from crossfill.tagger.tagger import load as load
    from crossfill.tagger.training_run import train as train

_HOMES = {
    "Cell": "crossfill.grid.cells",
    "Config": "crossfill.config",
    "Corpus": "crossfill.grid.sentence",
    "CrossfillError": "crossfill.errors",
    "Grid": "crossfill.grid.cells",
    "Results": "crossfill.evaluation.table",
    "Sentence": "crossfill.grid.sentence",
    "Tagger": "crossfill.tagger.tagger",
    "Tagging": "crossfill.prediction.tagging",
    "TaggingOptions": "crossfill.prediction.tagging",
    "load": "crossfill.tagger.tagger",
    "load_grid": "crossfill.data.folder",
    "train": "crossfill.tagger.training_run",
}

__all__ = [
    "Cell",
    "Config",
    "Corpus",
    "CrossfillError",
    "Grid",
    "Results",
    "Sentence",
    "Tagger",
    "Tagging",
    "TaggingOptions",
    "__version__",
    "load",
    "load_grid",
    "train",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import the module of a public name on first use, so that `import crossfill` is fast and does not load torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'crossfill' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
