"""The server process: loads a model, listens, and answers pending requests before it stops."""

import gc
import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from crossfill.errors import ConfigError
from crossfill.executors.worker_jobs import only_run
from crossfill.tagger.model_folder import find_model, shown_name
from crossfill.tagger.tagger import load
from crossfill.teaching.service import Teacher
from crossfill.web.app import build_app
from crossfill.web.security import log, set_up_log
from crossfill.web.serve_settings import ServeSettings

CONNECTIONS: dict[str, Any] = {
    "http": "h11",  # it bounds trailers, too, which httptools lets grow
    "h11_max_incomplete_event_size": 2**15,
    "limit_concurrency": 512,
    "ws": "none",
    "log_config": None,
    "access_log": False,
    "server_header": False,
}
"""How uvicorn treats connections: a head or trailers of more than 32 kB get 400, more than 512 connections 503."""


def serve(
    folder: Path,
    settings: ServeSettings,
    encoder: str | None = None,
    quiet: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the model in a folder until the process gets a signal to stop; `ready` is called with the address."""
    set_up_log(quiet)
    tagger = load(folder := find_model(folder), encoder)
    with ExitStack() as stack:
        teacher = None
        if settings.teach is not None:
            stack.enter_context(only_run(settings.teach, "serve"))
            teacher = Teacher(tagger, settings.teach, settings.learn_every, folder)
            for damage in teacher.damage:
                log("warning", "damaged", problem=damage)
        app = build_app(tagger, settings, shown_name(folder), tagger.card.examples, teacher)
        _answer(app, settings, shown_name(folder), ready)


def _answer(app: FastAPI, settings: ServeSettings, model: str, ready: Callable[[str], None] | None) -> None:
    """Listen, and answer until there is a signal to stop."""
    listening = _listen(settings.host, settings.port)
    finish = int(settings.timeout) + 10
    server = uvicorn.Server(uvicorn.Config(app, **CONNECTIONS, timeout_graceful_shutdown=finish))
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    address = f"http://{host}:{listening.getsockname()[1]}/"
    log("info", "listening", address=address, model=model)
    if not settings.is_local and settings.token is None:
        log("warning", "anyone who can reach this address can use the model, as --no-token says")
    if ready is not None:
        ready(address)
    # leave loaded objects out of garbage collection, which would halt all answers for a fifth of a second at a time
    gc.collect()
    gc.freeze()
    # uvicorn raises signals again when it is done: SIGTERM must not make a normal stop look like a failure
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with suppress(KeyboardInterrupt):
            server.run([listening])
    finally:
        signal.signal(signal.SIGTERM, before)
        gc.unfreeze()
        listening.close()
    log("info", "stopped")


def _listen(host: str, port: int) -> socket.socket:
    """Make a listening socket: clients that connect before the server is ready wait instead of being refused."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise ConfigError(
            f"expected to listen on {host} port {port}; {error.strerror or error}; is another server there? "
            "choose another --port"
        ) from None
