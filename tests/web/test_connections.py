"""Connections that send too much, that are too many, or that do not wait for their answers."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from starlette.testclient import TestClient

from crossfill.tagger.tagger import Tagger
from crossfill.web.app import build_app
from crossfill.web.engine import Engine, TagRequest
from crossfill.web.problems import ApiError
from crossfill.web.serve_settings import ServeSettings
from crossfill.web.server import CONNECTIONS
from tests.web.servers import running


@pytest.fixture(scope="module")
def address(tagger: Tagger) -> Iterator[tuple[str, int]]:
    with running(build_app(tagger)) as found:
        yield place(found)


def place(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("http://").rpartition(":")
    return host, int(port)


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


CHUNKED = (
    b"POST /api/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(4000)),
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40_000,
        b"GET /" + b"a" * 40_000,
        CHUNKED + b"0\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(4000)),
        CHUNKED + b"2\r\n{}\r\n0\r\nX: " + b"y" * 40_000,
    ],
    ids=["many", "long", "address", "trailers", "trailer"],
)
def test_long_heads_and_trailers_are_refused(address: tuple[str, int], head: bytes):
    with closing(connect(address)) as connection:
        connection.sendall(head)
        assert everything(connection).startswith(b"HTTP/1.1 400 ")
    assert is_healthy(address)


def test_more_connections_than_are_allowed_are_told_so(tagger: Tagger, monkeypatch):
    monkeypatch.setitem(CONNECTIONS, "limit_concurrency", 4)
    with running(build_app(tagger)) as found:
        address = place(found)
        silent = [connect(address) for _ in range(8)]
        with closing(connect(address)) as connection:
            connection.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert everything(connection).startswith(b"HTTP/1.1 503 ")
        for connection in silent:
            connection.close()
        while not is_healthy(address):
            time.sleep(0.01)


def test_nobody_works_for_a_client_that_is_gone(tagger: Tagger, monkeypatch):
    begun, go, worked = threading.Event(), threading.Event(), []

    real = Engine.run

    def run(engine: Engine, jobs) -> list:
        begun.set()
        go.wait(10)
        worked.extend(job.queries[0].sentence.original for job in jobs)
        return real(engine, jobs)

    monkeypatch.setattr(Engine, "run", run)
    settings = ServeSettings(timeout=20)
    app = build_app(tagger, settings)
    with running(app) as found:
        address = place(found)
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

    def work(cells: list[str], samples: int) -> int:
        (job,), _ = engine.read(TagRequest(cells=cells, text=text, samples=samples))
        return job.work

    assert work(cells[:1], 500) == 9_000_000
    assert work(cells, 0) == 18_000 * len(cells)
    with pytest.raises(ApiError) as caught:
        work(cells, 500)
    assert caught.value.status_code == 413
    assert "characters × cells × samples" in caught.value.detail


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
def test_only_the_first_problem_of_a_request_is_looked_for(tagger: Tagger, body):
    sent = json.dumps(body).encode()
    with TestClient(build_app(tagger, ServeSettings(max_characters=100_000)), base_url="http://localhost") as client:
        started = time.process_time()
        answer = client.post("/api/tag", content=sent, headers={"content-type": "application/json"})
        assert time.process_time() - started < 0.5
    assert answer.status_code == 422
    assert len(answer.json()["message"]) < 500


def test_a_run_of_marks_stalls_nobody(tagger: Tagger):
    engine = Engine(tagger, ServeSettings())
    started = time.process_time()
    (job,), answer = engine.read(TagRequest(cells=["pos/wol"], text="a" + "\u0301\u0323" * 9_900, samples=0))
    assert answer(engine.run([job])[0])["sentences"]
    assert time.process_time() - started < 5
