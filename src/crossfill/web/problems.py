"""Errors of the API: each has an HTTP status, a name for programs, and a message for people."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(eq=False)  # not frozen: Python writes the traceback into it
class ApiError(Exception):
    """An error that is sent to the client as a problem."""

    status: int
    error: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


def too_large(what: str, most: int, found: int | str) -> ApiError:
    """A request over a size limit."""
    number = f"{found:,}" if isinstance(found, int) else found
    return ApiError(413, "too_large", f"expected at most {most:,} {what}, got {number}; send the text in parts")


def invalid(message: str) -> ApiError:
    """A request with invalid values."""
    return ApiError(422, "invalid", message)


def busy() -> ApiError:
    """Too many requests at once."""
    return ApiError(429, "busy", "too many requests are waiting; try again in a second", {"Retry-After": "1"})


def unavailable(message: str) -> ApiError:
    """No answer in time, or the server is stopping."""
    return ApiError(503, "unavailable", message, {"Retry-After": "5"})
