"""`crossfill serve MODEL`: an HTTP API and a web page, on loopback unless told otherwise."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crossfill.cli.options import ModelFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from crossfill.web.settings import ServeSettings


def serve(
    model: ModelFolder,
    teach: Annotated[
        Path | None,
        typer.Option(help="Folder for corrected sentences: the page lets one correct tags, and cells learn from that."),
    ] = None,
    learn_every: Annotated[
        int, typer.Option(help="Corrected sentences after which a cell learns by itself; 0: never.")
    ] = 10,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 is any that is free.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with a token that clients have to show. [default: $CROSSFILL_TOKEN, if set]"),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Serve other machines without a token: whoever can reach it may use it.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another name the server is called by, as host.docker.internal; repeatable."),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(help="Another site whose pages may call the API, as https://example.org; repeatable."),
    ] = None,
    max_characters: Annotated[int, typer.Option(help="Characters in a request.")] = 20_000,
    max_words: Annotated[int, typer.Option(help="Words in a request.")] = 2_000,
    max_samples: Annotated[int, typer.Option(help="Posterior samples in a request.")] = 500,
    max_document_bytes: Annotated[
        int, typer.Option(help="Bytes in a request of an annotation tool, which is tagged in parts.")
    ] = 2**23,
    queue: Annotated[int, typer.Option(help="Requests that may wait; more get 429.")] = 256,
    batch: Annotated[int, typer.Option(help="Requests that are encoded together.")] = 64,
    timeout: Annotated[float, typer.Option(help="Seconds until a request is given up.")] = 30.0,
    encoder: Annotated[str | None, typer.Option(help="Name or folder of the encoder, if it has moved.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log warnings and failures only.")] = False,
) -> None:
    """Serve a model's tags over HTTP, with a page to look at them."""
    run, settings_of = web()
    settings = settings_of(
        teach=teach,
        learn_every=learn_every,
        host=host,
        port=port,
        token=read_token(token_file),
        no_token=no_token,
        allow_hosts=tuple(name.lower() for name in allow_host or ()),
        origins=tuple(cors or ()),
        max_characters=max_characters,
        max_words=max_words,
        max_samples=max_samples,
        max_document_bytes=max_document_bytes,
        queue=queue,
        batch_requests=batch,
        timeout=timeout,
    )
    run(model, settings, encoder, quiet, lambda address: announce(address, open_page))


def web() -> "tuple[Callable[..., None], type[ServeSettings]]":
    """Import the server and its settings; ConfigError if the web extra is not installed."""
    from crossfill.errors import ConfigError

    try:
        from crossfill.web.server import serve as run
        from crossfill.web.settings import ServeSettings
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("crossfill"):
            raise
        raise ConfigError(
            f"expected the packages of the web extra, found no '{error.name}'; pip install 'crossfill[web]'"
        ) from None
    return run, ServeSettings


def announce(address: str, open_page: bool) -> None:
    """Print the page's address, and open it in a browser if asked to."""
    typer.echo(f"{address}  (Ctrl+C stops it)", err=True)
    screen = sys.platform in ("win32", "darwin") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if open_page and screen:  # without a display, a text browser might start in the terminal
        import webbrowser

        webbrowser.open(address)


def read_token(path: Path | None) -> str | None:
    """The token from a file, or from the environment."""
    from crossfill.errors import ConfigError

    if path is None:
        return os.environ.get("CROSSFILL_TOKEN") or None
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: expected a file with a token; {error}") from None
