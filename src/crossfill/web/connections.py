"""Limits on connections, before there is a request: the size and time of its head, and who does not read answers."""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from crossfill.web.settings import ServeSettings

_REFUSAL = "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n{message}\n"


class GuardedProtocol(HttpToolsProtocol):
    """A connection that is closed if a request's head is too long or too slow, or if answers are not read.

    The head is the request line and the headers. If there are too many connections, the one that has waited longest for
    its head makes room, so that silent connections lock nobody out.
    """

    settings: ServeSettings
    waiting: dict["GuardedProtocol", None]
    """Connections without a whole head, the oldest first."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._head_bytes: int | None = 0
        """Bytes of the head so far; none while a request is being answered."""
        self._deadlines: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Expect a head, and make room if there are too many connections."""
        super().connection_made(transport)
        self._expect_head()
        while len(self.connections) > self.settings.max_connections and self.waiting:
            oldest = next(iter(self.waiting))
            self.connections.discard(oldest)
            oldest.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._forget_head()
        self._within("answer", None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, unless the head has become too long."""
        if self.transport.is_closing():
            return
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes is not None and self._head_bytes > self.settings.max_head_bytes:
            self.refuse("431 Request Header Fields Too Large", "the head of the request is too long")

    def on_message_begin(self) -> None:
        """Expect the rest of the head of another request on the same connection."""
        super().on_message_begin()
        if self._head_bytes is None:
            self._expect_head()

    def on_headers_complete(self) -> None:
        """Take the request, unless its head was too long."""
        self._forget_head()
        self._head_bytes = None
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.settings.max_head_bytes:
            self.refuse("431 Request Header Fields Too Large", "the head of the request is too long")
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, unless the request was refused."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of the body, unless the request was refused."""
        if not self.transport.is_closing():
            super().on_message_complete()

    def pause_writing(self) -> None:
        """Give the client some time to read its answer."""
        super().pause_writing()
        self._within("answer", self.drop)

    def resume_writing(self) -> None:
        """The client reads."""
        self._within("answer", None)
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, also if its last answer was not read to the end."""
        super().timeout_keep_alive_handler()
        self._within("answer", self.drop)

    def refuse(self, status: str, message: str) -> None:
        """Answer in plain text, and close the connection."""
        if not self.transport.is_closing():
            self.transport.write(_REFUSAL.format(status=status, message=message).encode())
            self.transport.close()

    def drop(self) -> None:
        """Close the connection, and forget what was not sent yet."""
        self._forget_head()
        self.transport.abort()

    def _expect_head(self) -> None:
        self._head_bytes = 0
        self.waiting[self] = None
        self._within("head", lambda: self.refuse("408 Request Timeout", "the head of the request came too slowly"))

    def _forget_head(self) -> None:
        self.waiting.pop(self, None)
        self._within("head", None)

    def _within(self, what: str, call: Callable[[], None] | None) -> None:
        """Set, or with none remove, the call that is made when the time for something is over."""
        if (before := self._deadlines.pop(what, None)) is not None:
            before.cancel()
        if call is not None:
            most = self.settings.head_seconds if what == "head" else self.settings.timeout
            self._deadlines[what] = self.loop.call_later(min(most, self.settings.timeout), call)


def guarded(settings: ServeSettings) -> type[GuardedProtocol]:
    """The protocol of connections with these limits."""
    return type("Connection", (GuardedProtocol,), {"settings": settings, "waiting": {}})
