"""Label Studio: what a project labels, predictions for its tasks, and annotations that its webhooks send."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from crossfill.data.segmentation import TextSpan, cut_into_sentences
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task, TaskKind
from crossfill.integrations.annotation_tools import Utf16Places, elements, labelled_sentence, types_of
from crossfill.prediction.tagging import DIGITS, Tagging

ANNOTATED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED")
"""Events that bring finished annotations."""
DELETED = "ANNOTATIONS_DELETED"
"""The event that names annotations that were deleted, whether one or more."""
START = "START_TRAINING"
"""The event of the button that starts training."""
_WHAT = "the labelling configuration"


@dataclass(frozen=True)
class LabelConfig:
    """What a project labels: the first pair of `<Labels>` and `<Text>` in its configuration."""

    from_name: str
    """The name of the labels."""
    to_name: str
    """The name of the text."""
    key: str
    """Where a task's data has the text."""
    names: Mapping[str, str]
    """The project's name for each label, by all its spellings in lower case; empty if it takes any."""

    @classmethod
    def parse(cls, config: str) -> "LabelConfig":
        """Find the first pair in a configuration."""
        labels: dict[str, dict[str, str]] = {}
        texts: dict[str, dict[str, str]] = {}
        names: dict[str, list[dict[str, str]]] = {}
        inside: tuple[int, str] | None = None  # depth and name of the <Labels> that the element is in
        for depth, tag, attributes in elements(config, _WHAT):
            inside = inside if inside and depth > inside[0] else None
            kind, name = tag.lower(), attributes.get("name", "")
            if kind == "labels":
                labels[name], inside = attributes, (depth, name)
            elif kind == "text":
                texts[name] = attributes
            elif kind == "label" and inside:
                names.setdefault(inside[1], []).append(attributes)
        for name, attributes in labels.items():
            for target in attributes.get("toName", "").split(","):
                if target.strip() in texts:
                    text = texts[target.strip()]
                    return cls(name, target.strip(), _key(text), _spellings(names.get(name, [])))
        raise DataError(
            f'{_WHAT}: expected <Labels name="label" toName="text"> with <Text name="text" value="$text"/>, got '
            f"{len(labels)} <Labels> and {len(texts)} <Text>, none for the other"
        )

    def named(self, label: str) -> str | None:
        """Find the project's name for a label of the model; none if the project does not have it."""
        return self.names.get(label.lower()) if self.names else label

    def check(self, label_names: Sequence[str]) -> None:
        """Refuse a project that has none of a task's labels."""
        types = types_of(label_names)
        if not any(self.named(label) for label in types):
            known = ", ".join(dict.fromkeys(self.names.values()))
            raise DataError(
                f"{_WHAT}: expected labels among {', '.join(types)}, got {known[:200]}; "
                'name them alike, or say which is which, as in <Label value="Person" predicted_values="PER"/>'
            )

    def text(self, task: Mapping[str, Any]) -> str:
        """Find the text of a task; empty if it has none."""
        data = task.get("data")
        text = data.get(self.key) if isinstance(data, Mapping) else None
        return text if isinstance(text, str) else ""


def prediction(taggings: Sequence[Tagging], labelling: LabelConfig, text: str, version: str) -> dict[str, Any]:
    """Make the prediction for a task with these sentences: a region for every span, or for every labelled word.

    A region's score is its probability. The task's score is 1 / (1 + h), with h the sum of its words' entropies: tasks
    with the lowest score first are in the order of `annotate --strategy entropy`.
    """
    places = Utf16Places(text)
    result = [
        {
            "id": f"crossfill-{number}",
            "from_name": labelling.from_name,
            "to_name": labelling.to_name,
            "type": "labels",
            "value": {
                "start": places.units(start),
                "end": places.units(end),
                "text": text[start:end],
                "labels": [name],
            },
            "score": round(score, DIGITS),
        }
        for number, (start, end, name, score) in enumerate(_regions(taggings, labelling))
    ]
    entropy = sum(float(tagging.entropy.sum()) for tagging in taggings)
    return {"result": result, "score": 1 / (1 + entropy), "model_version": version}


def _key(text: Mapping[str, str]) -> str:
    value = text.get("value", "")
    if text.get("valueType", "text").lower() != "text":
        raise DataError(
            f'{_WHAT}: expected texts within the tasks, got <Text> with valueType="{text["valueType"]}"; import the '
            "texts themselves, and remove valueType"
        )
    if not value.startswith("$") or not value[1:]:
        raise DataError(f'{_WHAT}: expected <Text value="$text"/> with the key of the tasks\' text, got "{value[:60]}"')
    return value[1:]


