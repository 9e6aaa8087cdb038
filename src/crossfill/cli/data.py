"""`crossfill data`: fetch official corpora (needs a network), make artificial ones, convert formats."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crossfill.cli.options import MOST_SEED

if TYPE_CHECKING:
    from crossfill.data.download import Progress

app = typer.Typer(help="Official and artificial corpora.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Official and artificial corpora."""


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="ud, wikiann")],
    out: Annotated[Path, typer.Option(help="Data folder to fetch into.")] = Path("data"),
    language: Annotated[list[str] | None, typer.Option(help="Keep only this language; repeatable.")] = None,
    release: Annotated[str, typer.Option(help="UD release; 2.4 is the paper's.")] = "2.4",
    url: Annotated[str, typer.Option(help="A mirror of the archive, where the official place has moved.")] = "",
) -> None:
    """Fetch corpora into a data folder; a broken download goes on where it stopped."""
    from crossfill.data.codes import language_code
    from crossfill.data.sources import SOURCES, fetch, ud
    from crossfill.errors import DataError, unknown

    for name in names:
        if name not in SOURCES:
            raise DataError(unknown("corpus", name, SOURCES))
    if url and len(names) > 1:
        raise DataError(f"expected one corpus with --url, got {', '.join(names)}")
    languages = {language_code(code) for code in language or ()}
    for name in names:
        source = ud(release) if name == "ud" else SOURCES[name]()
        with _progress(name) as progress:
            folder = fetch(source, out, languages, url, progress)
        typer.echo(f"{folder}: ready; {source.licence}")
    typer.echo(f"next: crossfill grid {out}")


@app.command()
def make(
    out: Annotated[Path, typer.Option(help="Data folder to make; it must not be there yet.")] = Path("data"),
    families: Annotated[int, typer.Option(min=1, help="Families of related languages.")] = 8,
    languages: Annotated[int, typer.Option(min=1, help="Languages of a family.")] = 5,
    sentences: Annotated[int, typer.Option(min=1, help="Training sentences a cell; dev and test have a half.")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, help="Seed of everything.")] = 0,
) -> None:
    """Make a data folder of artificial languages, to try every other command on."""
    from crossfill.data.folder import write_grid
    from crossfill.data.synthetic import SyntheticConfig, synthetic_grid

    rest = -(-sentences // 2)
    settings = SyntheticConfig(
        families=families,
        branches=min(2, languages),
        languages_per_family=languages,
        train_sentences=sentences,
        dev_sentences=rest,
        test_sentences=rest,
    )
    grid = synthetic_grid(settings, seed).grid
    write_grid(grid, out)
    typer.echo(f"{out}: {len(grid.tasks)} tasks × {len(grid.languages)} languages; next: crossfill grid {out}")


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A corpus in any format that is read; .gz too.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A file: .bio, .conllu, .jsonl or .parquet.")],
    cell: Annotated[str, typer.Option(help="Task and language of the corpus, as ner/wol.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Turn a corpus into another format; the endings of the files say which."""
    from crossfill.data import remarks
    from crossfill.data.codes import language_code
    from crossfill.data.convert import convert
    from crossfill.data.labels import task_name
    from crossfill.grid.cells import Cell

    parsed = Cell.parse(cell)
    named = Cell(task_name(parsed.task), language_code(parsed.language))
    reading = convert(source, out, named, force)
    found = [(str(source), reading)]
    told = [*remarks.on_file(*found[0]), *remarks.on_columns(found), *remarks.on_corpus(named, [reading])]
    for problem in told:
        typer.echo(str(problem), err=True)
    typer.echo(f"{out}: {len(reading.corpus):,} sentences, {reading.corpus.n_words:,} words")


@contextmanager
def _progress(name: str) -> "Iterator[Progress]":
    if not sys.stderr.isatty():
        with _lines(name) as update:
            yield update
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        bar = shown.add_task(name)
        yield lambda done, total: shown.update(bar, completed=done, total=total)


@contextmanager
def _lines(name: str) -> "Iterator[Progress]":
    """Progress in a line every 10 seconds."""
    from crossfill.progress import SECONDS_BETWEEN_LINES, every

    received = ""

    def update(done: int, total: int | None) -> None:
        nonlocal received
        received = f" {done / 1e6:,.0f}" + ("" if total is None else f" of {total / 1e6:,.0f}") + " MB"

    def say() -> None:
        typer.echo(f"fetching {name} …{received}", err=True)

    say()
    with every(SECONDS_BETWEEN_LINES, say):
        yield update
