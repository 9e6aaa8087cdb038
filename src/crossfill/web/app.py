"""The web app: three API endpoints, the page's files, and what the page shows of a model."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Annotated, Any

import numpy as np
from fastapi import Body, FastAPI, Request, Response
from pydantic_core import to_json
from starlette.middleware.cors import CORSMiddleware

from crossfill import __version__
from crossfill.adaptation.heads import without_adapted
from crossfill.data.codes import language_name, language_tag
from crossfill.data.parallel_corpus import parallel_languages, parallel_sentences
from crossfill.grid.cells import Cell
from crossfill.measures.significance import pca
from crossfill.methods.registry import find_method
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.service import Teacher
from crossfill.web.annotators import inception_routes, label_studio_routes
from crossfill.web.engine import Engine, TagRequest
from crossfill.web.problems import PROBLEMS, answer_problems
from crossfill.web.request_queue import RequestQueue
from crossfill.web.security import Shield
from crossfill.web.serve_settings import MAX_CELLS, ServeSettings
from crossfill.web.teach import add_teaching

_MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
EXAMPLES = (16, 51)
"""Sentences of the parallel corpus that serve as examples, by number: they name people, places, organisations."""


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


def describe_grid(
    tagger: Tagger, name: str, examples: Mapping[str, Sequence[str]], settings: ServeSettings, teach: bool = False
) -> dict[str, Any]:
    """Describe a model: its grid, scores and labels, a map of its languages, example sentences and limits."""
    inventory, config = tagger.model.inventory, tagger.config
    places, spreads, shares = language_map(tagger)
    return {
        "model": {
            "name": name,
            "method": config.method,
            "encoder": PurePath(config.encoder.name).name,
            "samples": min(config.prediction.samples, settings.max_samples),
            "bayesian": tagger.model.heads.has_posterior,
        },
        "tasks": [
            {"name": task.name, "labels": task.labels, "metric": task.metric, "unit": task.unit}
            for task in inventory.tasks.values()
        ],
        "languages": [
            {
                "code": code,
                "tag": language_tag(code),
                "name": language_name(code),
                "place": places.get(code),
                "spread": spreads.get(code),
                "examples": examples.get(code) or _known_examples().get(code, []),
            }
            for code in inventory.languages
        ],
        "cells": [_cell(tagger, cell) for cell in tagger.cells],
        "map_shares": shares,
        "limits": {
            "characters": settings.max_characters,
            "words": settings.max_words,
            "samples": settings.max_samples,
            "cells": MAX_CELLS,
        },
        "teach": teach,
    }


def language_map(tagger: Tagger) -> tuple[dict[str, list[float]], dict[str, list[float]], list[float]]:
    """Project the posteriors of languages on two principal components: means, standard deviations, shares of variance.

    All are empty if the method has no language vectors, or there are fewer than three languages.
    """
    languages, read = tagger.model.inventory.languages, find_method(tagger.config.method).language_vectors
    if read is None or len(languages) < 3:
        return {}, {}, []
    means, variance, factor = (part.cpu().double().numpy() for part in read(without_adapted(tagger.model)))
    projection = pca(means, 2)
    if projection.points.shape[1] < 2:
        return {}, {}, []
    # the diagonal of V (diag(δ²) + B Bᵀ) Vᵀ, V the directions
    across = variance @ (projection.directions**2).T + ((projection.directions @ factor) ** 2).sum(-1)
    places = dict(zip(languages, projection.points.round(4).tolist(), strict=True))
    spreads = dict(zip(languages, np.sqrt(across).round(4).tolist(), strict=True))
    return places, spreads, projection.shares.round(4).tolist()


def _cell(tagger: Tagger, cell: Cell) -> dict[str, Any]:
    """Describe a cell with its mean scores over corpora, or if it has none, with what it is expected to score."""
    results = [result for result in tagger.results if result.cell == cell]
    expectations, expected = tagger.expectations, None
    if not results and expectations is not None and (score := expectations.of(cell)) is not None:
        expected = {"score": score.score, "low": score.low, "high": score.high, "level": expectations.level}
    return {
        "cell": str(cell),
        "status": "seen" if cell in tagger.seen else "unseen",
        "score": float(np.mean([result.score for result in results])) if results else None,
        "n_words": sum(result.n_words for result in results),
        "expected": expected,
    }


@cache
def _known_examples() -> dict[str, list[str]]:
    """Load a few sentences in some widely spoken languages, the same in each; two are of the parallel corpus."""
    known = json.loads(files("crossfill.web").joinpath("examples.json").read_text(encoding="utf-8"))
    for language in parallel_languages():
        sentences = parallel_sentences("ner", language)
        known[language] += [sentences[number].text for number in EXAMPLES]
    return known
