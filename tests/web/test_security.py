"""What the server keeps to itself: files, tokens, other sites, hosts, logs and failures."""

import json

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

import crossfill
from crossfill.errors import ConfigError
from crossfill.tagger.tagger import Tagger
from crossfill.web.app import build_app
from crossfill.web.security import HEADERS
from crossfill.web.serve_settings import ServeSettings

SECRET = "zebra-crossing"
TEXT = f"Dakar mooy péeyu {SECRET}. Dakar!"


def tag(client: TestClient, **request):
    return client.post("/api/tag", json=request)


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2f..%2fapp.py",
        "/%2e%2e/%2e%2e/settings.py",
        "/static/../app.py",
        "//etc/passwd",
        "/style.css%00.html",
        "/app.py",
        "/examples.json",
        "/api/",
        "/api/grid/",
    ],
)
def test_there_is_nothing_but_the_page(client: TestClient, path: str):
    answer = client.get(path, follow_redirects=False)
    assert answer.status_code == 404
    assert answer.json()["error"] == "not_found"
    assert "def " not in answer.text


def test_methods_and_files(client: TestClient):
    assert client.get("/api/tag").status_code == 405
    assert client.delete("/api/grid").status_code == 405
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert client.get("/", headers={"if-none-match": page.headers["etag"]}).status_code == 304
    assert client.post("/style.css").status_code == 405
    assert client.head("/style.css").headers["content-type"].startswith("text/css")


def test_every_answer_has_the_headers(client: TestClient):
    answers = [
        client.get(path) for path in ("/", "/main.js", "/api/health", "/api/grid", "/nothing", "/api/openapi.json")
    ]
    answers += [tag(client, cells=["pos/wol"], text="a"), tag(client, cells=["pos/xxx"], text="a")]
    answers.append(client.get("/", headers={"host": "evil.example"}))
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
        assert "cache-control" in answer.headers
        assert "access-control-allow-origin" not in answer.headers
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_names_of_other_machines_are_refused_on_loopback(client: TestClient):
    for host in ("evil.example", "evil.example:8000", "localhost.evil.example", ""):
        assert client.get("/api/grid", headers={"host": host}).status_code == 421
    for host in ("localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000"):
        assert client.get("/api/grid", headers={"host": host}).status_code == 200


def test_other_names_are_answered_where_they_are_allowed(tagger: Tagger):
    for settings in (
        ServeSettings(allow_hosts=("tools.example",)),
        ServeSettings(host="0.0.0.0", no_token=True, allow_hosts=("tools.example",)),
    ):
        with TestClient(build_app(tagger, settings), base_url="http://localhost") as client:
            for host in ("tools.example", "Tools.Example:8000", "localhost"):
                assert client.get("/api/grid", headers={"host": host}).status_code == 200
            for host in ("evil.example", "tools.example.evil", ""):
                assert client.get("/api/grid", headers={"host": host}).status_code == 421
    for name in ("", "a/b", "tools.example:80", "Tools.example"):
        with pytest.raises(ValidationError, match="allow_hosts"):
            ServeSettings(allow_hosts=(name,))


def test_the_token_is_also_the_password_of_http_basic(tagger: Tagger):
    app = build_app(tagger, ServeSettings(token="correct-horse:1"))
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get("/api/grid", auth=("anyone", "correct-horse:1")).status_code == 200
        assert client.get("/api/grid", auth=("correct-horse:1", "")).status_code == 401
        for given in ("Basic", "Basic correct-horse:1", "Basic ????", "Basic Y29ycmVjdC1ob3JzZToxCg"):
            assert client.get("/api/grid", headers={"authorization": given}).status_code == 401


def test_a_token_is_asked_for_where_one_is_set(tagger: Tagger, monkeypatch):
    compared = []
    import hmac

    real = hmac.compare_digest
    monkeypatch.setattr("hmac.compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    app = build_app(tagger, ServeSettings(token="correct-horse"))
    with TestClient(app, base_url="http://localhost") as client:
        for header in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic correct-horse"}):
            for path in ("/api/grid", "/api/openapi.json", "/api/nothing"):
                answer = client.get(path, headers=header)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
                assert "correct-horse" not in answer.text
            body = {"cells": ["pos/wol"], "text": "a"}
            assert client.post("/api/tag", json=body, headers=header).status_code == 401
        assert client.get("/api/grid", headers={"authorization": "bearer correct-horse"}).status_code == 200
        assert client.get("/api/health").status_code == 200
        assert client.get("/").status_code == 200
    assert all(len(a) == len(b) == 32 for a, b in compared)  # of digests: nothing depends on the tokens' lengths
    with pytest.raises(ConfigError, match="at least 8"):
        ServeSettings(token="short")


def test_other_sites_are_let_in_only_by_name(tagger: Tagger):
    app = build_app(tagger, ServeSettings(origins=("https://example.org",), token="correct-horse"))
    with TestClient(app, base_url="http://localhost") as client:
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
        for origin, allowed in (("https://example.org", True), ("https://evil.example", False)):
            answer = client.options("/api/tag", headers={"origin": origin, **asked})
            assert (answer.headers.get("access-control-allow-origin") == origin) == allowed


def test_logs_say_what_happened_and_not_what_was_sent(client: TestClient, caplog):
    with caplog.at_level("INFO", logger="crossfill.web"):
        tag(client, cells=["pos/wol"], text=TEXT)
        client.get(f"/{SECRET}?text={SECRET}")
        client.post("/api/tag", content=SECRET, headers={"content-type": "application/json"})
    from crossfill.web.security import JsonFormatter

    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    assert [(line["path"], line["status"]) for line in lines] == [("/api/tag", 200), ("other", 404), ("/api/tag", 400)]
    assert lines[0]["characters"] == len(TEXT)
    assert SECRET not in json.dumps(lines)


def test_a_failure_is_told_without_what_failed(tagger: Tagger, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError(f"no place for {SECRET}")

    app = build_app(tagger)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        monkeypatch.setattr(Tagger, "tag_queries", fail)
        answer = tag(client, cells=["pos/wol"], text=TEXT)
        assert (answer.status_code, answer.json()["error"]) == (500, "failure")
        assert answer.headers["x-crossfill-version"] == crossfill.__version__
        monkeypatch.undo()
        assert tag(client, cells=["pos/wol"], text=TEXT).status_code == 200
    assert SECRET not in answer.text + str(
        [record.__dict__ for record in caplog.records if record.name == "crossfill.web"]
    )
