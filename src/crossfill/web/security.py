"""Protection of the app: checks of host, token and size, security headers, and a log without what users sent."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import logging
import re
import sys
import time
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic_core import from_json
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crossfill import __version__
from crossfill.web.problems import ApiError, check_size, problem_response
from crossfill.web.serve_settings import LOOPBACK, ServeSettings

DOCUMENT_PATHS = ("/label-studio/", "/inception/", "/api/teach/list")  # whole documents are sent there
GUARDED_PATHS = ("/api/", *DOCUMENT_PATHS)  # need a token, if the server has one
CHANGING_PATHS = ("/api/teach/", *DOCUMENT_PATHS)  # no page of another site may send anything there
OPEN_PATH = "/api/health"  # needs no token
HEADERS = {
    "x-crossfill-version": __version__,
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_LOGGER = logging.getLogger("crossfill.web")


class Shield:
    """The outermost ASGI middleware: every request is checked, and every answer gets the security headers."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, paths: frozenset[str]) -> None:
        self.app, self.settings, self.paths = app, settings, paths
        self._token = None if settings.token is None else hashlib.sha256(settings.token.encode()).digest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def send_shielded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], MutableHeaders(scope=message)
                headers.setdefault("cache-control", "no-store")
                headers.update(HEADERS)
            await send(message)

        try:
            self._check(scope)
            await self.app(scope, await self._read(scope, receive), send_shielded)
        except ApiError as problem:
            response = problem_response(problem)
            if problem.status_code in (408, 413):
                response.headers["connection"] = "close"  # the rest of the body is not read
            await response(scope, receive, send_shielded)
        except Exception as error:
            # the message of an error may hold what a user sent: only its kind and place are logged
            frame = traceback.extract_tb(error.__traceback__)[-1]
            log("error", "failure", kind=type(error).__name__, place=f"{frame.filename}:{frame.lineno}")
            if not status:
                response = problem_response(ApiError(500, "the server failed; its log says where"))
                await response(scope, receive, send_shielded)
        finally:
            path = scope["path"] if scope["path"] in self.paths else "other"
            spent = round(1000 * (time.perf_counter() - started), 1)
            log("info", "request", method=scope["method"], path=path, status=status, ms=spent, **scope.get("about", {}))

    def _check(self, scope: Scope) -> None:
        """Refuse requests for other hosts, of other sites, or without the token."""
        headers, path, named = Headers(scope=scope), scope["path"], self.settings.allow_hosts
        host = headers.get("host", "").lower()
        name = re.sub(r":[0-9]+$", "", host).strip("[]")
        if (self.settings.is_local or named) and name not in (*LOOPBACK, *named):
            # DNS rebinding: a page of another site whose name resolves to this machine
            raise ApiError(421, "expected a request for localhost, or for a name that --allow-host gives")
        # browsers say which site a page is of, programs nothing; passwords of HTTP Basic would go with any page
        sites = (None, f"http://{host}", f"https://{host}", *self.settings.origins)
        origin = headers["origin"].lower() if "origin" in headers else None
        if path.startswith(CHANGING_PATHS) and origin not in sites:
            raise ApiError(403, "expected a request of this server's own page, got one of another site")
        preflight = scope["method"] == "OPTIONS" and self.settings.origins  # of CORS: it carries no token
        if self._token is None or preflight or path == OPEN_PATH or not path.startswith(GUARDED_PATHS):
            return
        # digests have one length, so that the comparison does not reveal that of the right token
        given = hashlib.sha256(_token_in(headers.get("authorization", ""))).digest()
        if not hmac.compare_digest(given, self._token):
            raise ApiError(401, "expected the server's token as a Bearer token, or as the password of HTTP Basic")

    async def _read(self, scope: Scope, receive: Receive) -> Receive:
        """Read the whole body within the limits of size and time; returns a `receive` that replays it."""
        limits, documents = self.settings, scope["path"].startswith(DOCUMENT_PATHS)
        most = limits.max_document_bytes if documents else limits.max_bytes
        length = Headers(scope=scope).get("content-length", "0")
        check_size("bytes", most, int(length) if length.isdecimal() else 0)
        body = bytearray()
        try:
            async with asyncio.timeout(limits.timeout):
                while (message := await receive())["type"] == "http.request":
                    body += message.get("body", b"")
                    check_size("bytes", most, len(body))
                    if not message.get("more_body"):
                        break
        except TimeoutError:
            raise ApiError(408, f"expected a request within {limits.timeout:g} seconds") from None
        if body:
            _check_json(Headers(scope=scope).get("content-type", ""), bytes(body))
        messages = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        return replay


def _check_json(content_type: str, body: bytes) -> None:
    """Refuse a body that is not JSON in UTF-8; FastAPI reads other encodings, and halves of surrogate pairs, too."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ApiError(415, f"expected Content-Type application/json, got '{media_type[:100]}'")
    try:
        from_json(body)
    except ValueError as error:
        raise ApiError(400, f"expected JSON in UTF-8; {error}") from None


def _token_in(authorization: str) -> bytes:
    """Read the token in an `Authorization` header; of HTTP Basic, the password, whoever the user is."""
    kind, _, value = authorization.partition(" ")
    if kind.lower() == "bearer":
        return value.strip().encode("latin-1")
    if kind.lower() == "basic":
        with suppress(binascii.Error, ValueError):
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
    return b""


def log(level: str, event: str, **values: Any) -> None:
    """Log an event with its values."""
    _LOGGER.log(logging.getLevelNamesMapping()[level.upper()], event, extra={"values": values})


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": moment, "level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps(line | getattr(record, "values", {}), ensure_ascii=False)


def set_up_log(quiet: bool = False) -> None:
    """Send the server's log to standard error; `quiet` keeps only warnings and errors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("crossfill.web", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING if quiet or name == "uvicorn.error" else logging.INFO)
