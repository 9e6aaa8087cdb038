"""The component `crossfill`: tags documents in cells of a model, by their own tokens.

spaCy imports this module, by its entry point, whenever a pipeline is made: models and torch are imported on first use.
docs/tools.md lists what extensions say of documents, spans and tokens.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spacy.language import Language
from spacy.parts_of_speech import IDS as PARTS_OF_SPEECH
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, SpanGroup, Token
from spacy.util import minibatch
from spacy.vocab import Vocab

from crossfill.data.docbin import attribute_of
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Unit

if TYPE_CHECKING:
    from crossfill.grid.cells import Inventory
    from crossfill.prediction.tagging import Tagging
    from crossfill.tagger.tagger import Tagger

RECORD = "crossfill"
"""The name of the extension that holds, by cell, what was found for every token."""


class Crossfill(Pipe):
    """Tags documents in one or several cells, with one pass through the encoder."""

    def __init__(
        self,
        nlp: Language,  # noqa: ARG002  spaCy gives it by name
        name: str,
        model: str,
        cells: list[str],
        samples: int | None,
        options: dict[str, Any],
        encoder: str | None,
        spans_key: str,
        overwrite: bool,
        with_encoder: bool,
    ) -> None:
        """Check the settings, which docs/tools.md explains; the model is loaded later."""
        from crossfill.errors import ConfigError, unknown
        from crossfill.prediction.tagging import TaggingOptions

        known = [field.name for field in fields(TaggingOptions)]
        if wrong := next((option for option in options if option not in known), None):
            raise ConfigError(unknown("option", wrong, known))
        self.name, self.model, self.encoder = name, model, encoder
        self.cells, self.samples, self.options = list(cells), samples, options
        self.spans_key, self.overwrite, self.with_encoder = spans_key, overwrite, with_encoder
        self._tagger: Tagger | None = None
        register_extensions()
        if Path(model).is_dir():  # else it may come with from_disk, or from the hub
            from crossfill.checkpoint import read_description

            self._check(read_description(Path(model))[1])

    @property
    def tagger(self) -> "Tagger":
        """The model, loaded on first use."""
        if self._tagger is None:
            self._tagger = self._loaded(self.model)
        return self._tagger

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its tasks, if the model is loaded."""
        if self._tagger is None:
            return ()
        tasks = [self._tagger.model.inventory.task(self._tagger.cell(cell).task) for cell in self.cells]
        return tuple(label for task in tasks for label in task.labels)

    def __call__(self, doc: Doc) -> Doc:
        """Tag a document."""
        return next(self.pipe([doc]), doc)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Tag a stream of documents, a batch at a time."""
        for docs in minibatch(stream, batch_size):
            try:
                self._tag(docs)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
                continue
            yield from docs

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:  # noqa: ARG002  nothing to leave out
        """Save the model; of a frozen encoder its name only, or a copy if `with_encoder`."""
        self.tagger.save(path, self.with_encoder)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "Crossfill":  # noqa: ARG002
        """Take the model in a folder, instead of the one that was named."""
        self._tagger = self._loaded(path)
        return self

    def _tag(self, docs: Sequence[Doc]) -> None:
        from crossfill.prediction.tagging import TaggingOptions

        parts = [sentences(doc) for doc in docs]
        words = (part.sentence for of_doc in parts for part in of_doc)
        taggings = self.tagger.tag_cells(words, self.cells, self.samples, TaggingOptions(**self.options))
        for doc, of_doc in zip(docs, parts, strict=True):
            by_cell = zip(*[next(taggings) for _ in of_doc], strict=True)
            columns = [TokenColumn.of(doc, of_doc, of_cell) for of_cell in by_cell]
            write(doc, columns, self.spans_key, self.overwrite)

    def _loaded(self, model: str | Path) -> "Tagger":
        from crossfill.tagger.tagger import load

        tagger = load(model, encoder=self.encoder)
        self._check(tagger.model.inventory)
        return tagger

    def _check(self, inventory: "Inventory") -> None:
        """Refuse cells that a model does not have, or whose labels have no place at tokens."""
        from crossfill.data.codes import find_cell
        from crossfill.errors import ConfigError
        from crossfill.grid.cells import Cell

        known = frozenset(Cell(task, language) for task in inventory.tasks for language in inventory.languages)
        tasks = [find_cell(cell, known).task for cell in self.cells]
        if not tasks or len(set(tasks)) < len(tasks):
            raise ConfigError(f"expected one cell of each task, as ner/wol and pos/wol; got {self.cells or 'none'}")
        for task in tasks:
            if (unit := inventory.task(task).unit) is not Unit.WORD:
                raise ConfigError(f"expected tasks that label words, got {task}, which labels {unit}s; use predict")


make_crossfill = Language.factory(
    "crossfill",
    assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type", "token.pos", "token.tag", "token.morph"],
    default_config={
        "samples": None,
        "options": {},
        "encoder": None,
        "spans_key": "crossfill",
        "overwrite": True,
        "with_encoder": False,
    },
)(Crossfill)


class Part(NamedTuple):
    """A sentence of a document, and the tokens that its words are."""

    sentence: Sentence
    tokens: list[int]


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
    def of(cls, doc: Doc, parts: Sequence[Part], taggings: Sequence["Tagging"]) -> "TokenColumn":
        """Lay out the taggings of a document's sentences, of which there is one at least."""
        first = taggings[0]
        found: dict[str, list[Any]] = {"label": [label for tagging in taggings for label in tagging.labels]}
        numbers = ["confidence", "entropy", "mutual_information", *(["doubtful"] if first.doubtful is not None else [])]
        found |= {name: [value for t in taggings for value in getattr(t, name).tolist()] for name in numbers}
        if first.sets is not None:
            found["label_set"] = [list(labels) for tagging in taggings for labels in tagging.label_sets]
        values = {name: [None] * len(doc) for name in found}
        for name, row in found.items():
            for place, value in zip((i for part in parts for i in part.tokens), row, strict=True):
                values[name][place] = value
        spans = [
            (part.tokens[span.start], part.tokens[span.end - 1] + 1, span.type, float(span.confidence))
            for part, tagging in zip(parts, taggings, strict=True)
            for span in tagging.spans
        ]
        return cls(str(first.cell), first.cell.task, first.task.labels, values, spans)


