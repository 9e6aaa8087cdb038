"""Protection of the app: checks of host, token and size, security headers, and a log without texts."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from crossfill import __version__
from crossfill.web.logs import log
from crossfill.web.problems import ApiError, too_large
from crossfill.web.settings import LOOPBACK, ServeSettings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

DOCUMENT_PATHS = ("/label-studio/", "/inception/")
"""Where other programs send whole documents, in forms of their own."""
GUARDED_PATHS = ("/api/", *DOCUMENT_PATHS)
"""Paths that need a token, if the server has one."""
CHANGING_PATHS = ("/api/teach/", "/label-studio/", "/inception/")
"""Paths that may change something: no page of another site may send anything there."""
OPEN_PATHS = ("/api/health",)
"""Parts of the API that need no token."""
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


class Shield:
    """The outermost ASGI middleware: every request is checked, and every answer gets the security headers."""

    def __init__(self, app: App, settings: ServeSettings, paths: frozenset[str]) -> None:
        self.app, self.settings, self.paths = app, settings, paths
        self._token = _digest(settings.token.encode()) if settings.token is not None else None
        self._headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def send_shielded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                names = {name.lower() for name, _ in message["headers"]}
                extra = [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
                message["headers"] = [*message["headers"], *extra, *self._headers]
            await send(message)

        try:
            self._check(scope)
            body = await self._read(scope, receive)
            await self.app(scope, body, send_shielded)
        except ApiError as problem:
            await _answer(problem, send_shielded)
        except Exception as error:
            # the message of an error may hold what a user sent: only its kind and place are logged
            frame = traceback.extract_tb(error.__traceback__)[-1]
            log("error", "failure", kind=type(error).__name__, place=f"{frame.filename}:{frame.lineno}")
            if not status:
                problem = ApiError(500, "failure", "the server failed; its log says where")
                await _answer(problem, send_shielded)
        finally:
            path = scope["path"] if scope["path"] in self.paths else "other"
            spent = round(1000 * (time.perf_counter() - started), 1)
            log("info", "request", method=scope["method"], path=path, status=status, ms=spent, **scope.get("about", {}))

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        named = self.settings.allow_hosts
        if (self.settings.is_local or named) and name.strip("[]") not in (*LOOPBACK, *named):
            # DNS rebinding: a page of another site whose name resolves to this machine
            message = "expected a request for this machine, by the name localhost or one that --allow-host gives"
            raise ApiError(421, "misdirected", message)
        self._check_origin(scope, headers.get(b"origin"), host)
        if self._token is None or not scope["path"].startswith(GUARDED_PATHS) or scope["path"] in OPEN_PATHS:
            return
        if scope["method"] == "OPTIONS" and self.settings.origins:
            return  # CORS preflight requests carry no token
        if not hmac.compare_digest(_digest(_given_token(headers.get(b"authorization", b""))), self._token):
            message = "expected the server's token as 'Authorization: Bearer TOKEN', or as the password of HTTP Basic"
            raise ApiError(401, "unauthorized", message, {"WWW-Authenticate": "Bearer"})

    def _check_origin(self, scope: Scope, origin: bytes | None, host: str) -> None:
        """Browsers say which site a page is of, programs nothing; passwords of HTTP Basic would go with any page."""
        if origin is None or not scope["path"].startswith(CHANGING_PATHS):
            return
        allowed = (f"http://{host}", f"https://{host}", *self.settings.origins)
        if origin.decode("latin-1").lower() not in allowed:
            raise ApiError(403, "other_site", "expected a request of this server's own page, got one of another site")

    async def _read(self, scope: Scope, receive: Receive) -> Receive:
        """Read the whole body within the limits of size and time; returns a `receive` that replays it."""
        limits = self.settings
        most = limits.max_document_bytes if scope["path"].startswith(DOCUMENT_PATHS) else limits.max_bytes
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length) > most:
            raise too_large("bytes", most, int(length))
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.settings.timeout):
                while (message := await receive())["type"] == "http.request":
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise too_large("bytes", most, "more")
                    if not message.get("more_body"):
                        break
        except TimeoutError:
            raise ApiError(408, "too_slow", f"expected a request within {self.settings.timeout:g} seconds") from None
        messages = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        return again


def problem_body(error: str, message: str) -> bytes:
    """A problem as JSON."""
    return json.dumps({"version": __version__, "error": error, "message": message}, ensure_ascii=False).encode()


async def _answer(problem: ApiError, send: Send) -> None:
    body = problem_body(problem.error, problem.message)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
    if problem.status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _given_token(authorization: bytes) -> bytes:
    """The token in an `Authorization` header; of HTTP Basic, the password, whoever the user is."""
    kind, _, given = authorization.partition(b" ")
    if kind.lower() == b"bearer":
        return given.strip()
    if kind.lower() == b"basic":
        with suppress(binascii.Error):
            return base64.b64decode(given.strip(), validate=True).partition(b":")[2]
    return b""


def _digest(token: bytes) -> bytes:
    """Hash of a token: all have one length, so that the comparison does not reveal that of the right token."""
    return hashlib.sha256(token).digest()
