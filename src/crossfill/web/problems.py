"""Requests that cannot be answered: each kind has a status, a name for programs, and a message for people."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(eq=False)  # not frozen: Python writes the traceback into it
class ApiError(Exception):
    """A request that is answered with a problem."""

    status: int
    error: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


def too_large(what: str, most: int, found: int | str) -> ApiError:
    """More than a request may hold."""
    number = f"{found:,}" if isinstance(found, int) else found
    return ApiError(413, "too_large", f"expected at most {most:,} {what}, got {number}; send the text in parts")


def invalid(message: str) -> ApiError:
    """A request that makes no sense."""
    return ApiError(422, "invalid", message)


def busy() -> ApiError:
    """Too many requests at once."""
    return ApiError(429, "busy", "too many requests are waiting; try again in a second", {"Retry-After": "1"})


def unavailable(message: str) -> ApiError:
    """No answer in time, or no longer."""
    return ApiError(503, "unavailable", message, {"Retry-After": "5"})
