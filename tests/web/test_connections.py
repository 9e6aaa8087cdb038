"""Connections that send too much, too slowly or nothing, or that do not read or wait for their answers."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import uvicorn

from crossfill.tagger.tagger import Tagger
from crossfill.web.app import build_app
from crossfill.web.connections import GuardedProtocol, guarded
from crossfill.web.engine import Engine
from crossfill.web.problems import ApiError
from crossfill.web.reading import parse_json
from crossfill.web.schemas import TagRequest
from crossfill.web.settings import ServeSettings

LIMITS = ServeSettings(head_seconds=0.5, timeout=1.0, max_connections=8, max_head_bytes=4096)


@contextmanager
def serving(app, settings: ServeSettings = LIMITS) -> Iterator[tuple[tuple[str, int], type[GuardedProtocol]]]:
    """The address of an app that is served with its guarded connections."""
    protocol = guarded(settings)
    config = uvicorn.Config(app, log_config=None, access_log=False, http=protocol, ws="none", lifespan="on")
    listening, server = socket.create_server(("127.0.0.1", 0)), uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield listening.getsockname(), protocol
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


@pytest.fixture(scope="module")
def address(tagger: Tagger) -> Iterator[tuple[str, int]]:
    with serving(build_app(tagger, LIMITS)) as (found, _):
        yield found


def connect(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=10)


def everything(connection: socket.socket) -> bytes:
    """What arrives until the other side closes the connection."""
    parts = []
    try:
        while part := connection.recv(2**16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def is_healthy(address: tuple[str, int]) -> bool:
    with closing(connect(address)) as connection:
        connection.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b'"status":"ok"' in everything(connection)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(2000)),
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000,
        b"GET /" + b"a" * 20_000,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
    ],
    ids=["many", "long", "address", "whole"],
)
def test_long_heads_are_refused(address: tuple[str, int], head: bytes):
    with closing(connect(address)) as connection:
        connection.sendall(head)
        assert everything(connection).startswith(b"HTTP/1.1 431 ")
    assert is_healthy(address)


def test_slow_heads_are_refused_on_new_and_on_kept_connections(address: tuple[str, int]):
    with closing(connect(address)) as silent, closing(connect(address)) as slow, closing(connect(address)) as kept:
        kept.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        kept.recv(2**16)
        kept.sendall(b"GET /api/health HTTP/1.1\r\n")
        started = time.monotonic()
        for character in b"GET / HTTP/1.1\r\nHo":
            slow.sendall(bytes([character]))
            time.sleep(0.01)
        for connection in (silent, slow, kept):
            assert everything(connection).startswith(b"HTTP/1.1 408 ")
        assert 0.3 < time.monotonic() - started < 8


def test_silent_connections_lock_nobody_out(tagger: Tagger):
    patient = ServeSettings(head_seconds=60, timeout=60, max_connections=8)
    with serving(build_app(tagger, patient), patient) as (address, protocol):
        silent = [connect(address) for _ in range(40)]
        assert is_healthy(address)
        assert len(protocol.waiting) <= patient.max_connections
        for connection in silent:
            connection.close()


def test_an_answer_that_is_not_read_is_dropped():
    lost = threading.Event()

    async def app(scope, receive, send) -> None:
        if scope["type"] == "lifespan":
            for kind in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{kind}.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 50_000_000})
        while (await receive())["type"] != "http.disconnect":
            pass
        lost.set()

    with serving(app) as (address, protocol), closing(connect(address)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert lost.wait(8)
        assert not protocol.waiting


def test_nobody_works_for_a_client_that_is_gone(tagger: Tagger, monkeypatch):
    begun, go, worked = threading.Event(), threading.Event(), []

    def run(_: Engine, jobs) -> list[bytes]:
        begun.set()
        go.wait(10)
        worked.extend(job.queries()[0].sentence.original for job in jobs)
        return [b"{}" for _ in jobs]

    monkeypatch.setattr(Engine, "run", run)
    settings = ServeSettings(timeout=20)
    app = build_app(tagger, settings)
    with serving(app, settings) as (address, _):
        first, gone, last = connect(address), connect(address), connect(address)
        for number, connection in enumerate((first, gone, last)):
            body = json.dumps({"cells": ["pos/wol"], "text": f"text {number}"}).encode()
            head = "POST /api/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            assert begun.wait(10)
            while app.state.batcher.n_waiting < number:
                time.sleep(0.005)
        gone.close()
        time.sleep(0.2)
        go.set()
        for connection in (first, last):
            assert b"200 OK" in connection.recv(2**16)
            connection.close()
    assert worked == ["text 0", "text 2"]


def test_samples_are_part_of_a_requests_work(tagger: Tagger):
    engine = Engine(tagger, ServeSettings())
    text, cells = "a" * 18_000, [str(cell) for cell in tagger.cells[:8]]
    assert engine.check(TagRequest(cells=cells[:1], text=text, samples=500)) == 9_000_000
    assert engine.check(TagRequest(cells=cells, text=text, samples=0)) == 18_000 * len(cells)
    with pytest.raises(ApiError) as caught:
        engine.check(TagRequest(cells=cells, text=text, samples=500))
    assert caught.value.status == 413
    assert "characters × cells × samples" in caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        {"cells": ["pos/wol"], "sentences": [[1] * 100_000]},
        {"cells": ["pos/wol"], "sentences": [1] * 100_000},
        {"cells": [1] * 100_000, "text": "a"},
        {"cells": ["pos/wol"], "text": "a"} | {f"k{i}": 1 for i in range(40_000)},
        {"cells": ["pos/wol"], "text": "a", "k" * 100_000: 1},
    ],
    ids=["words", "sentences", "cells", "keys", "key"],
)
def test_only_the_first_problem_of_a_request_is_looked_for(body):
    sent = json.dumps(body).encode()
    started = time.process_time()
    with pytest.raises(ApiError) as caught:
        parse_json(sent, TagRequest)
    assert time.process_time() - started < 0.5
    assert caught.value.status == 422
    assert len(caught.value.message) < 500


def test_a_run_of_marks_stalls_nobody(tagger: Tagger):
    engine = Engine(tagger, ServeSettings())
    started = time.process_time()
    answers = engine.run([engine.job(TagRequest(cells=["pos/wol"], text="a" + "\u0301\u0323" * 9_900, samples=0))])
    assert not isinstance(answers[0], Exception)
    assert time.process_time() - started < 5
