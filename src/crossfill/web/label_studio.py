"""An ML backend for Label Studio: predictions for its tasks, and learning from its annotations."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from crossfill.data.segmentation import split_text
from crossfill.grid.task import Task
from crossfill.integrations.label_studio import Labelling, prediction
from crossfill.integrations.label_studio_events import ANNOTATED, START, annotations, labelled_sentences
from crossfill.prediction.tagging import Tagging
from crossfill.web.desk import Desk, Document
from crossfill.web.lessons import CHANGING_PROBLEMS, Lesson, Lessons
from crossfill.web.problems import too_large
from crossfill.web.reading import CELL_PROBLEMS, body_of, json_body, parse_json, read_json
from crossfill.web.settings import ServeSettings
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


class Project(BaseModel):
    """A project."""

    label_config: str = Field(description="The project's labelling configuration, as XML.")


class Event(BaseModel):
    """What happened in a project; annotations come with their tasks."""

    model_config = ConfigDict(extra="allow")

    action: str = Field(description="ANNOTATION_CREATED, ANNOTATION_UPDATED, START_TRAINING; others change nothing.")
    project: Project | None = None


class Learned(BaseModel):
    """What came of an event."""

    accepted: int = Field(description="Sentences that were new, or labelled anew.")
    learning: bool = Field(description="Whether the cell learns now, in the background.")


def routes(desk: Desk, lessons: Lessons, versions: Versions) -> APIRouter:
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

    @router.post(
        "/webhook",
        status_code=201,
        summary="Learn from annotations",
        response_model=Learned,
        responses=CELL_PROBLEMS | CHANGING_PROBLEMS,
        openapi_extra={"requestBody": body_of(Event)},
    )
    async def webhook(request: Request, task: TaskName, language: LanguageName) -> Learned:
        cell, body = find(task, language), await json_body(request)
        event = parse_json(body, Event)
        if event.action == START:
            return Learned(accepted=0, learning=await lessons.learn(cell))
        if event.action not in ANNOTATED:
            return Learned(accepted=0, learning=False)
        grid_task = tagger.model.inventory.task(cell.task)
        return Learned(
            accepted=await lessons.take(cell, lambda: _annotated(event, cell.language, grid_task, desk.settings)),
            learning=await lessons.learn(cell),
        )

    return router


def _annotated(event: Event, language: str, task: Task, limits: ServeSettings) -> list[Lesson]:
    """The labelled sentences of all annotations that an event brings."""
    found = []
    for annotation in annotations(event.model_extra or {}):
        labelling = Labelling.parse(event.project.label_config if event.project else "")
        text = labelling.text(annotation.task)
        if len(text) > limits.max_characters:
            raise too_large("characters in a task", limits.max_characters, len(text))
        if len(annotation.result) > limits.max_words:
            raise too_large("regions in a task", limits.max_words, len(annotation.result))
        sentences = labelled_sentences(text, annotation.result, labelling, language, task)
        found.append(Lesson(annotation.who, sentences))
    return found


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
