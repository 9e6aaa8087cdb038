"""`crossfill report RUN`: tables, figures and one HTML page of a study."""

from pathlib import Path
from typing import Annotated

import typer

from crossfill.cli.options import QUIET, check_folder, check_writable
from crossfill.cli.output import print_table

LONGEST = 40
"""Tables with more rows are not shown in the terminal."""


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a study, as crossfill experiment leaves it.")],
    out: Annotated[Path | None, typer.Option(help="Folder for tables and figures. [default: the run's]")] = None,
) -> None:
    """Make the tables and figures of a study, and one page of them; an earlier report in the run is replaced."""
    from rich.console import Console

    from crossfill.report.rendering import terminal
    from crossfill.report.report import write_report

    if out is None or out.resolve() == run.resolve():
        check_writable(run)
    else:
        check_folder(out)
    written = write_report(run, out)
    console = Console(highlight=False)
    styled = console.is_terminal and not console.is_dumb_terminal
    for table in () if QUIET.get() else written.tables:
        if len(table.rows) <= LONGEST:
            print_table(console, terminal(table, styled))
    folder = out or run
    if written.missing:
        typer.echo(f"{written.missing} jobs have no result yet; run the same crossfill experiment again", err=True)
    typer.echo(
        f"{len(written.tables)} tables in {folder / 'tables'} (Markdown, LaTeX), {len(written.drawings)} figures in "
        f"{folder / 'figures'} (PDF, PNG), all of it in {written.page}"
    )
