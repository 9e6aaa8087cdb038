"""The shared style of all figures: a palette safe for colour-blind readers, sizes for print, output files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from crossfill.report.rendering import method_label

WIDTH = 7.2
"""Inches: the text width of a two-column page."""


class Look(NamedTuple):
    """How a method is drawn, the same in every figure."""

    colour: str
    marker: str
    dashes: tuple[float, ...]


# Okabe and Ito's palette and relatives of it; markers and dashes tell methods apart in greyscale
LOOKS = {
    "bea": Look("#999999", "v", (1, 1)),
    "ns": Look("#CC79A7", "P", (4, 1, 1, 1)),
    "ls": Look("#E69F00", "s", (3, 2)),
    "jm": Look("#D55E00", "D", (6, 2)),
    "jm-embedding": Look("#B8860B", "X", (8, 2)),
    "jm-kernel": Look("#8C3B00", "d", (6, 1, 1, 1)),
    "pf-d": Look("#56B4E9", "^", (5, 1)),
    "pf-lr": Look("#0072B2", "o", (1, 0)),
}
OTHER = Look("#555555", "8", (1, 2))
TASK_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
TASK_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True)
class Drawing:
    """A figure with its file name, its title and its alternative text."""

    name: str
    title: str
    alt: str
    figure: Figure

    def save(self, folder: Path) -> bytes:
        """Write it as PDF for print and as PNG, and return the latter."""
        folder.mkdir(parents=True, exist_ok=True)
        picture = folder / f"{self.name}.png"
        with _style():
            self.figure.draw_without_rendering()
            self.figure.set_layout_engine("none")  # keep the layout: computing it again for each file is slow
            self.figure.savefig(picture.with_suffix(".pdf"), metadata={"CreationDate": None})
            self.figure.savefig(picture, dpi=180)
        return picture.read_bytes()


def _style() -> Any:
    return mpl.rc_context(fname=str(files("crossfill.report").joinpath("figures.mplstyle")))


@contextmanager
def canvas(height: float) -> Iterator[Figure]:
    """Make an empty figure in the shared style."""
    with _style():
        yield Figure(figsize=(WIDTH, height), layout="constrained")


def row_of_axes(figure: Figure, n: int, sharey: bool = False, widths: Sequence[float] | None = None) -> list[Axes]:
    """Make axes side by side."""
    return list(figure.subplots(1, n, squeeze=False, sharey=sharey, width_ratios=widths)[0])


def look(method: str) -> Look:
    """Return how a method is drawn."""
    return LOOKS.get(method, OTHER)


def plot(axes: Axes, method: str, x: ArrayLike, y: ArrayLike, **more: Any) -> None:
    """Draw a method's line in its colour and dashes."""
    axes.plot(x, y, color=look(method).colour, dashes=look(method).dashes, label=method_label(method), **more)


def legend_above(figure: Figure, columns: int, **more: Any) -> None:
    """Put one legend above all panels, with the entries of the first, which they share."""
    entries = figure.axes[0].get_legend_handles_labels()
    figure.legend(*entries, loc="outside upper right", ncols=columns, **more)
