"""Problems of requests: each has an HTTP status, a name for programs, and a message for people."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from pydantic_core import from_json
from starlette.exceptions import HTTPException as AnyHTTPException

from crossfill import __version__
from crossfill.errors import CrossfillError


class Answer(BaseModel):
    """What every answer contains."""

    version: str = Field(default=__version__, description="The version of crossfill that answers.")


class Problem(Answer):
    """Why a request was not answered."""

    error: str = Field(description="The kind of problem, for programs.")
    message: str = Field(description="What was expected, what was found and what to do, for people.")


_DESCRIPTIONS = {
    400: "Not JSON in UTF-8",
    401: "No token, or the wrong one",
    403: "A page of another site",
    404: "No such cell",
    408: "The request did not arrive in time",
    409: "The server does not teach",
    413: "More text than the limits allow",
    415: "Another media type than application/json",
    421: "A request for another host",
    422: "Not a request that can be answered: an unknown cell, no text, …",
    429: "Too many requests wait",
    503: "No answer in time, or the server is stopping",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the problems that an operation may have, as FastAPI wants them."""
    return {status: {"model": Problem, "description": _DESCRIPTIONS[status]} for status in statuses}


PROBLEMS = problems(401, 421)
BODY_PROBLEMS = PROBLEMS | problems(400, 408, 413, 415, 422, 429, 503)


class ApiError(HTTPException):
    """An error that is sent to the client as a problem."""

    def __init__(self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.kind, self.message = kind, message


def check_size(what: str, most: int, size: int) -> None:
    """Refuse a request over a size limit."""
    if size > most:
        raise ApiError(413, "too_large", f"expected at most {most:,} {what}, got {size:,}; send the text in parts")


def invalid(message: str) -> ApiError:
    """Make the error of a request with invalid values."""
    return ApiError(422, "invalid", message)


def busy(message: str = "too many requests are waiting; try again in a second") -> ApiError:
    """Make the error of a request that came while too much is going on."""
    return ApiError(429, "busy", message, {"Retry-After": "1"})


def unavailable(message: str) -> ApiError:
    """Make the error of a request without an answer in time, or at a server that is stopping."""
    return ApiError(503, "unavailable", message, {"Retry-After": "5"})


class JsonRequest(Request):
    """A request whose body has to be JSON in UTF-8, and has to say so.

    FastAPI reads any media type, other encodings, and halves of surrogate pairs, which no file could hold.
    """

    async def body(self) -> bytes:
        """Read the body."""
        media_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise ApiError(415, "unsupported", f"expected Content-Type application/json, got '{media_type[:100]}'")
        return await super().body() or b" "  # FastAPI takes no body for none that was asked for

    async def json(self) -> Any:
        """Parse the body."""
        try:
            return from_json(await self.body())
        except ValueError as error:
            raise ApiError(400, "not_json", f"expected JSON in UTF-8; {error}") from None


class JsonRoute(APIRoute):
    """An address that reads bodies as `JsonRequest` does."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Have FastAPI's handler read a `JsonRequest`."""
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return handle_json


def answer_problems(app: FastAPI) -> None:
    """Have an app answer every error with a problem; messages do not repeat what was sent."""

    @app.exception_handler(CrossfillError)
    async def on_bad_input(_: Request, error: CrossfillError) -> Response:
        return problem_response(ApiError(422, "invalid", str(error)))

    @app.exception_handler(RequestValidationError)
    async def on_bad_values(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][1:]))[:100]
        return problem_response(invalid(f"{where}: {first['msg']}" if where else first["msg"]))

    @app.exception_handler(AnyHTTPException)
    async def on_http_error(_: Request, error: AnyHTTPException) -> Response:
        if isinstance(error, ApiError):
            return problem_response(error)
        kinds = {404: ("not_found", "nothing is here; /docs lists what there is"), 405: ("not_allowed", "wrong method")}
        kind, message = kinds.get(error.status_code, ("refused", "the request was refused"))
        return problem_response(ApiError(error.status_code, kind, message, error.headers))


def problem_response(error: ApiError) -> JSONResponse:
    """Write a problem as JSON."""
    content = Problem(error=error.kind, message=error.message).model_dump()
    return JSONResponse(content, error.status_code, headers=dict(error.headers or {}))
