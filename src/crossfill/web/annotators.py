"""Annotation tools: an ML backend for Label Studio, and an external recommender for INCEpTION, for each cell."""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, BeforeValidator, Field

from crossfill.adaptation.heads import without_adapted
from crossfill.data.segmentation import Segmenter
from crossfill.errors import CrossfillError, DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task
from crossfill.grid.text_keys import text_key
from crossfill.integrations import inception, label_studio
from crossfill.integrations.label_studio import LabelConfig
from crossfill.prediction.tagging import Tagging, TaggingOptions
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.service import Teacher
from crossfill.web.engine import Engine, ReadRequest
from crossfill.web.problems import ApiError, check_size
from crossfill.web.request_queue import RequestQueue
from crossfill.web.serve_settings import ServeSettings

Labelled = tuple[str, list[Sentence], str | None]
"""Who labelled sentences, the sentences, and the annotation that they are from, as the journal names it."""
ConfigField = Annotated[str, Field(description="The project's labelling configuration, as XML.")]
OneOrMore = BeforeValidator(lambda value: value if isinstance(value, list) else [] if value is None else [value])


class SetupRequest(BaseModel):
    """A project of Label Studio that wants predictions."""

    label_schema: ConfigField = Field(alias="schema")


class TasksRequest(BaseModel):
    """Tasks of Label Studio that want predictions."""

    tasks: list[dict[str, Any]] = Field(description="Tasks; the configuration says where their data has the text.")
    label_config: ConfigField


class Project(BaseModel):
    """A project of Label Studio."""

    label_config: ConfigField


class Annotation(BaseModel):
    """A person's annotation of a task."""

    id: int | None = None
    task: int | None = None
    result: list[dict[str, Any]] | None = Field(default=None, description="Regions.")
    completed_by: Any = Field(default=None, description="The number of a user, or an object with it as `id`.")
    was_cancelled: bool | None = Field(default=None, description="Whether the task was skipped.")


class Named(BaseModel):
    """The task of an annotation, or an annotation that was deleted."""

    id: int
    data: Any = None


class Event(BaseModel):
    """What happened in a project; annotations come with their tasks."""

    action: str = Field(description="As ANNOTATION_CREATED, ANNOTATIONS_DELETED, START_TRAINING.")
    project: Project | None = None
    annotation: Annotated[list[Annotation], OneOrMore] = Field(default=[], description="One, or a list.")
    task: Annotated[list[Named], OneOrMore] = Field(default=[], description="One, or a list.")
    annotations: list[Named] = Field(default=[], description="Those that were deleted.")


class Metadata(BaseModel):
    """What INCEpTION wants predicted."""

    layer: str = Field(description="Type of the annotations.")
    feature: str = Field(description="Feature of the type that has the label.")
    anchoring: Literal["characters", "singleToken", "tokens"] = Field(default="tokens", alias="anchoringMode")


class DocumentBody(BaseModel):
    """A document of INCEpTION."""

    xmi: str = Field(description="The CAS as XMI.")
    user: str = Field(default="", alias="userId")


class LayerRequest(BaseModel):
    """A layer of INCEpTION's documents."""

    metadata: Metadata
    type_system: str = Field(alias="typeSystem", description="The type system of all documents, as XML.")

    @property
    def layer(self) -> inception.Layer:
        """The layer that the metadata names."""
        return inception.Layer(self.metadata.layer, self.metadata.feature, self.metadata.anchoring == "singleToken")


class DocumentRequest(LayerRequest):
    """A document that wants predictions."""

    document: DocumentBody


class TrainRequest(LayerRequest):
    """Documents with annotations."""

    documents: list[DocumentBody]