def write(doc: Doc, columns: Sequence[TokenColumn], spans_key: str, overwrite: bool) -> None:
    """Annotate a document where spaCy keeps the labels of each task, and with everything in extensions.

    Two tasks may have one place in spaCy, as `token.tag_`: the first of them gets it.
    """
    writers = {"ents": _write_entities, "pos": _write_parts_of_speech, "tag": _write_tags}
    taken: set[str] = set()
    group: list[tuple[Span, float, str]] = []
    for column in columns:
        place = attribute_of(column.task, column.label_names)
        group += [(Span(doc, a, b, kind), score, column.cell) for a, b, kind, score in column.spans]
        if place == "morph":
            _write_morph(doc, column, overwrite)
        elif place in writers and place not in taken:
            writers[place](doc, column, overwrite)
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
    if tagging.task.unit is Unit.WORD:
        column = TokenColumn.of(doc, [Part(sentence, list(range(len(doc))))], [tagging])
        write(doc, [column], spans_key=RECORD, overwrite=True)
    else:
        doc.cats = tagging.distribution(0)
    return doc


def register_extensions() -> None:
    """Register the extensions, once for the process."""
    if not Doc.has_extension(RECORD):
        Doc.set_extension(RECORD, default=None)
        Token.set_extension(RECORD, getter=_of_token)
        Token.set_extension("crossfill_confidence", getter=lambda t: min(_values(t, "confidence"), default=None))
        Token.set_extension("crossfill_doubtful", getter=lambda t: any(_values(t, "doubtful")))
        Span.set_extension("crossfill_confidence", getter=_span_confidence)
        Span.set_extension("crossfill_doubtful", getter=lambda span: any(any(_values(t, "doubtful")) for t in span))


def _write_entities(doc: Doc, column: TokenColumn, overwrite: bool) -> None:
    earlier = [] if overwrite else list(doc.ents)
    taken = {i for entity in earlier for i in range(entity.start, entity.end)}
    new = [Span(doc, a, b, kind) for a, b, kind, _ in column.spans if taken.isdisjoint(range(a, b))]
    doc.set_ents([*earlier, *new])


def _write_parts_of_speech(doc: Doc, column: TokenColumn, overwrite: bool) -> None:
    for token, label in zip(doc, column.values["label"], strict=True):
        if overwrite or not token.pos:
            token.pos = PARTS_OF_SPEECH["SPACE" if label is None else "" if label == "_" else label]


def _write_tags(doc: Doc, column: TokenColumn, overwrite: bool) -> None:
    for token, label in zip(doc, column.values["label"], strict=True):
        if overwrite or not token.tag:
            token.tag_ = "" if label in (None, "_") else label


def _write_morph(doc: Doc, column: TokenColumn, overwrite: bool) -> None:
    key = column.task.removeprefix("feats:")
    for token, label in zip(doc, column.values["label"], strict=True):
        known = token.morph.to_dict()
        rest = {name: value for name, value in known.items() if name != key}
        if label not in (None, "_"):
            rest[key] = label
        if rest != known and (overwrite or key not in known):
            token.set_morph(rest)  # pyright: ignore[reportAttributeAccessIssue]  spaCy's stubs lack it


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
