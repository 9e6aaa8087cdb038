"""`crossfill data`: fetch official corpora (needs a network), make artificial ones, convert formats."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from crossfill.cli.options import QUIET

if TYPE_CHECKING:
    from crossfill.data.fetch import Progress

app = typer.Typer(help="Fetch, make and convert corpora.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _root() -> None:
    """Fetch, make and convert corpora."""


@app.command()
def fetch(
    names: Annotated[list[str], Argument(metavar="NAME", help="ud, wikiann, masakhaner, masakhapos, uner, sib200")],
    out: Annotated[Path, Option(help="Data folder to fetch into.")] = Path("data"),
    language: Annotated[list[str] | None, Option(help="Keep only this language; repeatable.")] = None,
    release: Annotated[str, Option(help="UD release; 2.4 is the paper's.")] = "2.18",
    url: Annotated[str, Option(help="A mirror of the archive, where the official place has moved.")] = "",
) -> None:
    """Fetch corpora into a data folder; files appear only when complete."""
    from crossfill.data.codes import language_code
    from crossfill.data.fetch import SOURCES, fetch, ud
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
    out: Annotated[Path, Option(help="Data folder to make; it must not be there yet.")] = Path("data"),
    change: Annotated[
        list[str] | None, Option("--set", help="A setting of the artificial grid, as families=4; repeatable.")
    ] = None,
    task: Annotated[
        list[str] | None,
        Option(help="Only this task; repeatable. theme labels sentences, change pairs. [default: the first four]"),
    ] = None,
    real: Annotated[bool, Option("--real", help="Real languages instead: everyday sentences in sixteen.")] = False,
) -> None:
    """Make a data folder of artificial languages, or of real ones, to try every other command on."""
    from crossfill.data import parallel_corpus
    from crossfill.data.synthetic import SENTENCE_TASKS, TASKS, SyntheticConfig, synthetic_grid
    from crossfill.data.writers import write_grid
    from crossfill.errors import DataError, unknown
    from crossfill.settings import parse_assignments, validated

    known = parallel_corpus.TASKS if real else (*TASKS, *SENTENCE_TASKS)
    for name in task or ():
        if name not in known:
            raise DataError("--task: " + unknown("task", name, known))
    if real:
        grid = parallel_corpus.parallel_grid().where(lambda cell: not task or cell.task in task)
    else:
        usual = {"tasks": task or TASKS, "dev_sentences": 50, "test_sentences": 50}
        settings = validated(SyntheticConfig, usual | parse_assignments(change or ()), "--set")
        grid = synthetic_grid(settings, 0).grid  # pyright: ignore[reportArgumentType]  # settings are frozen
    write_grid(grid, out)
    typer.echo(f"{out}: {len(grid.tasks)} tasks × {len(grid.languages)} languages; next: crossfill grid {out}")


@app.command()
def convert(
    source: Annotated[Path, Argument(metavar="IN", help="A corpus in any format that is read, or a data folder.")],
    out: Annotated[Path, Argument(metavar="OUT", help="A file (.bio, .conllu, .tsv, .jsonl, .parquet, …) or folder.")],
    cell: Annotated[str, Option(help="Task and language of a file, as ner/wol.")] = "",
    to: Annotated[str, Option(help="Format of the files in a folder: bio, conllu, jsonl, parquet, spacy.")] = "",
    task: Annotated[list[str] | None, Option(help="Only this task of a folder; repeatable.")] = None,
) -> None:
    """Turn a corpus, or every corpus of a data folder, into another format."""
    from crossfill.data import messages, writers
    from crossfill.data.codes import language_code
    from crossfill.data.labels import task_name
    from crossfill.errors import DataError
    from crossfill.grid.cells import Cell

    if source.is_dir():
        if cell or not to:
            raise DataError(f"{source}: expected --to and a new folder for a data folder, and no --cell")
        files, problems = writers.convert_folder(source, out, f".{to.removeprefix('.')}", task or ())
        n_sentences, n_words = (sum(map(size, files.values())) for size in (len, lambda corpus: corpus.n_words))
        problems = messages.grouped_messages(problems)
        done = f"{out}: {len(files):,} files, {n_sentences:,} sentences, {n_words:,} words"
    else:
        if not cell or to or task:
            raise DataError(f"{source}: expected --cell for a file, as --cell ner/wol, and no --to or --task")
        parsed = Cell.parse(cell)
        named = Cell(task_name(parsed.task), language_code(parsed.language))
        reading = writers.convert(source, out, named)
        problems = reading.messages(str(source), named)
        done = f"{out}: {len(reading.corpus):,} sentences, {reading.corpus.n_words:,} words"
    for problem in problems:
        typer.echo(str(problem), err=True)
    typer.echo(done)


@contextmanager
def _progress(name: str) -> "Iterator[Progress]":
    """Show a download in megabytes."""
    from crossfill.progress import ProgressBar, Report

    reports: list[Report] = []
    with ProgressBar(QUIET.get()) as bars:

        def update(done: int, total: int | None) -> None:
            if not reports:
                reports.append(bars.add(f"Fetching {name}", None if total is None else total // 10**6))
            reports[0](done // 10**6, "MB")

        yield update
