"""INCEpTION: annotations of documents as labelled sentences to learn from."""

from collections.abc import Iterator, Sequence

from crossfill.data.spans import Span, cut_at_spans, cut_with_spans
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task, TaskKind
from crossfill.integrations.inception import Document, Layer
from crossfill.integrations.label_names import types_of


def labelled_sentences(document: Document, layer: Layer, task: Task) -> list[Sentence]:
    """The sentences of a document that are annotated, with the labels of a layer.

    A sentence without annotations may be one that nobody has looked at, so it is left out. So are, in tasks that label
    every word, sentences with words that have none; and sentences with labels that the task does not have, with
    annotations that overlap, or with one that goes on in the next sentence.
    """
    types = set(types_of(task.labels))
    spans = sorted(Span(a.begin, a.end, str(getattr(a, layer.feature))) for a in document.annotations(layer))
    found = []
    for sentence, own in _with_spans(document.sentences, spans):
        start, end = sentence.offsets[0][0], sentence.offsets[-1][1]
        if any(span.label not in types or span.start < start or span.end > end for span in own):
            continue
        made = _labelled(document.text, sentence, own, task)
        if made is not None:
            found.append(made)
    return found


def _with_spans(sentences: Sequence[Sentence], spans: Sequence[Span]) -> Iterator[tuple[Sentence, list[Span]]]:
    """Each sentence that spans stand in, with these spans; both in order."""
    first = 0
    for sentence in sentences:
        start, end = sentence.offsets[0][0], sentence.offsets[-1][1]
        while first < len(spans) and spans[first].end <= start:
            first += 1
        own = []
        for span in spans[first:]:
            if span.start >= end:
                break
            if span.end > start:
                own.append(span)
        if own:
            yield sentence, own


def _labelled(text: str, sentence: Sentence, spans: Sequence[Span], task: Task) -> Sentence | None:
    bounds = cut_at_spans(sentence.offsets, spans)
    try:
        tagged = cut_with_spans(text, bounds, spans)
    except DataError:  # overlapping, or without a word
        return None
    if task.kind is TaskKind.SPANS:
        return tagged
    labels = tuple(tag[2:] or task.absent or "_" for tag in tagged.labels)
    if task.kind is TaskKind.TAGS and "_" in labels:
        return None
    return Sentence(tagged.words, labels, tagged.spaces)
