"""An external recommender for INCEpTION: predictions for its documents, and learning from them."""

import json
from collections.abc import Sequence
from importlib.util import find_spec

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from crossfill.grid.cells import Cell
from crossfill.grid.task import Task
from crossfill.integrations import inception
from crossfill.prediction.tagging import Tagging, TaggingOptions
from crossfill.web.annotators import AnnotatedSentences, IncomingAnnotations, cell_in_address
from crossfill.web.problems import CELL_PROBLEMS, CHANGING_PROBLEMS, ApiError, JsonRoute, busy
from crossfill.web.request_queue import ForeignDocument, RequestQueue

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


class DocumentRequest(BaseModel):
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


def routes(queue: RequestQueue, incoming: IncomingAnnotations) -> APIRouter:
    """Build the addresses of an external recommender for each cell."""
    installed = [Depends(_check_installed)]
    router = APIRouter(
        prefix="/inception/{task}/{language}", tags=["INCEpTION"], dependencies=installed, route_class=JsonRoute
    )
    tagger = queue.engine.tagger
    cell_named = Depends(cell_in_address(tagger))

    @router.post(
        "/predict",
        summary="Predict annotations of a document",
        response_model=PredictAnswer,
        responses=CELL_PROBLEMS,
    )
    async def predict(request: Request, body: DocumentRequest, cell: Cell = cell_named) -> Response:
        sets = tagger.calibration is not None and tagger.calibration.of(cell.task, queue.engine.samples) is not None
        options = TaggingOptions(alpha=inception.ALPHA if sets else None)
        answer = await queue.tag(request, lambda: _document(body, cell.language), cell, options)
        return Response(answer, media_type="application/json")

    @router.post(
        "/train",
        status_code=204,
        response_class=Response,
        summary="Learn from documents",
        responses=CELL_PROBLEMS | CHANGING_PROBLEMS,
    )
    async def train(body: TrainRequest, cell: Cell = cell_named) -> None:
        if incoming.busy(cell):
            raise busy(f"{cell} is learning; try again in a moment")
        task = tagger.model.inventory.task(cell.task)
        await incoming.accept(cell, lambda: _annotated(body, cell.language, task))
        await incoming.learn(cell)

    return router


def _check_installed() -> None:
    if find_spec("cassis") is None:
        raise ApiError(404, "not_found", "expected the inception extra; pip install 'crossfill[inception]'")


def _annotated(request: TrainRequest, language: str, task: Task) -> list[AnnotatedSentences]:
    """Read the labelled sentences of all documents of a request."""
    layer, types, annotated = request.metadata.named_layer, inception.read_types(request.type_system), []
    for document in request.documents:
        read = inception.Document.parse(document.xmi, types, language)
        user = "".join(filter(str.isprintable, document.user))[:60]
        who = f"INCEpTION user {user}" if user else "INCEpTION"
        annotated.append(AnnotatedSentences(who, inception.labelled_sentences(read, layer, task)))
    return annotated


def _document(request: DocumentRequest, language: str) -> ForeignDocument:
    """Read the sentences of a request's document, to be answered with the document and their predictions."""
    layer = request.metadata.named_layer
    types = inception.read_types(request.type_system)
    document = inception.Document.parse(request.document.xmi, types, language)
    document.annotations(layer)  # an error if there is no such layer, before anything is tagged

    def answer(taggings: Sequence[Tagging]) -> bytes:
        return json.dumps({"document": document.predicted(taggings, layer)}, ensure_ascii=False).encode()

    return ForeignDocument(document.sentences, answer)
