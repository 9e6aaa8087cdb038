"""An ML backend for Label Studio: predictions for its tasks, and learning from its annotations."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from crossfill.data.segmentation import split_text
from crossfill.integrations.label_studio import Labelling, prediction
from crossfill.prediction.tagging import Tagging
from crossfill.web.desk import Desk, Document
from crossfill.web.reading import CELL_PROBLEMS, body_of, json_body, parse_json, read_json
from crossfill.web.tools import LanguageName, TaskName, Versions, cell_of

PATHS = ("health", "setup", "predict", "webhook")
"""What there is for each cell."""


class SetupRequest(BaseModel):
    """A project that wants predictions."""

    label_schema: str = Field(alias="schema", description="The project's labelling configuration, as XML.")


class PredictRequest(BaseModel):
    """Tasks that want predictions."""

    tasks: list[dict[str, Any]] = Field(description="Tasks; the configuration says where their data has the text.")
    label_config: str = Field(description="The project's labelling configuration, as XML.")


class Up(BaseModel):
    """The backend works."""

    status: str = "UP"
    model_version: str


class Version(BaseModel):
    """The version of what predicts; new with every adaptation of the cell."""

    model_version: str


class Prediction(BaseModel):
    """The prediction for a task."""

    result: list[dict[str, Any]] = Field(description="Regions, their probability as score; empty if none is found.")
    score: float = Field(description="The lower, the more doubtful: lowest first is the order of `annotate`.")
    model_version: str


class Predictions(Version):
    """Predictions for all tasks, in their order."""

    results: list[Prediction]


def routes(desk: Desk, versions: Versions) -> APIRouter:
    """The addresses of an ML backend for each cell."""
    router = APIRouter(prefix="/label-studio/{task}/{language}", tags=["Label Studio"])
    tagger = desk.engine.tagger
    find = partial(cell_of, tagger)

    @router.get(
        "/health",
        summary="Whether the backend works",
        responses={code: CELL_PROBLEMS[code] for code in (401, 404, 421)},
    )
    async def health(task: TaskName, language: LanguageName) -> Up:
        return Up(model_version=versions.of(find(task, language)))

    @router.post(
        "/setup",
        summary="Check a project's labelling configuration",
        response_model=Version,
        responses=CELL_PROBLEMS,
        openapi_extra={"requestBody": body_of(SetupRequest)},
    )
    async def setup(request: Request, task: TaskName, language: LanguageName) -> Version:
        cell = find(task, language)
        asked = await read_json(request, SetupRequest)
        Labelling.parse(asked.label_schema).check(tagger.model.inventory.labels[cell.task])
        return Version(model_version=versions.of(cell))

    @router.post(
        "/predict",
        summary="Predict the regions of tasks",
        response_model=Predictions,
        responses=CELL_PROBLEMS,
        openapi_extra={"requestBody": body_of(PredictRequest)},
    )
    async def predict(request: Request, task: TaskName, language: LanguageName) -> Response:
        cell = find(task, language)
        body, version = await json_body(request), versions.of(cell)
        answer = await desk.tag(request, lambda: _tasks(body, cell.language, version), cell)
        return Response(answer, media_type="application/json")

    return router


def _tasks(body: bytes, language: str, version: str) -> Document:
    """The sentences of all tasks of a request, and their predictions as its answer."""
    request = parse_json(body, PredictRequest)
    labelling = Labelling.parse(request.label_config)
    texts = [labelling.text(task) for task in request.tasks]
    tasks = [list(split_text(text, language)) for text in texts]

    def answer(taggings: Sequence[Tagging]) -> bytes:
        rest = iter(taggings)
        results = [
            prediction([next(rest) for _ in sentences], labelling, text, version)
            for text, sentences in zip(texts, tasks, strict=True)
        ]
        return json.dumps({"results": results, "model_version": version}, ensure_ascii=False).encode()

    return Document([sentence for sentences in tasks for sentence in sentences], answer)
