"""Problems of requests: each has an HTTP status, a name for programs, and a message for people."""

from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException as AnyHTTPException

from crossfill.errors import CrossfillError, OutputError


class Problem(BaseModel):
    """Why a request was not answered."""

    error: str = Field(description="The kind of problem, for programs.")
    message: str = Field(description="What was expected, what was found and what to do, for people.")


_KINDS = {
    400: ("not_json", "Not JSON in UTF-8"),
    401: ("unauthorized", "No token, or the wrong one"),
    403: ("other_site", "A page of another site"),
    404: ("not_found", "No such cell"),
    405: ("not_allowed", "Another method"),
    408: ("too_slow", "The request did not arrive in time"),
    409: ("not_teaching", "The server does not teach"),
    413: ("too_large", "More text than the limits allow"),
    415: ("unsupported", "Another media type than application/json"),
    421: ("misdirected", "A request for another host"),
    422: ("invalid", "Not a request that can be answered: an unknown cell, no text, …"),
    429: ("busy", "Too many requests wait"),
    499: ("gone", "The client went away"),
    500: ("failure", "The server failed"),
    503: ("unavailable", "No answer in time, or the server is stopping"),
    507: ("not_saved", "The disk is full, or cannot be written: nothing was kept"),
}
"""The name of each problem, and what it means."""
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}, 503: {"Retry-After": "5"}}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": meaning}
    for status, (_, meaning) in _KINDS.items()
    if status not in (405, 499, 500)
}
"""The problems that an operation may have, as FastAPI describes them."""


class ApiError(HTTPException):
    """An error that is sent to the client as a problem, with a message for people."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message, _HEADERS.get(status))


def check_size(what: str, most: int, size: int) -> None:
    """Refuse a request over a size limit."""
    if size > most:
        raise ApiError(413, f"expected at most {most:,} {what}, got {size:,}; send the text in parts")


def answer_problems(app: FastAPI) -> None:
    """Have an app answer every error with a problem; messages do not repeat what was sent."""

    @app.exception_handler(CrossfillError)
    async def on_bad_input(_: Request, error: CrossfillError) -> Response:
        return problem_response(ApiError(507 if isinstance(error, OutputError) else 422, str(error)))

    @app.exception_handler(RequestValidationError)
    async def on_bad_values(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][1:]))[:100]
        return problem_response(ApiError(422, f"{where}: {first['msg']}" if where else first["msg"]))

    @app.exception_handler(AnyHTTPException)
    async def on_http_error(_: Request, error: AnyHTTPException) -> Response:
        if not isinstance(error, ApiError):
            messages = {404: "nothing is here; /docs lists what there is", 405: "wrong method"}
            error.detail = messages.get(error.status_code, "the request was refused")
        return problem_response(error)


def problem_response(error: AnyHTTPException) -> JSONResponse:
    """Write a problem as JSON."""
    kind, _ = _KINDS.get(error.status_code, ("refused", ""))
    content = Problem(error=kind, message=error.detail).model_dump()
    return JSONResponse(content, error.status_code, headers=error.headers)
