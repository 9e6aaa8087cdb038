"""Corpora as spaCy's DocBin (`.spacy`), with labels where spaCy keeps those of a task."""

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any, Literal

from crossfill.data.docbin_file import Document, check_installed, documents
from crossfill.data.labels import UPOS, is_ner
from crossfill.data.lines import Lose, on_lines
from crossfill.data.spans import spans_of
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus, Sentence

Attribute = Literal["ents", "spans", "pos", "tag", "morph", "dep"]
"""Where spaCy keeps labels: `doc.ents`, a group of `doc.spans`, or `pos_`, `tag_`, `morph` or `dep_` of tokens."""
MOST_WORDS = 5000
"""Most words in a sentence; with more, sentences are probably not marked."""
_ATTRIBUTES = ("DEP", "ENT_IOB", "ENT_TYPE", "MORPH", "POS", "SENT_START", "TAG")
_IOB = {0: "", 1: "I", 2: "O", 3: "B"}
_INSIDE = (1, 3)


def attribute_of(task: str, labels: Collection[str]) -> Attribute:
    """Where spaCy keeps the labels of a task, given all of them."""
    if task == "pos" and UPOS.issuperset(set(labels) - {"_"}):
        return "pos"
    if task == "deprel" or task.startswith("feats:"):
        return "dep" if task == "deprel" else "morph"
    if all(label == "O" or (label[:2] in ("B-", "I-") and label[2:]) for label in labels):
        return "ents" if is_ner(task) else "spans"
    return "tag"


def parse(data: bytes, where: str, task: str, lose: Lose) -> Iterator[Sentence]:
    """The sentences that documents have, else each document as one; tokens of white space are no words."""
    for number, document in enumerate(documents(data, where), start=1):
        try:
            yield from _sentences(document, task)
        except DataError as error:
            lose(number, str(error))


def render(corpus: Corpus, task: str, labels: Collection[str]) -> bytes:
    """A file with a document for every sentence, annotated where all `labels` of the task fit."""
    check_installed()
    from spacy.tokens import Doc, DocBin, Span
    from spacy.vocab import Vocab

    attribute, vocab, packed = attribute_of(task, labels), Vocab(), DocBin(_ATTRIBUTES)
    for sentence in corpus:
        values = ["" if label == "_" else label for label in sentence.labels]
        if attribute == "morph":
            values = [f"{task.removeprefix('feats:')}={value}" if value else "" for value in values]
        given = {"pos": "pos", "tag": "tags", "morph": "morphs", "ents": "ents"}.get(attribute)
        annotated: dict[str, Any] = {"sent_starts": [i == 0 for i in range(len(sentence))]}
        if given:
            annotated[given] = values
        doc = Doc(vocab, list(sentence.words), list(sentence.spaces) or [True] * len(sentence), **annotated)
        if attribute == "spans":
            places = [(i, i + 1) for i in range(len(sentence))]
            doc.spans[task] = [Span(doc, *span) for span in spans_of(sentence.labels, places)]
        for token, value in zip(doc, values, strict=True) if attribute == "dep" else ():
            token.dep_ = value  # not in Doc(): it would invent heads
        packed.add(doc)
    return packed.to_bytes()


def _sentences(document: Document, task: str) -> Iterator[Sentence]:
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
            own = tuple(words[i] for i in kept), tuple(labels[i] for i in kept)
            yield on_lines(Sentence(*own, () if all(spaces[:-1]) else spaces))


def _labels(document: Document, task: str, blank: list[bool]) -> list[str]:
    """The label of every token of a document; `_` where there is none."""
    if task.startswith("feats:"):
        pairs = [[pair.partition("=") for pair in morph.split("|")] for morph in document.texts("MORPH")]
        key = task.removeprefix("feats:")
        return [next((value for name, _, value in own if name == key and value), "_") for own in pairs]
    if task == "deprel":
        return [relation.partition(":")[0] or "_" for relation in document.texts("DEP")]
    if task == "pos" and any(document.numbers("POS")):
        return _parts_of_speech(document)
    if is_ner(task) and (tags := _entities(document, blank)):
        return tags
    groups = document.groups()
    if (name := next((name for name in (task, "sc") if name in groups), None)) is not None:
        return _span_tags(groups[name], len(document))
    if any(tags := document.texts("TAG")):
        return [tag or "_" for tag in tags]
    place = (
        "doc.ents" if is_ner(task) else {"pos": "token.pos_", "xpos": "token.tag_"}.get(task, f'doc.spans["{task}"]')
    )
    raise DataError(f"expected {task} in {place}, got a document without; annotate it, or leave it out")


def _parts_of_speech(document: Document) -> list[str]:
    from spacy.parts_of_speech import NAMES

    found = [NAMES.get(number) for number in document.numbers("POS")]
    if None in found:
        raise DataError("expected parts of speech by spaCy's numbers, got another number; write it again with spaCy")
    return [name or "_" for name in found]


def _entities(document: Document, blank: list[bool]) -> list[str] | None:
    """IOB tags of entities; none if words are left for which it is not known whether they are in one."""
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
