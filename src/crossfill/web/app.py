"""The web app: three API endpoints, the page, and error responses."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from crossfill import __version__
from crossfill.errors import CrossfillError
from crossfill.tagger.tagger import Tagger
from crossfill.web.assets import Asset, load_assets
from crossfill.web.desk import Desk
from crossfill.web.engine import Engine, n_characters
from crossfill.web.overview import describe
from crossfill.web.problems import ApiError, invalid
from crossfill.web.schemas import GridAnswer, Health, Problem, TagAnswer, TagRequest
from crossfill.web.settings import ServeSettings
from crossfill.web.shield import Shield

DESCRIPTION = "Tags text in any cell of a task × language grid, and says how sure it is of every word."
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    401: {"model": Problem, "description": "No token, or the wrong one"},
    421: {"model": Problem, "description": "A request for another host"},
}
_TAG_PROBLEMS: dict[int | str, dict[str, Any]] = _PROBLEMS | {
    400: {"model": Problem, "description": "Not JSON in UTF-8"},
    408: {"model": Problem, "description": "The request did not arrive in time"},
    413: {"model": Problem, "description": "More text than the limits allow"},
    415: {"model": Problem, "description": "Another media type than application/json"},
    422: {"model": Problem, "description": "Not a request that can be answered: an unknown cell, no text, …"},
    429: {"model": Problem, "description": "Too many requests wait"},
    503: {"model": Problem, "description": "No answer in time, or the server is stopping"},
}


def build_app(
    tagger: Tagger,
    settings: ServeSettings | None = None,
    name: str = "model",
    examples: Mapping[str, Sequence[str]] | None = None,
) -> FastAPI:
    """The app that serves a tagger."""
    settings = settings or ServeSettings()
    engine, assets = Engine(tagger, settings), load_assets()
    grid_answer = describe(tagger, name, examples or {}, settings)
    overview = grid_answer.model_dump_json().encode()
    desk = Desk(engine, settings)
    batcher = desk.batcher

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        await batcher.close()

    app = FastAPI(
        title="crossfill",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's page loads scripts from other hosts; ours is at /docs
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,
    )

    @app.get("/api/health", summary="Whether the server works", responses={421: _PROBLEMS[421]})
    async def health() -> Health:
        """Answers without a token, too."""
        return Health(status="ok", waiting=batcher.n_waiting, capacity=batcher.capacity)

    @app.get("/api/grid", summary="The model's grid", response_model=GridAnswer, responses=_PROBLEMS)
    async def grid() -> Response:
        """Tasks, languages and cells, with scores where the model was evaluated."""
        return Response(overview, media_type="application/json")

    @app.post(
        "/api/tag",
        summary="Tag text",
        response_model=TagAnswer,
        responses=_TAG_PROBLEMS,
        openapi_extra={"requestBody": _body(grid_answer)},
    )
    async def tag(request: Request) -> Response:
        """Label the words of a text in one or more cells, with confidence, entropy and its epistemic part."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            raise ApiError(415, "unsupported", f"expected Content-Type application/json, got '{media_type[:100]}'")
        wanted = read_request(await request.body())
        job = engine.job(wanted)
        request.scope["about"] = {"cells": len(wanted.cells), "characters": n_characters(wanted)}
        answer: bytes = await desk.do(request, job)
        return Response(answer, media_type="application/json")

    for path, asset in assets.items():
        app.add_route(f"/{path}", _file(asset), methods=["GET"], include_in_schema=False)

    @app.exception_handler(ApiError)
    async def on_api_error(_: Request, error: ApiError) -> Response:
        return _problem(error.status, error.error, error.message, error.headers)

    @app.exception_handler(CrossfillError)
    async def on_bad_input(_: Request, error: CrossfillError) -> Response:
        return _problem(422, "invalid", str(error))

    @app.exception_handler(HTTPException)
    async def on_http_error(_: Request, error: HTTPException) -> Response:
        known = {404: ("not_found", "nothing is here; /docs lists what there is"), 405: ("not_allowed", "wrong method")}
        kind, message = known.get(error.status_code, ("refused", "the request was refused"))
        return _problem(error.status_code, kind, message, error.headers)

    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    paths = {f"/{name}" for name in assets} | {"/api/health", "/api/grid", "/api/tag", "/api/openapi.json"}
    app.add_middleware(Shield, settings=settings, paths=frozenset(paths))
    app.state.batcher = batcher
    return app


def _body(grid: GridAnswer) -> dict[str, Any]:
    """The request's body in the OpenAPI document, with an example that this model can answer."""
    language = grid.languages[0]
    text = language.examples[0] if language.examples else "Dakar"
    example = {"cells": [f"{grid.tasks[0].name}/{language.code}"], "text": text}
    schema = TagRequest.model_json_schema() | {"examples": [example]}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _file(asset: Asset) -> Callable[[Request], Awaitable[Response]]:
    headers = {"etag": asset.etag, "cache-control": "no-cache"}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == asset.etag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.media_type, headers=headers)

    return answer


def read_request(body: bytes) -> TagRequest:
    """Parse the body of a request; errors do not repeat what was sent, and only the first is looked for."""
    try:
        found = from_json(body)
    except ValueError as error:
        raise ApiError(400, "not_json", f"expected JSON in UTF-8; {error}") from None
    if isinstance(found, dict) and (extra := next((key for key in found if key not in TagRequest.model_fields), None)):
        raise invalid(f"{extra[:100]}: expected {', '.join(TagRequest.model_fields)}, and nothing else")
    try:
        return TagRequest.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise invalid(f"{where}: {first['msg']}" if where else first["msg"]) from None


def _problem(status: int, error: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    content = Problem(error=error, message=message).model_dump()
    return JSONResponse(content, status, headers=dict(headers or {}))
