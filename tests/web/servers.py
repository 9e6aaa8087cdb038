"""A real server in a thread, on a port of its own."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from crossfill.web.server import CONNECTIONS


@contextmanager
def running(app, port: int = 0) -> Iterator[str]:
    """The address of an app while it is served, with the connections that `crossfill serve` has."""
    config = uvicorn.Config(app, host="127.0.0.1", port=port, **CONNECTIONS)
    listening = config.bind_socket()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
