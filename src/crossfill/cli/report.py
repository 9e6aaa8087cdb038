"""`crossfill report RUN`: tables, figures and one HTML page of a study."""

from pathlib import Path
from typing import Annotated

import typer

LONGEST = 40
"""Tables with more rows are not shown in the terminal."""


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a study, as crossfill experiment leaves it.")],
    out: Annotated[Path | None, typer.Option(help="Folder for tables and figures. [default: the run's]")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no tables.")] = False,
) -> None:
    """Make the tables and figures of a study, and one page of all of them."""
    from rich.console import Console

    from crossfill.report.rendering import terminal
    from crossfill.report.report import write_report

    made = write_report(run, out)
    console = Console(highlight=False)
    for table in () if quiet else made.tables:
        if len(table.rows) <= LONGEST:
            console.print(terminal(table))
    folder = out or run
    if made.missing:
        typer.echo(f"{made.missing} jobs have no result yet; run the same crossfill experiment again", err=True)
    typer.echo(
        f"{len(made.tables)} tables in {folder / 'tables'} (Markdown, LaTeX), {len(made.drawings)} figures in "
        f"{folder / 'figures'} (PDF, PNG), all of it in {made.page}"
    )
