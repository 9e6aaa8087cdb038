"""Bodies of requests: JSON of a known shape, and what can be wrong with them."""

from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from crossfill.web.problems import ApiError, invalid
from crossfill.web.schemas import Problem

Body = TypeVar("Body", bound=BaseModel)
PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": Problem, "description": "No token, or the wrong one"},
    421: {"model": Problem, "description": "A request for another host"},
}
BODY_PROBLEMS: dict[int | str, dict[str, Any]] = PROBLEMS | {
    400: {"model": Problem, "description": "Not JSON in UTF-8"},
    408: {"model": Problem, "description": "The request did not arrive in time"},
    413: {"model": Problem, "description": "More text than the limits allow"},
    415: {"model": Problem, "description": "Another media type than application/json"},
    422: {"model": Problem, "description": "Not a request that can be answered: an unknown cell, no text, …"},
    429: {"model": Problem, "description": "Too many requests wait"},
    503: {"model": Problem, "description": "No answer in time, or the server is stopping"},
}

CELL_PROBLEMS: dict[int | str, dict[str, Any]] = BODY_PROBLEMS | {
    404: {"model": Problem, "description": "No such cell"},
}


async def read_json(request: Request, kind: type[Body]) -> Body:
    """The body of a request, which has to be JSON of this kind."""
    return parse_json(await json_body(request), kind)


async def json_body(request: Request) -> bytes:
    """The body of a request, which has to say that it is JSON."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ApiError(415, "unsupported", f"expected Content-Type application/json, got '{media_type[:100]}'")
    return await request.body()


def parse_json(body: bytes, kind: type[Body]) -> Body:
    """Parse the body of a request; errors do not repeat what was sent, and only the first is looked for."""
    try:
        found = from_json(body)
    except ValueError as error:
        raise ApiError(400, "not_json", f"expected JSON in UTF-8; {error}") from None
    known = kind.model_fields
    keys = found if isinstance(found, dict) and kind.model_config.get("extra") == "forbid" else ()
    if extra := next((key for key in keys if key not in known), None):
        raise invalid(f"{extra[:100]}: expected {', '.join(known)}, and nothing else")
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise invalid(f"{where}: {first['msg']}" if where else first["msg"]) from None


def body_of(kind: type[BaseModel], example: dict[str, Any] | None = None) -> dict[str, Any]:
    """A request's body in the OpenAPI document, with an example."""
    schema = plain_schema(kind) | ({"examples": [example]} if example else {})
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def plain_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model with those of its parts in their places, as references would point to nothing here."""
    schema = kind.model_json_schema()
    parts = schema.pop("$defs", {})

    def placed(value: Any) -> Any:
        if isinstance(value, dict):
            name = value.get("$ref", "").rpartition("/")[2] if isinstance(value.get("$ref"), str) else ""
            return placed(parts[name]) if name in parts else {key: placed(item) for key, item in value.items()}
        return [placed(item) for item in value] if isinstance(value, list) else value

    return placed(schema)