def label_studio_routes(queue: RequestQueue, teacher: Teacher | None, name: str) -> APIRouter:
    """Build the addresses of an ML backend for each cell of the model of that name."""
    router = APIRouter(prefix="/label-studio/{task}/{language}", tags=["Label Studio"])
    inventory, versions = queue.engine.tagger.model.inventory, _versions(name, queue.engine.tagger)
    cell_named = Depends(_cell_in_address(queue.engine.tagger))

    def version(cell: Cell) -> str:
        return f"{versions[cell]}-{teacher.version(cell) if teacher is not None else 0}"

    @router.get("/health", summary="Whether the backend works")
    async def health(cell: Cell = cell_named) -> dict[str, str]:
        return {"status": "UP", "model_version": version(cell)}

    @router.post("/setup", summary="Check a project's labelling configuration")
    async def setup(body: SetupRequest, cell: Cell = cell_named) -> dict[str, str]:
        LabelConfig.parse(body.label_schema).check(inventory.task(cell.task).labels)
        return {"model_version": version(cell)}

    @router.post("/predict", summary="Predict the regions of tasks", response_model=dict[str, Any])
    async def predict(request: Request, body: TasksRequest, cell: Cell = cell_named) -> Response:
        now = version(cell)
        return await queue.tag(request, lambda: _tasks(queue.engine, cell, body, now))

    @router.post("/webhook", status_code=201, summary="Learn from annotations")
    async def webhook(event: Event, cell: Cell = cell_named) -> dict[str, Any]:
        task, limits = inventory.task(cell.task), queue.settings
        match event.action:
            case "ANNOTATION_CREATED" | "ANNOTATION_UPDATED" | "ANNOTATIONS_CREATED":
                return await _learn(queue, teacher, cell, lambda: _annotated(event, cell.language, task, limits))
            case "ANNOTATIONS_DELETED" if not event.annotations:
                raise DataError("expected the ids of the deleted annotations; let the webhook send the payload")
            case "ANNOTATIONS_DELETED" | "START_TRAINING":
                sources = [f"label-studio/{annotation.id}" for annotation in event.annotations]
                return await _learn(queue, teacher, cell, list, sources)
        return {"accepted": 0, "learning": False}

    return router


def inception_routes(queue: RequestQueue, teacher: Teacher | None) -> APIRouter:
    """Build the addresses of an external recommender for each cell."""
    router = APIRouter(prefix="/inception/{task}/{language}", tags=["INCEpTION"])
    tagger = queue.engine.tagger
    cell_named = Depends(_cell_in_address(tagger))

    @router.post("/partial/predict", include_in_schema=False)
    @router.post("/predict", summary="Predict annotations of a document", response_model=dict[str, str])
    async def predict(request: Request, body: DocumentRequest, cell: Cell = cell_named) -> Response:
        sets = tagger.calibration is not None and tagger.calibration.of(cell.task, queue.engine.samples) is not None
        options = TaggingOptions(alpha=inception.ALPHA if sets else None)
        return await queue.tag(request, lambda: _document(queue.engine, cell, body, options))

    @router.post("/partial/train", status_code=204, response_class=Response, include_in_schema=False)
    @router.post("/train", status_code=204, response_class=Response, summary="Learn from documents")
    async def train(request: Request, body: TrainRequest, cell: Cell = cell_named) -> None:
        """Learn from annotated sentences; at `…/partial/train`, words outside of annotations are unknown, not none."""
        if teacher is not None and teacher.busy(cell):
            raise ApiError(429, f"{cell} is learning; try again in a moment")
        task, partial = tagger.model.inventory.task(cell.task), request.url.path.endswith("/partial/train")
        await _learn(queue, teacher, cell, lambda: _trained(body, cell.language, task, partial))

    return router


def _cell_in_address(tagger: Tagger) -> Callable[[str, str], Cell]:
    """Make the dependency that finds the cell in an address."""

    def find(
        task: Annotated[str, Path(description="A task of the model, as ner.")],
        language: Annotated[str, Path(description="A language of the model, as wol.")],
    ) -> Cell:
        try:
            return tagger.cell(f"{task}/{language}")
        except CrossfillError as error:
            raise ApiError(404, str(error)) from None

    return find


def _versions(name: str, tagger: Tagger) -> dict[Cell, str]:
    """Name the version of each cell as it was loaded: new with every training and with every adaptation."""
    base, weights = without_adapted(tagger.model), sha256()
    for key, tensor in sorted((base.heads.state_dict() | base.hidden.state_dict(prefix="hidden.")).items()):
        weights.update(key.encode() + tensor.detach().cpu().contiguous().float().numpy().tobytes())
    versions = {}
    for cell in tagger.cells:
        digest = weights.copy()
        if adapted := tagger.adapted.get(cell):
            digest.update(repr((adapted.examples.hashes, adapted.examples.labels.tolist())).encode())
        versions[cell] = f"{name}-{digest.hexdigest()[:8]}"
    return versions


