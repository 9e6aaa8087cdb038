"""An ML backend for Label Studio: predictions for its tasks, and learning from its annotations."""

import json
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from crossfill.data.segmentation import split_text
from crossfill.grid.cells import Cell
from crossfill.grid.task import Task
from crossfill.integrations.label_studio import (
    ANNOTATED,
    DELETED,
    START,
    LabelConfig,
    annotations,
    deleted_annotations,
    labelled_sentences,
    prediction,
)
from crossfill.prediction.tagging import Tagging
from crossfill.web.annotators import AnnotatedSentences, CellVersions, IncomingAnnotations, cell_in_address
from crossfill.web.problems import CELL_PROBLEMS, CHANGING_PROBLEMS, JsonRoute, too_large
from crossfill.web.request_queue import ForeignDocument, RequestQueue
from crossfill.web.settings import ServeSettings

PATHS = ("health", "setup", "predict", "webhook")
"""What there is for each cell."""


class SetupRequest(BaseModel):
    """A project that wants predictions."""

    label_schema: str = Field(alias="schema", description="The project's labelling configuration, as XML.")


class TasksRequest(BaseModel):
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


class TaskPrediction(BaseModel):
    """The prediction for a task."""

    result: list[dict[str, Any]] = Field(description="Regions, their probability as score; empty if none is found.")
    score: float = Field(description="The lower, the more doubtful: lowest first is the order of `annotate`.")
    model_version: str


class Predictions(Version):
    """Predictions for all tasks, in their order."""

    results: list[TaskPrediction]


class Project(BaseModel):
    """A project."""

    label_config: str = Field(description="The project's labelling configuration, as XML.")


class Event(BaseModel):
    """What happened in a project; annotations come with their tasks."""

    model_config = ConfigDict(extra="allow")

    action: str = Field(description="As ANNOTATION_CREATED, ANNOTATIONS_DELETED, START_TRAINING.")
    project: Project | None = None


class EventAnswer(BaseModel):
    """The effect of an event."""

    accepted: int = Field(description="Sentences that were new, or have new labels.")
    learning: bool = Field(description="Whether the cell learns now, in the background.")


def routes(queue: RequestQueue, incoming: IncomingAnnotations, versions: CellVersions) -> APIRouter:
    """Build the addresses of an ML backend for each cell."""
    router = APIRouter(prefix="/label-studio/{task}/{language}", tags=["Label Studio"], route_class=JsonRoute)
    inventory = queue.engine.tagger.model.inventory
    cell_named = Depends(cell_in_address(queue.engine.tagger))

    @router.get(
        "/health",
        summary="Whether the backend works",
        responses={code: CELL_PROBLEMS[code] for code in (401, 404, 421)},
    )
    async def health(cell: Cell = cell_named) -> Up:
        return Up(model_version=versions.of(cell))

    @router.post("/setup", summary="Check a project's labelling configuration", responses=CELL_PROBLEMS)
    async def setup(body: SetupRequest, cell: Cell = cell_named) -> Version:
        LabelConfig.parse(body.label_schema).check(inventory.task(cell.task).labels)
        return Version(model_version=versions.of(cell))

    @router.post(
        "/predict", summary="Predict the regions of tasks", response_model=Predictions, responses=CELL_PROBLEMS
    )
    async def predict(request: Request, body: TasksRequest, cell: Cell = cell_named) -> Response:
        version = versions.of(cell)
        answer = await queue.tag(request, lambda: _tasks(body, cell.language, version), cell)
        return Response(answer, media_type="application/json")

    @router.post(
        "/webhook",
        status_code=201,
        summary="Learn from annotations",
        responses=CELL_PROBLEMS | CHANGING_PROBLEMS,
    )
    async def webhook(event: Event, cell: Cell = cell_named) -> EventAnswer:
        accepted = 0
        if event.action in ANNOTATED:
            accepted = await incoming.accept(
                cell, lambda: _annotated(event, cell.language, inventory.task(cell.task), queue.settings)
            )
        elif event.action == DELETED:
            await incoming.forget(cell, deleted_annotations(event.model_extra or {}), "Label Studio")
        elif event.action != START:
            return EventAnswer(accepted=0, learning=False)
        return EventAnswer(accepted=accepted, learning=await incoming.learn(cell))

    return router


def _annotated(event: Event, language: str, task: Task, limits: ServeSettings) -> list[AnnotatedSentences]:
    """Read the labelled sentences of all annotations that an event brings."""
    annotated = []
    for annotation in annotations(event.model_extra or {}):
        labelling = LabelConfig.parse(event.project.label_config if event.project else "")
        text = labelling.text(annotation.task)
        if len(text) > limits.max_characters:
            raise too_large("characters in a task", limits.max_characters, len(text))
        if len(annotation.result) > limits.max_words:
            raise too_large("regions in a task", limits.max_words, len(annotation.result))
        sentences = labelled_sentences(text, annotation.result, labelling, language, task)
        annotated.append(AnnotatedSentences(annotation.who, sentences, annotation.source))
    return annotated


def _tasks(request: TasksRequest, language: str, version: str) -> ForeignDocument:
    """Cut the texts of all tasks of a request into sentences, to be answered with their predictions."""
    labelling = LabelConfig.parse(request.label_config)
    texts = [labelling.text(task) for task in request.tasks]
    tasks = [list(split_text(text, language)) for text in texts]

    def answer(taggings: Sequence[Tagging]) -> bytes:
        rest = iter(taggings)
        results = [
            prediction([next(rest) for _ in sentences], labelling, text, version)
            for text, sentences in zip(texts, tasks, strict=True)
        ]
        return json.dumps({"results": results, "model_version": version}, ensure_ascii=False).encode()

    return ForeignDocument([sentence for sentences in tasks for sentence in sentences], answer)
