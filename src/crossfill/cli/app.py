"""The `crossfill` command: one file per command, imported when it is called."""

import codecs
import inspect
import sys
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer
from typer import Option

from crossfill import __version__
from crossfill.cli import (
    adapt,
    agreement,
    annotate,
    cache,
    check,
    data,
    demo,
    doctor,
    encode,
    evaluate,
    experiment,
    export,
    grid,
    predict,
    predict_files,
    serve,
    train,
)
from crossfill.cli.options import QUIET
from crossfill.cli.output import visible
from crossfill.errors import CrossfillError

app = typer.Typer(
    name="crossfill",
    help="Fill the empty cells of a task × language grid.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Rich would take [default: …] in a help text for markup
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crossfill {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    _version: Annotated[
        bool, Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    quiet: Annotated[
        bool, Option("--quiet", "-q", help="Before a command: no progress, and no messages on what it chose.")
    ] = False,
) -> None:
    """Fill the empty cells of a task × language grid."""
    token = QUIET.set(quiet)
    context.call_on_close(lambda: QUIET.reset(token))


for command in (
    *(demo.demo, grid.grid, check.check, agreement.agreement, encode.encode, train.train, adapt.adapt),
    *(adapt.add_language, evaluate.evaluate, predict.predict, predict_files.predict_files, annotate.annotate),
    *(export.export, experiment.experiment, experiment.report, serve.serve, cache.cache, doctor.doctor),
):
    app.command(command.__name__.replace("_", "-"))(command)
app.add_typer(data.app, name="data")
for registered in (*app.registered_commands, *data.app.registered_commands):  # in lists of commands, not cut short
    registered.short_help = (inspect.getdoc(registered.callback) or "").partition("\n\n")[0]


def main() -> None:
    """Run the command line; bad input becomes one message on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        _write_utf8(stream)
    try:
        app(prog_name="crossfill")
    except CrossfillError as error:
        _fail(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        _fail(f"{where}{error.strerror or error}; check the path, its permissions, and the room on the disk")
    except MemoryError:
        _fail("expected more memory than there is; ask for less at a time, or run on a larger machine")


def _fail(message: str) -> NoReturn:
    """End with a message on standard error; a terminal gets no control characters that came from input."""
    print(f"error: {visible(message) if sys.stderr.isatty() else message}", file=sys.stderr)  # noqa: T201
    sys.exit(2)


def _write_utf8(stream: object) -> None:
    """Write UTF-8 to files and pipes, whatever the locale; a terminal of another encoding shows ? where it has to."""
    if isinstance(stream, TextIOWrapper):
        if stream.isatty() and codecs.lookup(stream.encoding).name != "ascii":
            stream.reconfigure(errors="replace")
        else:  # names of files that are no text are written as they are
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")


if __name__ == "__main__":
    main()
