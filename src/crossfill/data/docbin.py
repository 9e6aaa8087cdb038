"""Corpora as spaCy's DocBin (`.spacy`), with labels where spaCy keeps those of a task."""

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from crossfill.data.labels import UPOS, is_ner
from crossfill.data.reading import OnBadLine, ReadingHints, check_printable
from crossfill.data.segmentation import TextSpan, spans_of, tags_of
from crossfill.errors import DataError, first_line, missing_package
from crossfill.grid.sentence import UNLABELLED, Corpus, Sentence

if TYPE_CHECKING:
    from spacy.tokens import Doc

Attribute = Literal["ents", "spans", "pos", "tag", "morph", "dep"]
"""Where spaCy keeps labels: `doc.ents`, a group of `doc.spans`, or `pos_`, `tag_`, `morph` or `dep_` of tokens."""
_OF_DOC = {"pos": "pos", "tag": "tags", "morph": "morphs", "ents": "ents"}  # what Doc() calls them
_ATTRIBUTES = ("DEP", "ENT_IOB", "ENT_TYPE", "MORPH", "POS", "SENT_START", "TAG")


def attribute_of(task: str, labels: Collection[str]) -> Attribute:
    """Tell where spaCy keeps the labels of a task, given all of them."""
    if task == "pos" and UPOS.issuperset(set(labels) - {"_"}):
        return "pos"
    if task == "deprel" or task.startswith("feats:"):
        return "dep" if task == "deprel" else "morph"
    if all(label == "O" or (label[:2] in ("B-", "I-") and label[2:]) for label in labels):
        return "ents" if is_ner(task) else "spans"
    return "tag"


def parse(data: bytes, where: str, task: str, hints: ReadingHints, on_bad_line: OnBadLine) -> Iterator[Sentence]:  # noqa: ARG001
    """Yield the sentences that documents have, else each document as one; tokens of white space are no words."""
    tokens, vocab = _spacy()
    try:
        documents = list(tokens.DocBin().from_bytes(data).get_docs(vocab))
    except Exception as error:
        raise DataError(f"{where}: expected a DocBin; {first_line(error)}; write it again with spaCy") from None
    for number, document in enumerate(documents, start=1):
        try:
            yield from _sentences(document, task)
        except DataError as error:
            on_bad_line(number, str(error))


def render(corpus: Corpus, task: str, labels: Collection[str]) -> bytes:
    """Write a document for every sentence, annotated where all `labels` of the task fit."""
    tokens, vocab = _spacy()
    attribute, packed = attribute_of(task, labels), tokens.DocBin(_ATTRIBUTES)
    for sentence in corpus:
        if UNLABELLED in sentence.labels and attribute not in ("pos", "dep", "ents"):
            raise DataError(f"expected a label of every word of {task} in a DocBin; write .bio instead")
        values = ["" if label == "_" else label for label in sentence.labels]
        if attribute == "morph":
            values = [f"{task.removeprefix('feats:')}={value}" if value else "" for value in values]
        annotated: dict[str, Any] = {"sent_starts": [i == 0 for i in range(len(sentence))]}
        if attribute in _OF_DOC:
            annotated[_OF_DOC[attribute]] = values
        doc = tokens.Doc(vocab, list(sentence.words), list(sentence.spaces) or [True] * len(sentence), **annotated)
        if attribute == "spans":
            places = [(i, i + 1) for i in range(len(sentence))]
            doc.spans[task] = [tokens.Span(doc, *span) for span in spans_of(sentence.labels, places)]
        for token, value in zip(doc, values, strict=True) if attribute == "dep" else ():
            token.dep_ = value  # not in Doc(): it would invent heads
        packed.add(doc)
    return packed.to_bytes()


def _sentences(document: "Doc", task: str) -> Iterator[Sentence]:
    labels = _labels(document, task)
    is_space = [not token.text.strip() for token in document]
    begins = [token.i for token in document if token.is_sent_start and token.i]
    for start, end in pairwise([0, *begins, len(document)]):
        tokens = [token for token in document[start:end] if not is_space[token.i]]
        if tokens:
            words, tags = tuple(token.text for token in tokens), tuple(labels[token.i] for token in tokens)
            spaces = tuple(
                document.has_unknown_spaces or bool(token.whitespace_) or is_space[token.i + 1 : end][:1] == [True]
                for token in tokens
            )
            yield check_printable(Sentence(words, tags, () if all(spaces[:-1]) else spaces))


def _labels(document: "Doc", task: str) -> list[str]:
    """Return the label of every token of a document; `_` where there is none."""
    if task.startswith("feats:"):
        pairs = [[pair.partition("=") for pair in str(token.morph).split("|")] for token in document]
        key = task.removeprefix("feats:")
        return [next((value for name, _, value in features if name == key and value), "_") for features in pairs]
    if task == "deprel":
        return [token.dep_.partition(":")[0] or "_" for token in document]
    if task == "pos" and any(token.pos for token in document):
        return [token.pos_ or "_" for token in document]
    if is_ner(task) and any(token.ent_iob for token in document):  # 0 is spaCy's way of saying that nobody knows
        tags = (f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O" for token in document)
        return [tag if token.ent_iob else UNLABELLED for tag, token in zip(tags, document, strict=True)]
    if (name := next((name for name in (task, "sc") if name in document.spans), None)) is not None:
        bounds = [(token.idx, token.idx + len(token)) for token in document]
        spans = [TextSpan(span.start_char, span.end_char, span.label_) for span in document.spans[name]]
        return list(tags_of(bounds, spans, document.text))
    if any(token.tag for token in document):
        return [token.tag_ or "_" for token in document]
    place = (
        "doc.ents" if is_ner(task) else {"pos": "token.pos_", "xpos": "token.tag_"}.get(task, f'doc.spans["{task}"]')
    )
    raise DataError(f"expected {task} in {place}, got a document without; annotate it, or leave it out")


def _spacy() -> tuple[Any, Any]:
    """Import spaCy's module of documents, and make an empty vocabulary; an error if spaCy is not installed."""
    try:
        from spacy import tokens, vocab
    except ImportError:
        raise DataError(missing_package("spaCy for .spacy files", "spacy")) from None
    return tokens, vocab.Vocab()