async def _learn(
    queue: RequestQueue,
    teacher: Teacher | None,
    cell: Cell,
    read: Callable[[], list[Labelled]],
    deleted: Sequence[str] = (),
) -> dict[str, Any]:
    """Keep sentences that are new or have new labels, take back those of deleted annotations, and have the cell learn.

    What was accepted is on disk when it returns.
    """
    if teacher is None:
        raise ApiError(409, "this server only tags; start it with --teach FOLDER to have it learn")

    def work() -> dict[str, Any]:
        labelled, known, accepted = read(), teacher.by_text(cell), 0
        for who, sentences, source in labelled:
            new = {}
            for sentence in sentences:
                check_size("words in a sentence", queue.settings.max_words, len(sentence))
                entry = known.get(key := text_key(sentence))
                if entry is None or (entry.sentence.words, entry.sentence.labels) != (sentence.words, sentence.labels):
                    new[key] = sentence
            accepted += len(teacher.accept(cell, list(new.values()), who, source=source))
        teacher.withdraw(cell, [entry.id for entry in teacher.active(cell) if entry.source in deleted], "Label Studio")
        return {"accepted": accepted, "learning": teacher.learn(cell)}

    return await queue.call(work)


def _tasks(engine: Engine, cell: Cell, request: TasksRequest, version: str) -> ReadRequest:
    """Cut the texts of all tasks of a request into sentences, to be answered with their predictions."""
    labelling = LabelConfig.parse(request.label_config)
    texts = [labelling.text(task.get("data")) for task in request.tasks]
    tasks = [list(Segmenter(cell.language).split_text(text)) for text in texts]

    def answer(taggings: Iterable[Tagging]) -> dict[str, Any]:
        rest = iter(taggings)
        results = [
            label_studio.prediction([next(rest) for _ in sentences], labelling, text, version)
            for text, sentences in zip(texts, tasks, strict=True)
        ]
        return {"results": results, "model_version": version}

    return engine.jobs([sentence for sentences in tasks for sentence in sentences], cell), answer


def _annotated(event: Event, language: str, task: Task, limits: ServeSettings) -> list[Labelled]:
    """Read the labelled sentences of all annotations that an event brings, but for those of skipped tasks."""
    labelled, tasks = [], {task.id: task for task in event.task}
    labelling = LabelConfig.parse(event.project.label_config if event.project else "")
    for annotation in event.annotation:
        if annotation.was_cancelled:
            continue
        if annotation.task not in tasks or annotation.result is None:
            raise DataError("expected an annotation with its result, and its task; let the webhook send the payload")
        text = labelling.text(tasks[annotation.task].data)
        check_size("characters in a task", limits.max_characters, len(text))
        check_size("regions in a task", limits.max_words, len(annotation.result))
        match annotation.completed_by:
            case int(number) | {"id": int(number)}:
                who = f"Label Studio user {number}"
            case _:
                who = "Label Studio"
        sentences = label_studio.labelled_sentences(text, annotation.result, labelling, language, task)
        labelled.append((who, sentences, annotation.id and f"label-studio/{annotation.id}"))
    return labelled


def _document(engine: Engine, cell: Cell, request: DocumentRequest, options: TaggingOptions) -> ReadRequest:
    """Read the sentences of a request's document, to be answered with the document and their predictions."""
    layer, types = request.layer, inception.read_types(request.type_system)
    document = inception.Document.parse(request.document.xmi, types, cell.language)
    document.annotations(layer)  # an error if there is no such layer, before anything is tagged
    jobs = engine.jobs(document.sentences, cell, options)
    return jobs, lambda taggings: {"document": document.predicted(taggings, layer)}


def _trained(request: TrainRequest, language: str, task: Task, partial: bool) -> list[Labelled]:
    """Read the labelled sentences of all documents of a request."""
    types, labelled = inception.read_types(request.type_system), []
    for document in request.documents:
        read = inception.Document.parse(document.xmi, types, language)
        user = "".join(filter(str.isprintable, document.user))[:60]
        who = f"INCEpTION user {user}" if user else "INCEpTION"
        labelled.append((who, inception.labelled_sentences(read, request.layer, task, partial), None))
    return labelled
