"""The web app: three API endpoints, the page's files, and error responses."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Body, FastAPI, Request, Response
from pydantic_core import to_json
from starlette.middleware.cors import CORSMiddleware

from crossfill import __version__
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.service import Teacher
from crossfill.web.annotators import inception_routes, label_studio_routes
from crossfill.web.engine import Engine, TagRequest
from crossfill.web.overview import describe_grid
from crossfill.web.problems import PROBLEMS, answer_problems
from crossfill.web.request_queue import RequestQueue
from crossfill.web.security import Shield
from crossfill.web.serve_settings import ServeSettings
from crossfill.web.teach import add_teaching

_MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def build_app(
    tagger: Tagger,
    settings: ServeSettings | None = None,
    name: str = "model",
    examples: Mapping[str, Sequence[str]] | None = None,
    teacher: Teacher | None = None,
) -> FastAPI:
    """Build the app that serves a tagger; nothing about it can be changed unless there is a teacher of it."""
    settings = settings or ServeSettings()
    engine = Engine(tagger, settings, teacher and teacher.encoding)
    queue = RequestQueue(engine, settings)
    described = describe_grid(tagger, name, examples or {}, settings, teach=teacher is not None)
    overview = to_json(described, inf_nan_mode="null")
    cell, texts = tagger.cells[0], (texts for language in described["languages"] for texts in language["examples"])
    example = {"cells": [str(cell)], "text": next(texts, "Dakar mooy péeyu Senegaal.")}

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        queue.batcher.start()
        yield
        await queue.batcher.close()
        if teacher is not None:
            await asyncio.to_thread(teacher.close)

    app = FastAPI(
        title="crossfill",
        version=__version__,
        description="Tags text in any cell of a task × language grid, and says how sure it is of every word.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's page loads scripts from other hosts; ours is at /docs
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,
        responses=PROBLEMS,
    )
    answer_problems(app)

    @app.get("/api/health", summary="Whether the server works")
    async def health() -> dict[str, str | int]:
        """How many requests wait, and how many can: more get 429. Answers without a token, too."""
        waiting, capacity = queue.batcher.n_waiting, queue.batcher.capacity
        return {"version": __version__, "status": "ok", "waiting": waiting, "capacity": capacity}

    @app.get("/api/grid", summary="The model's grid", response_model=dict[str, Any])
    async def grid() -> Response:
        """Tasks, languages and cells, with scores where the model was evaluated, and the limits of requests.

        A language has a `place` on a map of the posterior means, `spread` standard deviations around it, and examples.
        A cell without test data may have an expected score, between `low` and `high` with probability `level`.
        """
        return Response(overview, media_type="application/json")

    @app.post("/api/tag", summary="Tag text", response_model=dict[str, Any])
    async def tag(request: Request, wanted: Annotated[TagRequest, Body(examples=[example])]) -> Response:
        """Label the words of a text in one or more cells, with confidence, entropy and its epistemic part.

        `sentences` have `words`, `spaces` (after each word) and `offsets` (in Unicode code points). `taggings` have an
        entry for each cell, with `label_names` and its `sentences`: `labels`, `confidence`, `entropy` and
        `mutual_information` (nats) of every word, `spans`, and with distributions `probabilities`, `low` and `high`.
        """
        request.scope["about"] = {"cells": len(wanted.cells), "characters": wanted.n_characters}
        return await queue.tag(request, lambda: engine.read(wanted))

    app.include_router(label_studio_routes(queue, teacher, name))
    app.include_router(inception_routes(queue, teacher))
    if teacher is not None:
        add_teaching(app, teacher, queue)
    pages = _pages(teach=teacher is not None)
    for path, answer in pages.items():
        app.add_route(path, answer, methods=["GET"], include_in_schema=False)

    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    operations = app.openapi()["paths"]
    paths = {path.format(task=cell.task, language=cell.language) for path in operations for cell in tagger.cells}
    app.add_middleware(Shield, settings=settings, paths=frozenset({*pages, "/api/openapi.json", *paths}))
    app.state.batcher = queue.batcher
    return app


def _pages(teach: bool) -> dict[str, Callable[[Request], Awaitable[Response]]]:
    """Read the page's files once, so that no other file can be requested; answers by path."""
    answers = {}
    for file in files("crossfill.web").joinpath("static").iterdir():
        name, _, kind = file.name.rpartition(".")
        if kind in _MEDIA_TYPES and (teach or not name.startswith("teach")):
            short = "" if name == "index" else name
            paths = [f"/{file.name}", *([f"/{short}"] if kind == "html" else [])]
            answers |= dict.fromkeys(paths, _file(file.read_bytes(), _MEDIA_TYPES[kind]))
    return answers


def _file(content: bytes, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    headers = {"etag": f'"{hashlib.sha256(content).hexdigest()[:20]}"', "cache-control": "no-cache"}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    return answer
