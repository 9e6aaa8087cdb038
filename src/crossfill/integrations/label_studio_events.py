"""Label Studio: finished annotations, as its webhooks send them, as labelled sentences."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from crossfill.data.spans import Span, cut_at_spans, cut_into_sentences, sentences_with_spans
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task, TaskKind
from crossfill.integrations.label_names import types_of
from crossfill.integrations.label_studio import Labelling
from crossfill.integrations.utf16 import Utf16Places

ANNOTATED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED")
"""Events that bring finished annotations."""
START = "START_TRAINING"
"""The event of the button that starts training."""


class Annotation(NamedTuple):
    """A person's annotation of a task."""

    task: Mapping[str, Any]
    result: Sequence[Any]
    who: str


def annotations(event: Mapping[str, Any]) -> list[Annotation]:
    """The annotations that an event brings; those of tasks that were skipped are left out."""
    tasks = {task.get("id"): task for task in _listed(event.get("task")) if isinstance(task.get("id"), int)}
    found = []
    for annotation in _listed(event.get("annotation")):
        task, result = tasks.get(annotation.get("task")), annotation.get("result")
        if annotation.get("was_cancelled"):
            continue
        if task is None or not isinstance(result, list):
            raise DataError("expected an annotation with its result, and its task; let the webhook send the payload")
        who = annotation.get("completed_by")
        who = who.get("id") if isinstance(who, Mapping) else who
        found.append(Annotation(task, result, f"Label Studio user {who}" if isinstance(who, int) else "Label Studio"))
    return found


def labelled_sentences(
    text: str, result: Iterable[Any], labelling: Labelling, language: str, task: Task
) -> list[Sentence]:
    """The sentences of an annotated task, with the labels of its regions.

    In tasks that label every word, sentences with words that have no label are left out.
    """
    places = Utf16Places(text)
    types = {name: label for label in types_of(task.labels) if (name := labelling.named(label))}
    spans = [_span(region, places, types, text) for region in result if _is_ours(region, labelling)]
    kept = [span for span in spans if span.start < span.end]
    if task.kind is TaskKind.SPANS:
        return list(sentences_with_spans(text, kept, language))
    return list(_labelled_words(text, kept, language, task))


def _listed(value: Any) -> list[Mapping[str, Any]]:
    """One object, or a list of them."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(item, Mapping) for item in values):
        raise DataError("expected annotations and tasks as objects, got another value")
    return values


def _is_ours(region: Any, labelling: Labelling) -> bool:
    if not isinstance(region, Mapping) or not isinstance(region.get("value"), Mapping):
        raise DataError("expected regions with a value in the annotation's result, got another")
    return region.get("type") == "labels" and region.get("from_name") == labelling.from_name


def _span(region: Mapping[str, Any], places: Utf16Places, types: Mapping[str, str], text: str) -> Span:
    """A region in characters, without the white space at its ends."""
    value = region["value"]
    start, end, labels = value.get("start"), value.get("end"), value.get("labels")
    if type(start) is not int or type(end) is not int or start > end:
        raise DataError("expected the start and the end of a region as numbers of UTF-16 units")
    if not isinstance(labels, list) or len(labels) != 1 or labels[0] not in types:
        raise DataError(f"expected one label of {', '.join(types)} for a region, got {str(labels)[:60]}")
    first, last = places.character(start), places.character(end)
    inside = text[first:last]
    first += len(inside) - len(inside.lstrip())
    return Span(first, first + len(inside.strip()), types[labels[0]])


def _labelled_words(text: str, spans: Sequence[Span], language: str, task: Task) -> Iterable[Sentence]:
    for bounds in cut_into_sentences(text, language, spans):
        words = cut_at_spans(bounds, spans)
        labels = [
            next((span.label for span in spans if span.start <= start and end <= span.end), None)
            for start, end in words
        ]
        if task.kind is TaskKind.TAGS and None in labels:
            continue
        cut = Sentence.cut(text, words)
        yield Sentence(cut.words, tuple(label or task.absent or "_" for label in labels), cut.spaces)
