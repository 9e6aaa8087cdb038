"""A service in the shape of UDPipe 2's, so that its clients can have text tagged here."""

import email.parser
import email.policy
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from crossfill import __version__
from crossfill.integrations import udpipe
from crossfill.prediction.tagging import Tagging
from crossfill.web.desk import Desk, Document
from crossfill.web.problems import ApiError
from crossfill.web.reading import BODY_PROBLEMS, PROBLEMS, plain_schema

PATHS = ("/udpipe/models", "/udpipe/process")
_FORM, _PARTS = "application/x-www-form-urlencoded", "multipart/form-data"


class Models(BaseModel):
    """The models that there are: one for each language."""

    models: dict[str, list[str]]
    default_model: str


class Process(BaseModel):
    """Text to process."""

    data: str
    model: str = Field(default="", description="A language, as wol, wolof, or a name of UDPipe's that begins so.")
    tokenizer: str | None = Field(default=None, description="Raw text is cut; options presegmented, ranges.")
    tagger: str | None = Field(default=None, description="UPOS, XPOS and FEATS, of those that the model has.")
    parser: str | None = Field(default=None, description="DEPREL where there is a HEAD; heads are not predicted.")
    input: str = "conllu"
    output: str = "conllu"


class Processed(BaseModel):
    """The text that was processed."""

    model: str
    acknowledgements: list[str]
    result: str


def routes(desk: Desk, name: str) -> APIRouter:
    """The addresses of the service."""
    router = APIRouter(prefix="/udpipe", tags=["UDPipe"])
    tagger = desk.engine.tagger
    inventory = tagger.model.inventory

    async def models() -> Models:
        return Models(
            models=dict(udpipe.models(inventory.languages, inventory.labels)), default_model=inventory.languages[0]
        )

    async def process(request: Request) -> Response:
        asked = await _asked(request)
        language = udpipe.find_model(asked.model or inventory.languages[0], inventory.languages)
        tasks = udpipe.tasks_for(inventory.labels, asked.tagger is not None, asked.parser is not None)
        cells = [tagger.cell(f"{task}/{language}") for task in tasks]

        def read() -> Document:
            text = udpipe.read(asked.data, language, asked.input, asked.tokenizer)
            return Document(text.sentences if cells else (), lambda taggings: write(text, taggings))

        def write(text: udpipe.Text, taggings: Sequence[Tagging]) -> bytes:
            n = len(text.sentences)
            by_task = [taggings[i : i + n] for i in range(0, len(taggings), n)] if n else []
            result = udpipe.write(text, by_task, asked.output)
            if asked.output == "conllu" and n:
                result = f"# generator = crossfill {__version__}\n# udpipe_model = {name}-{language}\n{result}"
            return json.dumps(
                {"model": language, "acknowledgements": [], "result": result}, ensure_ascii=False
            ).encode()

        first = cells[0] if cells else tagger.cells[0]
        answer = await desk.tag(request, read, first, others=cells[1:])
        return Response(answer, media_type="application/json")

    for method in ("GET", "POST"):
        router.add_api_route(
            "/models", models, methods=[method], response_model=Models, responses=PROBLEMS, summary="The models"
        )
    router.add_api_route(
        "/process",
        process,
        methods=["GET"],
        response_model=Processed,
        responses=BODY_PROBLEMS,
        summary="Process a short text",
        openapi_extra={"parameters": _parameters()},
    )
    content = {kind: {"schema": plain_schema(Process)} for kind in (_FORM, _PARTS)}
    router.add_api_route(
        "/process",
        process,
        methods=["POST"],
        response_model=Processed,
        responses=BODY_PROBLEMS,
        summary="Process text",
        openapi_extra={"requestBody": {"required": True, "content": content}},
    )
    return router


def _parameters() -> list[dict[str, Any]]:
    """The parameters of a request without a body, in the OpenAPI document."""
    return [
        {"name": name, "in": "query", "required": field.is_required(), "schema": {"type": "string"}}
        for name, field in Process.model_fields.items()
    ]


async def _asked(request: Request) -> Process:
    """The parameters of a request: those of its address, and those of its body."""
    found = dict(parse_qsl(request.url.query, keep_blank_values=True))
    if request.method == "POST":
        kind = request.headers.get("content-type", "")
        body = await request.body()
        try:
            found |= _parts(kind, body) if kind.lower().startswith(_PARTS) else _fields(kind, body)
        except (UnicodeDecodeError, ValueError):
            raise ApiError(400, "not_a_form", "expected a form in UTF-8, got another body") from None
    if "data" not in found:
        raise ApiError(422, "invalid", "data: expected text, got none")
    return Process(**{name: value for name, value in found.items() if name in Process.model_fields})


def _fields(kind: str, body: bytes) -> dict[str, str]:
    if kind.partition(";")[0].strip().lower() != _FORM:
        raise ApiError(415, "unsupported", f"expected Content-Type {_FORM} or {_PARTS}, got '{kind[:100]}'")
    return dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=bool(body), errors="strict"))


def _parts(kind: str, body: bytes) -> dict[str, str]:
    head = b"Content-Type: " + kind.encode("latin-1") + b"\r\n\r\n"
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    if not message.is_multipart():
        raise ValueError("no parts")
    found = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        payload = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(payload, bytes):
            found[name] = payload.decode()
    return found
