"""An external recommender for INCEpTION: predictions for its documents, and learning from them."""

import json
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from crossfill.grid.task import Task
from crossfill.integrations import inception
from crossfill.integrations.inception_training import labelled_sentences
from crossfill.prediction.tagging import Tagging, TaggingOptions
from crossfill.web.desk import Desk, Document
from crossfill.web.lessons import CHANGING_PROBLEMS, Lesson, Lessons
from crossfill.web.problems import ApiError
from crossfill.web.reading import CELL_PROBLEMS, body_of, json_body, parse_json
from crossfill.web.tools import LanguageName, TaskName, cell_of

PATHS = ("predict", "train")
"""What there is for each cell."""


class Metadata(BaseModel):
    """What is to be predicted."""

    layer: str = Field(description="Type of the annotations.")
    feature: str = Field(description="Feature of the type that has the label.")
    anchoring: str = Field(
        default="tokens", alias="anchoringMode", description="characters, singleToken, tokens or sentences."
    )

    @property
    def named_layer(self) -> inception.Layer:
        """The layer that these values name."""
        return inception.Layer(self.layer, self.feature, self.anchoring)


class DocumentBody(BaseModel):
    """A document."""

    xmi: str = Field(description="The CAS as XMI.")
    user: str = Field(default="", alias="userId")


class PredictRequest(BaseModel):
    """A document that wants predictions."""

    metadata: Metadata
    document: DocumentBody
    type_system: str = Field(alias="typeSystem", description="The type system of the CAS, as XML.")


class PredictAnswer(BaseModel):
    """The document with predictions."""

    document: str = Field(description="The CAS as XMI.")


class TrainRequest(BaseModel):
    """Documents with annotations."""

    metadata: Metadata
    documents: list[DocumentBody]
    type_system: str = Field(alias="typeSystem", description="The type system of all of them, as XML.")


def routes(desk: Desk, lessons: Lessons) -> APIRouter:
    """The addresses of an external recommender for each cell."""
    installed = [Depends(_check_installed)]
    router = APIRouter(prefix="/inception/{task}/{language}", tags=["INCEpTION"], dependencies=installed)
    tagger = desk.engine.tagger
    find = partial(cell_of, tagger)

    @router.post(
        "/predict",
        summary="Predict annotations of a document",
        response_model=PredictAnswer,
        responses=CELL_PROBLEMS,
        openapi_extra={"requestBody": body_of(PredictRequest)},
    )
    async def predict(request: Request, task: TaskName, language: LanguageName) -> Response:
        cell, body = find(task, language), await json_body(request)
        sets = tagger.calibration is not None and tagger.calibration.of(cell.task, desk.engine.samples) is not None
        options = TaggingOptions(alpha=inception.ALPHA if sets else None)
        answer = await desk.tag(request, lambda: _document(body, cell.language), cell, options)
        return Response(answer, media_type="application/json")

    @router.post(
        "/train",
        status_code=204,
        response_class=Response,
        summary="Learn from documents",
        responses=CELL_PROBLEMS | CHANGING_PROBLEMS,
        openapi_extra={"requestBody": body_of(TrainRequest)},
    )
    async def train(request: Request, task: TaskName, language: LanguageName) -> None:
        cell, body = find(task, language), await json_body(request)
        if lessons.busy(cell):
            raise ApiError(429, "busy", f"{cell} is learning; try again in a moment", {"Retry-After": "1"})
        grid_task = tagger.model.inventory.task(cell.task)
        await lessons.take(cell, lambda: _annotated(body, cell.language, grid_task))
        await lessons.learn(cell)

    return router


def _check_installed() -> None:
    if find_spec("cassis") is None:
        raise ApiError(404, "not_found", "expected the inception extra; pip install 'crossfill[inception]'")


def _annotated(body: bytes, language: str, task: Task) -> list[Lesson]:
    """The labelled sentences of all documents of a request."""
    request = parse_json(body, TrainRequest)
    layer, types, found = request.metadata.named_layer, inception.read_types(request.type_system), []
    for document in request.documents:
        read = inception.Document.parse(document.xmi, types, language)
        who = "".join(filter(str.isprintable, document.user))[:60]
        found.append(Lesson(f"INCEpTION user {who}" if who else "INCEpTION", labelled_sentences(read, layer, task)))
    return found


def _document(body: bytes, language: str) -> Document:
    """The sentences of a request's document, and the document with their predictions as its answer."""
    request = parse_json(body, PredictRequest)
    layer = request.metadata.named_layer
    types = inception.read_types(request.type_system)
    document = inception.Document.parse(request.document.xmi, types, language)
    document.annotations(layer)  # an error if there is no such layer, before anything is tagged

    def answer(taggings: Sequence[Tagging]) -> bytes:
        return json.dumps({"document": document.predicted(taggings, layer)}, ensure_ascii=False).encode()

    return Document(document.sentences, answer)
