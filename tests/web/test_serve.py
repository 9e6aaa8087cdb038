"""`crossfill serve` as a process sees it: it listens, finishes what it has begun, and says what is missing."""

import http.client
import json
import logging
import os
import signal
import socket
import sys
import threading
from contextlib import closing

import pytest
from typer.testing import CliRunner

from crossfill.cli import serve as command
from crossfill.cli.app import app
from crossfill.errors import ConfigError, OutputError
from crossfill.executors.worker_jobs import LOCK
from crossfill.files import locked
from crossfill.web.serve_settings import ServeSettings
from crossfill.web.server import serve


@pytest.fixture(autouse=True)
def own_loggers(monkeypatch):
    for name in ("crossfill.web", "uvicorn.error"):
        logger = logging.getLogger(name)
        for attribute in ("handlers", "propagate", "level"):
            monkeypatch.setattr(logger, attribute, getattr(logger, attribute))


def test_it_answers_and_when_told_to_stop_finishes_what_it_has_begun(model, capsys):
    body = json.dumps({"cells": ["pos/wol"], "text": "Dakar mooy péeyu"}).encode()
    answers = []

    def use(address: str) -> None:
        host = address.removeprefix("http://").rstrip("/")
        connection = http.client.HTTPConnection(host, timeout=20)
        connection.request("GET", "/api/health")
        answers.append(json.load(connection.getresponse()))
        connection.putrequest("POST", "/api/tag")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:10])
        answers.append(json.loads(_get(host, "/api/health")))  # by now the first half has arrived
        os.kill(os.getpid(), signal.SIGTERM)
        while _listens(host):
            pass
        connection.send(body[10:])
        answers.append(json.load(connection.getresponse()))
        connection.close()

    threads = []

    def ready(address: str) -> None:
        threads.append(threading.Thread(target=use, args=(address,), daemon=True))
        threads[0].start()

    serve(model, ServeSettings(port=0), ready=ready)
    threads[0].join(20)
    assert answers[0]["status"] == "ok"
    assert answers[-1]["sentences"][0]["words"] == ["Dakar", "mooy", "péeyu"]
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [lines[0]["event"], lines[-1]["event"]] == ["listening", "stopped"]
    assert {line["status"] for line in lines[1:-1]} == {200}
    assert "Dakar" not in json.dumps(lines)


def _listens(host: str) -> bool:
    try:
        return bool(_get(host, "/api/health"))
    except (OSError, http.client.HTTPException):
        return False


def _get(host: str, path: str) -> bytes:
    with closing(http.client.HTTPConnection(host, timeout=20)) as connection:
        connection.request("GET", path)
        return connection.getresponse().read()


def test_a_port_that_is_taken_is_told(model):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="is another server there"):
            serve(model, ServeSettings(port=taken.getsockname()[1]), quiet=True)


def test_a_folder_of_sentences_has_one_server(model, tmp_path):
    settings = ServeSettings(port=0, teach=tmp_path)
    with locked(tmp_path / LOCK, wait=False), pytest.raises(OutputError, match="another crossfill serve is running"):
        serve(model, settings, quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for _ in range(2):  # the lock is free again
            with pytest.raises(ConfigError, match="is another server there"):
                serve(model, settings.model_copy(update={"port": taken.getsockname()[1]}), quiet=True)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "crossfill.web.server")
    with pytest.raises(ConfigError, match=r"expected uvicorn, found none; .* 'crossfill\[web\]'"):
        command.web()


def test_limits_from_the_command_line(monkeypatch):
    served = []
    monkeypatch.setattr("crossfill.web.server.serve", lambda _, settings, *__: served.append(settings))

    def serving(*options: str) -> str:
        return str(CliRunner().invoke(app, ["serve", "model", *options]).exception)

    serving("--limit", "max_words=5000", "--limit", "timeout=60", "--allow-host", "Tools.example")
    assert (served[0].max_words, served[0].timeout, served[0].allow_hosts) == (5000, 60, ("tools.example",))
    for options, message in (
        (["--limit", "words=5"], "did you mean 'max_words'"),
        (["--limit", "queue=many"], "serve: queue: input should be a valid integer"),
        (["--limit", "host=0.0.0.0"], "unknown limit 'host'"),
        (["--port", "65536"], "serve: port: input should be less than or equal to 65535"),
        (["--limit", "timeout=.nan"], "serve: timeout: input should be a finite number"),
        (["--limit", "queue=0"], "serve: queue: input should be greater than or equal to 1"),
        (["--allow-host", "a/b"], "serve: allow_hosts.0: string should match pattern"),
    ):
        assert message in serving(*options)
    assert len(served) == 1


def test_other_machines_need_a_token_or_a_word(monkeypatch):
    monkeypatch.delenv("CROSSFILL_TOKEN", raising=False)
    for host in ("0.0.0.0", "::", "192.0.2.7"):
        with pytest.raises(ConfigError, match=r"\$CROSSFILL_TOKEN, or let everyone in with --no-token"):
            ServeSettings(host=host)
        assert ServeSettings(host=host, no_token=True).token is None
        assert ServeSettings(host=host, token="long-enough").token == "long-enough"
    error = CliRunner().invoke(app, ["serve", "nothing", "--host", "0.0.0.0"]).exception
    assert "--no-token" in str(error)
