"""The web app: three API endpoints, the page, and error responses."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from crossfill import __version__
from crossfill.errors import CrossfillError
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.teacher import Teacher
from crossfill.web import inception, label_studio
from crossfill.web.assets import Asset, load_assets
from crossfill.web.desk import Desk
from crossfill.web.engine import Engine, n_characters
from crossfill.web.lessons import Lessons
from crossfill.web.overview import describe
from crossfill.web.problems import ApiError
from crossfill.web.reading import BODY_PROBLEMS, PROBLEMS, body_of, read_json
from crossfill.web.schemas import GridAnswer, Health, Problem, TagAnswer, TagRequest
from crossfill.web.settings import ServeSettings
from crossfill.web.shield import Shield
from crossfill.web.teach import add_teaching
from crossfill.web.tools import Versions

DESCRIPTION = "Tags text in any cell of a task × language grid, and says how sure it is of every word."


def build_app(
    tagger: Tagger,
    settings: ServeSettings | None = None,
    name: str = "model",
    examples: Mapping[str, Sequence[str]] | None = None,
    teacher: Teacher | None = None,
) -> FastAPI:
    """The app that serves a tagger; nothing about it can be changed unless there is a teacher of it."""
    settings = settings or ServeSettings()
    engine, assets = Engine(tagger, settings, teacher and teacher.encoding), load_assets(teach=teacher is not None)
    grid_answer = describe(tagger, name, examples or {}, settings, teach=teacher is not None)
    overview = grid_answer.model_dump_json().encode()
    desk = Desk(engine, settings)
    batcher = desk.batcher

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        await batcher.close()
        if teacher is not None:
            await asyncio.to_thread(teacher.close)

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

    @app.get("/api/health", summary="Whether the server works", responses={421: PROBLEMS[421]})
    async def health() -> Health:
        """Answers without a token, too."""
        return Health(status="ok", waiting=batcher.n_waiting, capacity=batcher.capacity)

    @app.get("/api/grid", summary="The model's grid", response_model=GridAnswer, responses=PROBLEMS)
    async def grid() -> Response:
        """Tasks, languages and cells, with scores where the model was evaluated."""
        return Response(overview, media_type="application/json")

    @app.post(
        "/api/tag",
        summary="Tag text",
        response_model=TagAnswer,
        responses=BODY_PROBLEMS,
        openapi_extra={"requestBody": body_of(TagRequest, _example(grid_answer))},
    )
    async def tag(request: Request) -> Response:
        """Label the words of a text in one or more cells, with confidence, entropy and its epistemic part."""
        wanted = await read_json(request, TagRequest)
        job = engine.job(wanted)
        request.scope["about"] = {"cells": len(wanted.cells), "characters": n_characters(wanted)}
        answer: bytes = await desk.do(request, job)
        return Response(answer, media_type="application/json")

    versions = Versions(name, tagger, teacher.version if teacher is not None else lambda _: "0")
    lessons = Lessons(teacher, desk)
    app.include_router(label_studio.routes(desk, lessons, versions))
    app.include_router(inception.routes(desk, lessons))
    if teacher is not None:
        add_teaching(app, teacher, desk)
    for path, asset in assets.items():
        app.add_route(f"/{path}", _file(asset), methods=["GET"], include_in_schema=False)

    @app.exception_handler(ApiError)
    async def on_api_error(_: Request, error: ApiError) -> Response:
        return _problem(error.status, error.error, error.message, error.headers)

    @app.exception_handler(CrossfillError)
    async def on_bad_input(_: Request, error: CrossfillError) -> Response:
        return _problem(422, "invalid", str(error))

    @app.exception_handler(RequestValidationError)
    async def on_bad_parameter(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return _problem(422, "invalid", f"{first['loc'][-1]}: {first['msg']}")

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
    paths = {f"/{name}" for name in assets} | {"/api/openapi.json", *app.openapi()["paths"]}
    paths |= {f"/label-studio/{cell}/{what}" for cell in tagger.cells for what in label_studio.PATHS}
    paths |= {f"/inception/{cell}/{what}" for cell in tagger.cells for what in inception.PATHS}
    app.add_middleware(Shield, settings=settings, paths=frozenset(paths))
    app.state.batcher = batcher
    return app


def _example(grid: GridAnswer) -> dict[str, Any]:
    """A request that this model can answer."""
    language = grid.languages[0]
    text = language.examples[0] if language.examples else "Dakar"
    return {"cells": [f"{grid.tasks[0].name}/{language.code}"], "text": text}


def _file(asset: Asset) -> Callable[[Request], Awaitable[Response]]:
    headers = {"etag": asset.etag, "cache-control": "no-cache"}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == asset.etag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.media_type, headers=headers)

    return answer


def _problem(status: int, error: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    content = Problem(error=error, message=message).model_dump()
    return JSONResponse(content, status, headers=dict(headers or {}))
