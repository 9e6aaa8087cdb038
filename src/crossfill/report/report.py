"""The report of a study: every table and figure as files, and one page of all of them."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from crossfill.files import write_atomically
from crossfill.report.figures import (
    bars,
    entropies,
    entropy_score,
    heatmap,
    language_similarity,
    learning_curves,
    posteriors,
    reliability,
    risk_coverage,
    training_curves,
)
from crossfill.report.figures.style import Drawing
from crossfill.report.page import page
from crossfill.report.rendering import FORMS, Table
from crossfill.report.tables import make_tables
from crossfill.studies.run_folder import Results, open_results

FIGURES: tuple[Callable[[Results], list[Drawing]], ...] = (
    bars.draw,
    heatmap.draw,
    entropies.draw,
    entropy_score.draw,
    reliability.draw,
    risk_coverage.draw,
    posteriors.draw,
    language_similarity.draw,
    learning_curves.draw,
    training_curves.draw,
)


class Report(NamedTuple):
    """The tables, figures and page of a report."""

    tables: list[Table]
    drawings: list[Drawing]
    page: Path
    missing: int
    """Jobs that have no result yet."""


def write_report(run: Path, out: Path | None = None) -> Report:
    """Make every table and figure that the run has results for, under `out` or the run folder itself."""
    results, out = open_results(run), out or run
    tables = make_tables(results)
    for table in tables:
        for ending, render in FORMS.items():
            write_atomically(out / "tables" / f"{table.name}.{ending}", render(table).encode())
    drawings = [drawing for draw in FIGURES for drawing in draw(results)]
    for drawing in drawings:
        drawing.save(out / "figures")
    pictures = {d.name: (out / "figures" / f"{d.name}.png").read_bytes() for d in drawings}
    write_atomically(out / "report.html", page(results, tables, drawings, pictures).encode())
    return Report(tables, drawings, out / "report.html", len(results.missing))
