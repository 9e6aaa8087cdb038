"""Corpora as spaCy's DocBin (`.spacy`), with labels where spaCy keeps those of a task."""

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from crossfill.data.labels import UPOS, is_ner
from crossfill.data.lines import MOST_WORDS, OnBadLine, check_printable
from crossfill.data.spans import spans_of
from crossfill.errors import DataError, missing_package
from crossfill.grid.sentence import Corpus, Sentence

Attribute = Literal["ents", "spans", "pos", "tag", "morph", "dep"]
"""Where spaCy keeps labels: `doc.ents`, a group of `doc.spans`, or `pos_`, `tag_`, `morph` or `dep_` of tokens."""
_ATTRIBUTES = ("DEP", "ENT_IOB", "ENT_TYPE", "MORPH", "POS", "SENT_START", "TAG")
_IOB = {0: "", 1: "I", 2: "O", 3: "B"}
_INSIDE = (1, 3)
_SPAN = struct.Struct(">QQQllll")  # hashes of id, knowledge base and label; first word, last; first character, last


@dataclass(frozen=True)
class _Document:
    """One document: attributes of its words by name, whether a space follows each, and packed groups of spans."""

    columns: dict[str, list[int]]
    spaces: list[bool]
    packed_groups: bytes
    strings: Any

    def numbers(self, name: str) -> list[int]:
        """Return an attribute that is a number, of every word; 0 where the file lacks it."""
        return self.columns.get(name) or [0] * len(self.spaces)

    def texts(self, name: str) -> list[str]:
        """Return an attribute that is a string, of every word; empty where there is none."""
        try:
            return [self.strings[value] for value in self.numbers(name)]
        except (KeyError, OverflowError):
            raise DataError(
                f"expected all strings of {name}, got some by their hash alone; write it again with spaCy"
            ) from None

    def groups(self) -> dict[str, list[tuple[int, int, str]]]:
        """Return first word, last word (exclusive) and label of spans, by the names of their groups."""
        from srsly import msgpack_loads

        try:
            loads: Any = msgpack_loads
            packed = dict(loads(self.packed_groups)) if self.packed_groups else {}
            groups = {key: loads(group)["spans"] for group, keys in packed.items() for key in keys}
            spans = {key: [_SPAN.unpack(span) for span in group] for key, group in groups.items()}
            return {key: [(s[3], s[4], self.strings[s[2]]) for s in group] for key, group in spans.items()}
        except Exception as error:
            raise DataError(f"expected groups of spans, got {_shown(error)}; write it again with spaCy") from None


def attribute_of(task: str, labels: Collection[str]) -> Attribute:
    """Tell where spaCy keeps the labels of a task, given all of them."""
    if task == "pos" and UPOS.issuperset(set(labels) - {"_"}):
        return "pos"
    if task == "deprel" or task.startswith("feats:"):
        return "dep" if task == "deprel" else "morph"
    if all(label == "O" or (label[:2] in ("B-", "I-") and label[2:]) for label in labels):
        return "ents" if is_ner(task) else "spans"
    return "tag"


def parse(data: bytes, where: str, task: str, on_bad_line: OnBadLine) -> Iterator[Sentence]:
    """Yield the sentences that documents have, else each document as one; tokens of white space are no words."""
    for number, document in enumerate(_documents(data, where), start=1):
        try:
            yield from _sentences(document, task)
        except DataError as error:
            on_bad_line(number, str(error))


def render(corpus: Corpus, task: str, labels: Collection[str]) -> bytes:
    """Write a document for every sentence, annotated where all `labels` of the task fit."""
    _check_installed()
    from spacy.tokens import Doc, DocBin, Span
    from spacy.vocab import Vocab

    attribute, vocab, packed = attribute_of(task, labels), Vocab(), DocBin(_ATTRIBUTES)
    for sentence in corpus:
        values = ["" if label == "_" else label for label in sentence.labels]
        if attribute == "morph":
            values = [f"{task.removeprefix('feats:')}={value}" if value else "" for value in values]
        keyword = {"pos": "pos", "tag": "tags", "morph": "morphs", "ents": "ents"}.get(attribute)
        annotated: dict[str, Any] = {"sent_starts": [i == 0 for i in range(len(sentence))]}
        if keyword:
            annotated[keyword] = values
        doc = Doc(vocab, list(sentence.words), list(sentence.spaces) or [True] * len(sentence), **annotated)
        if attribute == "spans":
            places = [(i, i + 1) for i in range(len(sentence))]
            doc.spans[task] = [Span(doc, *span) for span in spans_of(sentence.labels, places)]
        for token, value in zip(doc, values, strict=True) if attribute == "dep" else ():
            token.dep_ = value  # not in Doc(): it would invent heads
        packed.add(doc)
    return packed.to_bytes()


