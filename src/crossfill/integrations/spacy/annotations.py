"""Documents of spaCy as sentences to tag, and taggings as annotations of documents.

What extensions say of documents, spans and tokens:

doc._.crossfill                 by cell: label, confidence, entropy and mutual information of every token
token._.crossfill               by cell: the same of one token
token._.crossfill_confidence    the lowest confidence of its labels; none where there are none
token._.crossfill_doubtful      whether any of its labels should be checked
span._.crossfill_confidence     the probability of exactly this span; none if it was not found
span._.crossfill_doubtful       whether any of its tokens should be checked
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from spacy.parts_of_speech import IDS as PARTS_OF_SPEECH
from spacy.tokens import Doc, Span, SpanGroup, Token
from spacy.vocab import Vocab

from crossfill.data.docbin import attribute_of
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Unit

if TYPE_CHECKING:
    from crossfill.prediction.tagging import Tagging

RECORD = "crossfill"
"""The name of the extension that holds, by cell, what was found for every token."""


class Part(NamedTuple):
    """A sentence of a document, and the tokens that its words are."""

    sentence: Sentence
    tokens: list[int]


class TokenColumn(NamedTuple):
    """What was found in one cell, token by token of a document; none for tokens of white space."""

    cell: str
    task: str
    label_names: tuple[str, ...]
    values: dict[str, list[Any]]
    """Labels, confidence, entropy, mutual information; whether they are doubtful and label sets, if asked for."""
    spans: list[tuple[int, int, str, float]]
    """First token, last token (exclusive), type and probability of each span."""

    @classmethod
    def of(cls, doc: Doc, parts: Sequence[Part], taggings: Sequence["Tagging"]) -> "TokenColumn | None":
        """Lay out the taggings of a document's sentences; none if it has no sentence."""
        if not taggings:
            return None
        first = taggings[0]
        values: dict[str, list[Any]] = {
            "label": [label for tagging in taggings for label in tagging.labels],
            "confidence": [value for tagging in taggings for value in tagging.confidence.tolist()],
            "entropy": [value for tagging in taggings for value in tagging.entropy.tolist()],
            "mutual_information": [value for tagging in taggings for value in tagging.mutual_information.tolist()],
        }
        if first.doubtful is not None:
            values["doubtful"] = [word.doubtful for tagging in taggings for word in tagging.words]
        if first.sets is not None:
            values["label_set"] = [list(labels) for tagging in taggings for labels in tagging.label_sets]
        places = [i for part in parts for i in part.tokens]
        if len(places) < len(doc):
            values = {name: _scattered(row, places, len(doc)) for name, row in values.items()}
        spans = [
            (part.tokens[span.start], part.tokens[span.end - 1] + 1, span.type, float(span.confidence))
            for part, tagging in zip(parts, taggings, strict=True)
            for span in tagging.spans
        ]
        return cls(str(first.cell), first.cell.task, first.label_names, values, spans)


def sentences(doc: Doc) -> list[Part]:
    """Read the sentences of a document, or all of it as one if none are marked; leave tokens of white space out."""
    marked = doc.has_annotation("SENT_START")
    edges = [*(sentence.start for sentence in doc.sents), len(doc)] if marked else [0, len(doc)]
    texts, blank = [token.text for token in doc], [token.is_space for token in doc]
    spaces = [True] * len(doc) if doc.has_unknown_spaces else [bool(token.whitespace_) for token in doc]
    parts = []
    for start, end in pairwise(edges):
        tokens = [i for i in range(start, end) if not blank[i]]
        if tokens:
            after = tuple(spaces[i] or (i + 1 < end and blank[i + 1]) for i in tokens)
            words = tuple(texts[i] for i in tokens)
            parts.append(Part(Sentence(words, (), () if all(after) else after), tokens))
    return parts


def write(doc: Doc, columns: Sequence[TokenColumn], spans_key: str, overwrite: bool) -> None:
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
    ordered = sorted(group, key=lambda item: (item[0].start, item[0].end))
    attrs = {"scores": [score for _, score, _ in ordered], "cells": [cell for *_, cell in ordered]}
    doc.spans[spans_key] = SpanGroup(doc, name=spans_key, spans=[span for span, *_ in ordered], attrs=attrs)
    doc._.set(RECORD, {column.cell: column.values for column in columns})


def tagged_doc(tagging: "Tagging", vocab: Vocab | None = None) -> Doc:
    """Make a document of the tagged sentence, with its labels, spans and doubt; `vocab` is a pipeline's.

    Where a task labels sentences or pairs, `doc.cats` has the probability of every label.
    """
    register_extensions()
    sentence = tagging.sentence
    doc = Doc(vocab or Vocab(), list(sentence.words), list(sentence.spaces or (True,) * len(sentence)))
    if tagging.unit is not Unit.WORD:
        doc.cats = tagging.distribution(0)
        return doc
    column = TokenColumn.of(doc, [Part(sentence, list(range(len(doc))))], [tagging])
    write(doc, [column] if column else [], spans_key=RECORD, overwrite=True)
    return doc


def register_extensions() -> None:
    """Register the extensions, once for the process."""
    if not Doc.has_extension(RECORD):
        Doc.set_extension(RECORD, default=None)
        Token.set_extension(RECORD, getter=_of_token)
        Token.set_extension(
            "crossfill_confidence", getter=lambda token: min(_values(token, "confidence"), default=None)
        )
        Token.set_extension("crossfill_doubtful", getter=lambda t: any(_values(t, "doubtful")))
        Span.set_extension("crossfill_confidence", getter=_span_confidence)
        Span.set_extension("crossfill_doubtful", getter=lambda span: any(any(_values(t, "doubtful")) for t in span))


def _write_entities(doc: Doc, column: TokenColumn, overwrite: bool) -> None:
    spans = [Span(doc, start, end, kind) for start, end, kind, _ in column.spans]
    earlier = [] if overwrite else list(doc.ents)
    taken = {i for entity in earlier for i in range(entity.start, entity.end)}
    doc.set_ents([*earlier, *(span for span in spans if taken.isdisjoint(range(span.start, span.end)))])


def _write_parts_of_speech(doc: Doc, column: TokenColumn, overwrite: bool) -> None:
    for token, label in zip(doc, column.values["label"], strict=True):
        if overwrite or not token.pos:
            token.pos = PARTS_OF_SPEECH["SPACE" if label is None else "" if label == "_" else label]


def _write_tags(doc: Doc, column: TokenColumn, overwrite: bool) -> None:
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
    """Make a list of this length with values at these places, and none elsewhere."""
    row: list[Any] = [None] * length
    for place, value in zip(places, values, strict=True):
        row[place] = value
    return row


def _of_token(token: Token) -> dict[str, dict[str, Any]]:
    record = token.doc._.crossfill or {}
    by_cell = {cell: {name: row[token.i] for name, row in values.items()} for cell, values in record.items()}
    return {cell: values for cell, values in by_cell.items() if values["label"] is not None}


def _values(token: Token, name: str) -> list[Any]:
    return [values[name] for values in _of_token(token).values() if name in values]


def _span_confidence(span: Span) -> float | None:
    for group in span.doc.spans.values():
        for other, score in zip(group, group.attrs.get("scores", ()), strict=False):
            if "cells" in group.attrs and (other.start, other.end, other.label) == (span.start, span.end, span.label):
                return score
    return None


_WRITERS = {"ents": _write_entities, "pos": _write_parts_of_speech, "tag": _write_tags}
