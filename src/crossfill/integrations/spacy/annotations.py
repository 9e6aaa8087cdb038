"""Documents of spaCy as sentences to tag, and taggings as annotations of documents."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from spacy.parts_of_speech import IDS as PARTS_OF_SPEECH
from spacy.tokens import Doc, Span, SpanGroup

from crossfill.data.docbin import attribute_of
from crossfill.grid.sentence import Sentence

if TYPE_CHECKING:
    from crossfill.prediction.tagging import Tagging

RECORD = "crossfill"
"""The name of the extension that holds, by cell, what was found for every token."""


class Part(NamedTuple):
    """A sentence of a document, and the tokens that its words are."""

    sentence: Sentence
    tokens: list[int]


class Column(NamedTuple):
    """What was found in one cell, token by token of a document; none for tokens of white space."""

    cell: str
    task: str
    label_names: tuple[str, ...]
    values: dict[str, list[Any]]
    """Labels, confidence, entropy, mutual information; whether they are doubtful and label sets, if asked for."""
    spans: list[tuple[int, int, str, float]]
    """First token, last token (exclusive), type and probability of each span."""

    @classmethod
    def of(cls, doc: Doc, parts: Sequence[Part], taggings: Sequence["Tagging"]) -> "Column | None":
        """The taggings of a document's sentences; none if it has no sentence."""
        if not taggings:
            return None
        first = taggings[0]
        found: dict[str, list[Any]] = {
            "label": [label for tagging in taggings for label in tagging.labels],
            "confidence": [value for tagging in taggings for value in tagging.confidence.tolist()],
            "entropy": [value for tagging in taggings for value in tagging.entropy.tolist()],
            "mutual_information": [value for tagging in taggings for value in tagging.mutual_information.tolist()],
        }
        if first.doubtful is not None:
            found["doubtful"] = [word.doubtful for tagging in taggings for word in tagging.words]
        if first.sets is not None:
            found["label_set"] = [list(own) for tagging in taggings for own in tagging.label_sets]
        places = [i for part in parts for i in part.tokens]
        if len(places) < len(doc):
            found = {name: _scattered(values, places, len(doc)) for name, values in found.items()}
        spans = [
            (part.tokens[span.start], part.tokens[span.end - 1] + 1, span.type, float(span.confidence))
            for part, tagging in zip(parts, taggings, strict=True)
            for span in tagging.spans
        ]
        return cls(str(first.cell), first.cell.task, first.label_names, found, spans)


def sentences(doc: Doc) -> list[Part]:
    """The sentences of a document, or all of it as one if none are marked; tokens of white space are left out."""
    marked = doc.has_annotation("SENT_START")
    edges = [*(sentence.start for sentence in doc.sents), len(doc)] if marked else [0, len(doc)]
    texts, blank = [token.text for token in doc], [token.is_space for token in doc]
    spaces = [True] * len(doc) if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc]
    found = []
    for start, end in pairwise(edges):
        kept = [i for i in range(start, end) if not blank[i]]
        if kept:
            after = tuple(spaces[i] or (i + 1 < end and blank[i + 1]) for i in kept)
            words = tuple(texts[i] for i in kept)
            found.append(Part(Sentence(words, (), () if all(after) else after), kept))
    return found


def write(doc: Doc, columns: Sequence[Column], spans_key: str, overwrite: bool) -> None:
    """Annotate a document where spaCy keeps the labels of each task, and with everything in extensions.

    Two tasks may have one place in spaCy, as `token.tag_`: the first of them gets it.
    """
    taken: set[str] = set()
    group: list[tuple[Span, float, str]] = []
    for column in columns:
        place = attribute_of(column.task, column.label_names)
        group += [(Span(doc, a, b, kind), score, column.cell) for a, b, kind, score in column.spans]
        if place == "morph":
            _write_morph(doc, column.task.removeprefix("feats:"), column.values["label"], overwrite)
        elif place in _WRITERS and place not in taken:
            _WRITERS[place](doc, column, overwrite)
        taken.add(place)
    ordered = sorted(group, key=lambda found: (found[0].start, found[0].end))
    attrs = {"scores": [score for _, score, _ in ordered], "cells": [cell for *_, cell in ordered]}
    doc.spans[spans_key] = SpanGroup(doc, name=spans_key, spans=[span for span, *_ in ordered], attrs=attrs)
    doc._.set(RECORD, {column.cell: column.values for column in columns})


def _write_entities(doc: Doc, column: Column, overwrite: bool) -> None:
    found = [Span(doc, start, end, kind) for start, end, kind, _ in column.spans]
    if overwrite:
        doc.set_ents(found)
        return
    kept = list(doc.ents)
    taken = {i for entity in kept for i in range(entity.start, entity.end)}
    doc.set_ents([*kept, *(span for span in found if taken.isdisjoint(range(span.start, span.end)))])


def _write_parts_of_speech(doc: Doc, column: Column, overwrite: bool) -> None:
    for token, label in zip(doc, column.values["label"], strict=True):
        if overwrite or not token.pos:
            token.pos = PARTS_OF_SPEECH["SPACE" if label is None else "" if label == "_" else label]


def _write_tags(doc: Doc, column: Column, overwrite: bool) -> None:
    numbers = {label: doc.vocab.strings.add(label) for label in column.label_names} | {None: 0, "_": 0}
    for token, label in zip(doc, column.values["label"], strict=True):
        if overwrite or not token.tag:
            token.tag = numbers[label]


def _write_morph(doc: Doc, key: str, labels: Sequence[str | None], overwrite: bool) -> None:
    for token, label in zip(doc, labels, strict=True):
        known = token.morph.to_dict()
        if key in known and not overwrite:
            continue
        rest = {name: value for name, value in known.items() if name != key}
        if label not in (None, "_"):
            rest[key] = label
        if rest != known:
            token.set_morph(rest)  # pyright: ignore[reportAttributeAccessIssue]  spaCy's stubs lack it


def _scattered(values: Sequence[Any], places: Sequence[int], length: int) -> list[Any]:
    """A list of this length with values at these places, and none elsewhere."""
    found: list[Any] = [None] * length
    for place, value in zip(places, values, strict=True):
        found[place] = value
    return found


_WRITERS = {"ents": _write_entities, "pos": _write_parts_of_speech, "tag": _write_tags}