def _spellings(labels: Iterable[Mapping[str, str]]) -> dict[str, str]:
    spellings: dict[str, str] = {}
    for label in labels:
        value = label.get("value", "")
        name = label.get("alias") or value
        others = [other.strip() for other in label.get("predicted_values", "").split(",")]
        for spelling in (value, name, *others):
            if spelling and name:
                spellings.setdefault(spelling.lower(), name)
    return spellings


def _regions(taggings: Sequence[Tagging], labelling: LabelConfig) -> Iterable[tuple[int, int, str, float]]:
    for tagging in taggings:
        if tagging.kind is TaskKind.SPANS:
            regions = [(span.start_char, span.end_char, span.type, span.confidence) for span in tagging.spans]
        else:
            regions = [(word.start_char, word.end_char, word.label, word.confidence) for word in tagging.words]
        for start, end, label, score in regions:
            if label != "_" and (name := labelling.named(label)):
                yield start, end, name, score


class Annotation(NamedTuple):
    """A person's annotation of a task."""

    task: Mapping[str, Any]
    result: Sequence[Any]
    who: str
    source: str | None
    """Its name in the journal."""


def annotations(event: Mapping[str, Any]) -> list[Annotation]:
    """Read the annotations that an event brings, without those of tasks that were skipped."""
    tasks = {task.get("id"): task for task in _listed(event.get("task")) if isinstance(task.get("id"), int)}
    read = []
    for annotation in _listed(event.get("annotation")):
        task, result = tasks.get(annotation.get("task")), annotation.get("result")
        if annotation.get("was_cancelled"):
            continue
        if task is None or not isinstance(result, list):
            raise DataError("expected an annotation with its result, and its task; let the webhook send the payload")
        who = annotation.get("completed_by")
        who = who.get("id") if isinstance(who, Mapping) else who
        user = f"Label Studio user {who}" if isinstance(who, int) else "Label Studio"
        read.append(Annotation(task, result, user, _source(annotation)))
    return read


def deleted_annotations(event: Mapping[str, Any]) -> list[str]:
    """Name the annotations that were deleted, as the journal does: the event has nothing but their ids."""
    sources = [_source(annotation) for annotation in _listed(event.get("annotations"))]
    if not sources or None in sources:
        raise DataError("expected the ids of the deleted annotations; let the webhook send the payload")
    return [source for source in sources if source is not None]


def _source(annotation: Mapping[str, Any]) -> str | None:
    number = annotation.get("id")
    return f"label-studio/{number}" if isinstance(number, int) else None


def labelled_sentences(
    text: str, result: Iterable[Any], labelling: LabelConfig, language: str, task: Task
) -> list[Sentence]:
    """Read the sentences of an annotated task, with the labels of its regions; sentences that a region joins are one.

    In tasks that label every word, sentences with words that have no label are left out.
    """
    places = Utf16Places(text)
    types = {name: label for label in types_of(task.labels) if (name := labelling.named(label))}
    spans = [_span(region, places, types, text) for region in result if _is_ours(region, labelling)]
    sentences = []
    for bounds in cut_into_sentences(text, language, spans):
        inside = [span for span in spans if bounds[0][0] < span.end and bounds[-1][1] > span.start]
        sentences.append(labelled_sentence(text, bounds, inside, task))
    return [sentence for sentence in sentences if sentence is not None]


def _listed(value: Any) -> list[Mapping[str, Any]]:
    """Take one object, or a list of them."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(item, Mapping) for item in values):
        raise DataError("expected annotations and tasks as objects, got another value")
    return values


def _is_ours(region: Any, labelling: LabelConfig) -> bool:
    if not isinstance(region, Mapping) or not isinstance(region.get("value"), Mapping):
        raise DataError("expected regions with a value in the annotation's result, got another")
    return region.get("type") == "labels" and region.get("from_name") == labelling.from_name


def _span(region: Mapping[str, Any], places: Utf16Places, types: Mapping[str, str], text: str) -> TextSpan:
    """Read a region in characters, without the white space at its ends."""
    value = region["value"]
    start, end, labels = value.get("start"), value.get("end"), value.get("labels")
    if type(start) is not int or type(end) is not int or start > end:
        raise DataError("expected the start and the end of a region as numbers of UTF-16 units")
    if not isinstance(labels, list) or len(labels) != 1 or not isinstance(labels[0], str) or labels[0] not in types:
        raise DataError(f"expected one label of {', '.join(types)} for a region, got {str(labels)[:60]}")
    first, last = places.character(start), places.character(end)
    inside = text[first:last]
    if not inside.strip():
        raise DataError(f"expected regions with text, got an empty one from {start} to {end}; delete it")
    first += len(inside) - len(inside.lstrip())
    return TextSpan(first, first + len(inside.strip()), types[labels[0]])
