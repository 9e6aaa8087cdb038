"""`crossfill serve MODEL`: an HTTP API and a web page, on loopback unless told otherwise."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from crossfill.cli.options import QUIET, ModelFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from crossfill.web.serve_settings import ServeSettings

LIMITS = ("max_characters", "max_words", "max_samples", "max_document_bytes", "queue", "batch_requests", "timeout")
"""Settings of the server that `--limit` can change."""


def serve(
    model: ModelFolder,
    teach: Annotated[
        Path | None,
        Option(help="Folder for corrected sentences: on the page one can correct tags, and cells learn from it."),
    ] = None,
    learn_every: Annotated[int, Option(help="Corrected sentences after which a cell learns by itself; 0: never.")] = 10,
    host: Annotated[str, Option(help="Address to listen on; 0.0.0.0 is all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen on; 0 is any free port.")] = 8000,
    no_token: Annotated[
        bool, Option("--no-token", help="Serve other machines without a token ($CROSSFILL_TOKEN): anyone may use it.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, Option(help="Another name the server is called by, as host.docker.internal; repeatable.")
    ] = None,
    cors: Annotated[
        list[str] | None, Option(help="Another site whose pages may call the API, as https://example.org; repeatable.")
    ] = None,
    limit: Annotated[
        list[str] | None, Option(help="A limit of the server, as max_words=5000 or timeout=60; repeatable.")
    ] = None,
) -> None:
    """Serve a model's tags over HTTP, with a page to look at them."""
    from crossfill.errors import ConfigError, unknown
    from crossfill.settings import parse_assignments, validated

    run, settings_of = web()
    limits = parse_assignments(limit or ())
    if wrong := next((name for name in limits if name not in LIMITS), None):
        raise ConfigError("--limit: " + unknown("limit", wrong, LIMITS))
    values = {
        "teach": teach,
        "learn_every": learn_every,
        "host": host,
        "port": port,
        "token": os.environ.get("CROSSFILL_TOKEN") or None,
        "no_token": no_token,
        "allow_hosts": tuple(name.lower() for name in allow_host or ()),
        "origins": tuple(cors or ()),
    }
    settings = validated(settings_of, values | limits, "serve")
    run(model, settings, None, QUIET.get(), lambda address: announce(address, open_page=False))


def web() -> "tuple[Callable[..., None], type[ServeSettings]]":
    """Import the server and its settings; ConfigError if the web extra is not installed."""
    from crossfill.errors import ConfigError, missing_package

    try:
        from crossfill.web.serve_settings import ServeSettings
        from crossfill.web.server import serve as run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("crossfill"):
            raise
        raise ConfigError(missing_package(error.name or "", "web")) from None
    return run, ServeSettings


def announce(address: str, open_page: bool) -> None:
    """Print the page's address, and open it in a browser if asked to."""
    typer.echo(f"{address}  (Ctrl+C stops it)", err=True)
    screen = sys.platform in ("win32", "darwin") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if open_page and screen:  # without a display, a text browser might start in the terminal
        import webbrowser

        webbrowser.open(address)
