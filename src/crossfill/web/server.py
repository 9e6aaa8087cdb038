"""The process that serves a model: loads it, listens, and finishes what it has begun when it is told to stop."""

import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import uvicorn

from crossfill.errors import ConfigError
from crossfill.experiments.card import load_examples
from crossfill.tagger import load
from crossfill.web.app import build_app
from crossfill.web.logs import log, set_up
from crossfill.web.settings import ServeSettings

_SECONDS_TO_FINISH = 10


def serve(
    folder: Path,
    settings: ServeSettings,
    encoder: str | None = None,
    quiet: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the model in a folder until the process is told to stop; `ready` is told the address once it listens."""
    set_up(quiet)
    tagger = load(folder, encoder)
    app = build_app(tagger, settings, folder.resolve().name, load_examples(folder))
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(settings.timeout) + _SECONDS_TO_FINISH,
    )
    try:
        listening = config.bind_socket()
    except (OSError, SystemExit):
        raise ConfigError(
            f"expected to listen on {settings.host} port {settings.port}, and could not; "
            "is another server there? choose another --port"
        ) from None
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{listening.getsockname()[1]}/"
    log("info", "listening", address=address, model=folder.name)
    if not settings.is_local and settings.token is None:
        log("warning", "anyone who can reach this address can use the model; --token-file asks for a token")
    if ready is not None:
        ready(address)
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn hands signals on when it is done; to be told is no failure
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run([listening])
    log("info", "stopped")
