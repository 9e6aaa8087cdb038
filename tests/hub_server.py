"""A small Hugging Face hub on loopback: the endpoints that huggingface_hub calls to list, fetch and commit files."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import yaml


@dataclass
class Hub:
    """Repositories by name: their commits in order, each with all its files."""

    commits: dict[str, list[tuple[str, dict[str, bytes]]]] = field(default_factory=dict)
    private: dict[str, bool] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """Every request, as `GET /path`."""
    cards: list[str] = field(default_factory=list)
    """Cards that were sent to be checked."""
    address: str = ""

    def commit(self, name: str, added: dict[str, bytes], deleted: tuple[str, ...] = ()) -> str:
        known = self.commits.setdefault(name, [])
        files = {path: content for path, content in (known[-1][1] if known else {}).items() if path not in deleted}
        oid = hashlib.sha1(f"{name} {len(known)}".encode()).hexdigest()
        known.append((oid, files | added))
        return oid

    def at(self, name: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        known = self.commits.get(name, [])
        if revision == "main":
            return known[-1] if known else ("0" * 40, {}) if name in self.private else None
        return next((found for found in known if found[0] == revision), None)

    def files(self, name: str) -> dict[str, bytes]:
        return self.commits[name][-1][1]


def etag(content: bytes) -> str:
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        pass

    def send(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_json(self, value: object, status: int = 200, **headers: str) -> None:
        self.send(json.dumps(value).encode(), status, Content_Type="application/json", **headers)

    def fail(self, code: str, status: int) -> None:
        self.send_json({"error": code}, status, X_Error_Code=code, X_Error_Message=code)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.hub.asked.append(f"{self.command} {path}")
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[:2] == ["api", "models"] and len(parts) >= 4:
            name, rest = "/".join(parts[2:4]), parts[4:] or ["revision", "main"]
            found = self.hub.at(name, rest[1])
            if found is None:
                return self.missing(name)
            commit, files = found
            if rest[0] == "revision":
                siblings = [{"rfilename": path} for path in files]
                return self.send_json({"id": name, "sha": commit, "siblings": siblings, "private": True, "tags": []})
            tree = [{"type": "file", "path": p, "oid": etag(c), "size": len(c)} for p, c in files.items()]
            return self.send_json(tree)
        if len(parts) >= 5 and parts[2] == "resolve":
            name, found = "/".join(parts[:2]), self.hub.at("/".join(parts[:2]), parts[3])
            if found is None:
                return self.missing(name)
            content = found[1].get("/".join(parts[4:]))
            if content is None:
                return self.send_json({}, 404, X_Error_Code="EntryNotFound", X_Repo_Commit=found[0])
            return self.send(content, ETag=f'"{etag(content)}"', X_Repo_Commit=found[0], Accept_Ranges="bytes")
        return self.fail("NotFound", 404)

    def missing(self, name: str) -> None:
        self.fail("RevisionNotFound" if name in self.hub.commits else "RepoNotFound", 404)

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        self.hub.asked.append(f"POST {path}")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else f"me/{asked['name']}"
            self.hub.private[name] = asked.get("private") or asked.get("visibility") == "private"
            return self.send_json({"url": f"{self.hub.address}/{name}", "id": name, "name": name})
        if path == "/api/validate-yaml":
            card = json.loads(body)["content"]
            self.hub.cards.append(card)
            yaml.safe_load(card.split("---")[1])
            return self.send_json({"errors": [], "warnings": []})
        name, verb = "/".join(path.split("/")[3:5]), path.split("/")[5]
        if verb == "preupload":
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in json.loads(body)["files"]
            ]
            return self.send_json({"files": files})
        added, deleted = {}, []
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                added[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
            if entry["key"] == "deletedFile":
                deleted.append(entry["value"]["path"])
        oid = self.hub.commit(name, added, tuple(deleted))
        return self.send_json({"commitUrl": f"{self.hub.address}/{name}/commit/{oid}", "commitOid": oid})


@contextmanager
def running() -> Iterator[Hub]:
    """A hub without repositories, while it is served."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("HubHandler", (Handler,), {"hub": hub}))
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
