"""The shared style of all figures: a palette safe for colour-blind readers, sizes for print, output files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from crossfill.report.rendering import method_label, true_minus

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
    "ws": Look("#7D3F63", "p", (4, 1, 1, 1, 1, 1)),
    "ls": Look("#E69F00", "s", (3, 2)),
    "jm": Look("#D55E00", "D", (6, 2)),
    "jm-dropout": Look("#F0B48C", "<", (2, 2)),
    "jm-ensemble": Look("#B9A96C", ">", (2, 1)),
    "jm-typology": Look("#F0E442", "h", (3, 1)),
    "jm-kernel": Look("#8C3B00", "d", (6, 1, 1, 1)),
    "jm-deep": Look("#000000", "X", (8, 2)),
    "pf-d": Look("#56B4E9", "^", (5, 1)),
    "pf-lr": Look("#0072B2", "o", (1, 0)),
}
OTHER = Look("#555555", "8", (1, 2))
TASK_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
TASK_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SETTINGS: Any = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Drawing:
    """A figure with its file name, its title and its alternative text."""

    name: str
    title: str
    alt: str
    figure: Figure

    def save(self, folder: Path) -> None:
        """Write it as PDF for print and as PNG."""
        folder.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context(SETTINGS):
            self.figure.draw_without_rendering()
            self.figure.set_layout_engine("none")  # keep the layout: computing it again for each file is slow
            self.figure.savefig(folder / f"{self.name}.pdf", metadata={"CreationDate": None})
            self.figure.savefig(folder / f"{self.name}.png", dpi=180)


@contextmanager
def canvas(width: float, height: float) -> Iterator[Figure]:
    """Make an empty figure in the shared style."""
    with mpl.rc_context(SETTINGS):
        yield Figure(figsize=(width, height), layout="constrained")


def row_of_axes(figure: Figure, n: int, sharey: bool = False, widths: Sequence[float] | None = None) -> list[Axes]:
    """Make axes side by side."""
    return list(figure.subplots(1, n, squeeze=False, sharey=sharey, width_ratios=widths)[0])


def chunks(items: Sequence[str], most: int) -> list[Sequence[str]]:
    """Split the items into rows of about the same length, none longer than `most`.

    >>> chunks("abcde", 3)
    ['abc', 'de']
    """
    n_rows = -(-len(items) // most)
    size = -(-len(items) // max(1, n_rows))
    return [items[i : i + size] for i in range(0, len(items), size)]


def look(method: str) -> Look:
    """Return how a method is drawn."""
    return LOOKS.get(method, OTHER)


def plot(axes: Axes, method: str, x: ArrayLike, y: ArrayLike, **more: Any) -> None:
    """Draw a method's line in its colour and dashes."""
    axes.plot(x, y, color=look(method).colour, dashes=look(method).dashes, label=method_label(method), **more)


def signed(value: float, digits: int = 2) -> str:
    """Return a number with a true minus sign."""
    return true_minus(f"{value:.{digits}f}")


def legend_above(figure: Figure, columns: int, **more: Any) -> None:
    """Put one legend above all panels, with the entries of the first, which they share."""
    entries = figure.axes[0].get_legend_handles_labels()
    figure.legend(*entries, loc="outside upper right", ncols=columns, **more)
