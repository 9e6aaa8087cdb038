"""The `crossfill` command: one file per command, imported when it is called."""

import sys

import typer

from crossfill.cli import (
    annotate,
    cache,
    data,
    demo,
    doctor,
    evaluate,
    experiment,
    export,
    grid,
    predict,
    report,
    serve,
    train,
)
from crossfill.errors import CrossfillError

app = typer.Typer(
    name="crossfill",
    help="Fill the empty cells of a task × language grid.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Fill the empty cells of a task × language grid."""


app.command()(demo.demo)
app.command()(grid.grid)
app.command()(train.train)
app.command()(evaluate.evaluate)
app.command()(predict.predict)
app.command()(annotate.annotate)
app.command()(export.export)
app.command()(experiment.experiment)
app.command()(report.report)
app.command()(serve.serve)
app.command()(cache.cache)
app.add_typer(data.app, name="data")
app.command()(doctor.doctor)


def main() -> None:
    """Run the command line; bad input becomes one message on standard error and exit code 2."""
    try:
        app()
    except CrossfillError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)


if __name__ == "__main__":
    main()