def _documents(data: bytes, where: str) -> Iterator[_Document]:
    """Yield the documents of a file, as DocBin holds them; no `Doc` is made, which damaged bytes could crash."""
    _check_installed()
    from spacy.attrs import IDS
    from spacy.strings import StringStore
    from spacy.tokens import DocBin

    try:
        packed = DocBin().from_bytes(data)
        known, strings = {number: name for name, number in IDS.items()}, StringStore(sorted(packed.strings))
        names = [known[number] for number in packed.attrs]
        parts = zip(packed.tokens, packed.spaces, packed.span_groups, packed.flags, strict=True)
        documents = []
        for tokens, spaces, groups, flags in parts:
            columns = dict(zip(names, tokens.T.tolist(), strict=True))
            spaced = [True] * len(tokens) if flags.get("has_unknown_spaces") else spaces.ravel().tolist()
            if len(spaced) != len(tokens):
                raise ValueError(f"{len(tokens)} words and {len(spaced)} spaces")
            documents.append(_Document(columns, spaced, groups, strings))
    except Exception as error:
        raise DataError(f"{where}: expected a DocBin, got {_shown(error)}; write it again with spaCy") from None
    yield from documents


def _sentences(document: _Document, task: str) -> Iterator[Sentence]:
    words = document.texts("ORTH")
    blank = [not word.strip() for word in words]
    labels = _labels(document, task, blank)
    begins = [i for i, start in enumerate(document.numbers("SENT_START")) if start == 1 and i]
    for start, end in pairwise([0, *begins, len(words)]):
        kept = [i for i in range(start, end) if not blank[i]]
        if len(kept) > MOST_WORDS:
            raise DataError(
                f"expected at most {MOST_WORDS:,} words in a sentence, got {len(kept):,}; mark sentences in the "
                "documents, as spaCy's sentencizer does"
            )
        spaces = tuple(bool(document.spaces[i]) or (i + 1 < end and blank[i + 1]) for i in kept)
        if kept:
            spaces = () if all(spaces[:-1]) else spaces
            yield check_printable(Sentence(tuple(words[i] for i in kept), tuple(labels[i] for i in kept), spaces))


def _labels(document: _Document, task: str, blank: list[bool]) -> list[str]:
    """Return the label of every token of a document; `_` where there is none."""
    if task.startswith("feats:"):
        pairs = [[pair.partition("=") for pair in morph.split("|")] for morph in document.texts("MORPH")]
        key = task.removeprefix("feats:")
        return [next((value for name, _, value in features if name == key and value), "_") for features in pairs]
    if task == "deprel":
        return [relation.partition(":")[0] or "_" for relation in document.texts("DEP")]
    if task == "pos" and any(document.numbers("POS")):
        return _parts_of_speech(document)
    if is_ner(task) and (tags := _entities(document, blank)):
        return tags
    groups = document.groups()
    if (name := next((name for name in (task, "sc") if name in groups), None)) is not None:
        return _span_tags(groups[name], len(document.spaces))
    if any(tags := document.texts("TAG")):
        return [tag or "_" for tag in tags]
    place = (
        "doc.ents" if is_ner(task) else {"pos": "token.pos_", "xpos": "token.tag_"}.get(task, f'doc.spans["{task}"]')
    )
    raise DataError(f"expected {task} in {place}, got a document without; annotate it, or leave it out")


def _parts_of_speech(document: _Document) -> list[str]:
    from spacy.parts_of_speech import NAMES

    names = [NAMES.get(number) for number in document.numbers("POS")]
    if None in names:
        raise DataError("expected parts of speech by spaCy's numbers, got another number; write it again with spaCy")
    return [name or "_" for name in names]


def _entities(document: _Document, blank: list[bool]) -> list[str] | None:
    """Return IOB tags of entities; none if it is not known of some words whether they are in one."""
    codes, kinds = document.numbers("ENT_IOB"), document.texts("ENT_TYPE")
    if any(not code and not space for code, space in zip(codes, blank, strict=True)):
        return None
    tags = [f"{_IOB.get(code)}-{kind}" if code in _INSIDE else "O" for code, kind in zip(codes, kinds, strict=True)]
    if set(codes) - set(_IOB) or any(len(tag) == 2 for tag in tags):
        raise DataError("expected entities with labels, as B, I and O; got others; write it again with spaCy")
    return tags


def _span_tags(spans: list[tuple[int, int, str]], n_words: int) -> list[str]:
    tags = ["O"] * n_words
    for start, end, label in sorted(spans):
        if not (0 <= start < end <= n_words and label):
            raise DataError(f"expected labelled spans within {n_words} words, got {start} to {end}; correct it")
        if any(tag != "O" for tag in tags[start:end]):
            raise DataError(f"expected spans that do not overlap, got {start} to {end} over another; keep one of them")
        tags[start:end] = [f"B-{label}", *[f"I-{label}"] * (end - start - 1)]
    return tags


def _shown(error: Exception) -> str:
    return f"{type(error).__name__} ({(str(error).splitlines() or [''])[0][:80]})"


def _check_installed() -> None:
    """Ask for spaCy, if it is not there."""
    try:
        import spacy  # noqa: F401
    except ImportError:
        raise DataError(missing_package("spaCy for .spacy files", "spacy")) from None
