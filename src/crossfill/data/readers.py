"""Readers of corpus files, by file suffix. To add a format, write a reader and add its suffix to `READERS`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from crossfill.data import bio, conllu, docbin, eaf, flextext, records, table_corpora
from crossfill.data.labels import KNOWN_COLUMNS, LabelColumn, iob2, recased, split_tag, unlabelled_marks
from crossfill.data.messages import Level, Message
from crossfill.data.reading import NO_HINTS, FileNotes, Note, ReadingHints, decode, unpacked
from crossfill.errors import DataError, listed
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import UNLABELLED, Column, Corpus, Sentence
from crossfill.grid.task import Unit

VERSION = "14"  # to be raised when the same bytes would be read differently, so that older cache entries are ignored
_SHOWN_WORDS = 8


@dataclass(frozen=True)
class Reading:
    """A corpus as it was read, and what a person should know of its file."""

    corpus: Corpus
    changes: tuple[tuple[Level, str], ...] = ()
    """What reading changed in words and labels."""
    notes: tuple[Note, ...] = ()
    """Lines of the file whose sentence was left out, or with words that were split."""
    columns: str = ""
    """Which columns are words and tags; empty if there are no others and no header."""

    def messages(self, place: str, cell: Cell) -> list[Message]:
        """Say all of this of the file at `place`, which was read for `cell`."""
        messages = [Message(level, f"{place}:{line}" if line else place, text) for level, line, text in self.notes]
        messages += [Message(level, str(cell), text) for level, text in self.changes]
        if not len(self.corpus):
            return [*messages, Message("warning", place, "has no sentences")]
        if self.columns:
            first = next(sentence for sentence in self.corpus if len(sentence))
            pairs = [f"{word[:30]}/{label[:30]}" for word, label in zip(first.words, first.labels, strict=True)]
            shown = " ".join(pairs[:_SHOWN_WORDS]) + (" …" if len(pairs) > _SHOWN_WORDS else "")
            messages.append(Message("recognised", place, f"{self.columns}; first sentence: {shown}"))
        return messages


Reader = Callable[[bytes, str, str, ReadingHints], Reading]
"""Reads a corpus from the bytes of a file, its name for error messages, the task to read, and hints next to it."""


def read_corpus(data: bytes, where: str, task: str, hints: ReadingHints, suffix: str, packed: bool = False) -> Reading:
    """Read a corpus with the reader of a suffix, unpacked first if it is packed with gzip."""
    return READERS[suffix](unpacked(data, where, packed), where, task, hints)


def _reader(parse: Callable[[bytes, str, str, ReadingHints, FileNotes], Iterable[Sentence]]) -> Reader:
    """Make a reader of a function that yields the sentences of a file."""

    def read(data: bytes, where: str, task: str, hints: ReadingHints = NO_HINTS) -> Reading:
        notes = FileNotes(where)
        corpus = Corpus.from_sentences(parse(data, where, task, hints, notes))
        changes: tuple[tuple[Level, str], ...] = ()
        if names := dict(hints.names):
            others = sorted(corpus.labels.distinct() - {*names, *names.values(), "_", "O", UNLABELLED})
            corpus = replace(corpus, labels=corpus.labels.map(lambda label: _renamed(label, names)))
            if shown := listed([label for label in others if not split_tag(label)], 6):
                changes = (("warning", f"labels that the table of labels does not name stay as they are: {shown}"),)
        reading = labelled(corpus, task, hints)
        notes_of_file = notes.checked(len(corpus))
        return replace(reading, changes=changes + reading.changes, notes=notes_of_file, columns=notes.columns)

    return read


def _renamed(label: str, names: Mapping[str, str]) -> str:
    """Rename a label, or the type of a span's tag; a span that is renamed to O is none."""
    prefix, kind = split_tag(label) or ("", "")
    if label in names or kind not in names:
        return names.get(label, label)
    return "O" if names[kind] == "O" else f"{prefix}-{names[kind]}"


def _parse_conllu(data: bytes, where: str, task: str, _: ReadingHints, notes: FileNotes) -> Iterable[Sentence]:
    """Read words with labels from the column that the task names, or from MISC under its name (`NER=B-PER`).

    In MISC, where `data convert` writes what has no column, words without a tag are in no span, and `NER=?` has no
    label.
    """
    named = LabelColumn.names(task)
    column = LabelColumn(task if named else f"misc:{task.upper()}")
    sentences = [sentence.sentence(column) for sentence in conllu.parse(data, where, notes)]
    tags = [tag for sentence in sentences for tag in sentence.labels]
    distinct = set(tags) - {"_"}
    if not named:
        if sentences and not distinct - {"?"}:
            wanted = f"a task that names a CoNLL-U column ({KNOWN_COLUMNS})"
            raise DataError(f"{where}: expected {wanted}, got '{task}'; rename the folder, or write .bio files")
        spans = all(tag in ("O", "?") or split_tag(tag) for tag in distinct)
        meanings = {"?": UNLABELLED, "_": "O" if spans else "_"}
        return [replace(s, labels=tuple(meanings.get(tag, tag) for tag in s.labels)) for s in sentences]
    words = [word for sentence in sentences for word in sentence.words]
    if task == "pos" and distinct and (problem := bio.wrong_tags(tags, words, task)):
        shown = ", ".join(f"'{label[:20]}'" for label in sorted(set(tags))[:3])
        wanted = "parts of speech in column 4 (UPOS)"
        raise DataError(f"{where}: expected {wanted}, got {problem} ({shown}); put columns in the order of CoNLL-U")
    return sentences


def _parse_columns(data: bytes, where: str, task: str, hints: ReadingHints, notes: FileNotes) -> Iterable[Sentence]:
    """Read a word and its tag from each line, or a sentence or a pair: see `bio` and `table_corpora`."""
    lines = decode(data, where)
    if table_corpora.holds_items(lines, task, hints):
        return table_corpora.parse_text(data, where, task, hints, notes, "\t")
    table = bio.TokenTable.of(lines, where, task, hints)
    notes.columns = table.how
    return table.sentences(notes)


def labelled(corpus: Corpus, task: str, hints: ReadingHints) -> Reading:
    """Bring a corpus into its normal form: span tags of any scheme and case become IOB2, words NFC without prefix.

    Labels that mean that nobody has labelled the word become `UNLABELLED`.
    """
    composed = corpus.composed()
    composition: list[tuple[Level, str]] = [] if composed is corpus else [("note", "words composed (NFC)")]
    if corpus.unit is not Unit.WORD or not len(corpus.labels):
        return Reading(composed, tuple(composition))
    changes: list[tuple[Level, str]] = []
    marks = frozenset(hints.unlabelled) or unlabelled_marks(task)
    given = _without(corpus.labels, marks - {"O"})
    upper = recased({tag: n for tag, n in given.counts().items() if tag}, task)
    labels = given.map(lambda tag: upper.get(tag, tag)) if upper else given
    counts = labels.counts()
    n_spans = sum(n for tag, n in counts.items() if split_tag(tag))
    n_others = sum(n for tag, n in counts.items() if tag not in ("O", UNLABELLED) and not split_tag(tag))
    if n_others and (task == "ner" or n_others <= n_spans):
        changes.append(("warning", "suspicious scheme: expected IOB tags (B-PER, I-PER, O), got other labels"))
    if n_others <= n_spans:
        values = list(labels)
        tags = [tag for start, end in pairwise(corpus.offsets.tolist()) for tag in iob2(values[start:end])]
        if tags != values:
            labels = Column.of(tags)
            changes.append(("note", "tags rewritten as IOB2"))
    if upper:
        changes.append(("note", "tags rewritten in upper case"))
    if hints.partial or "O" in marks:
        labels = _without(labels, frozenset("O"))
    if n_open := labels.counts()[UNLABELLED]:
        changes.append(("note", f"{n_open:,} of {len(labels):,} words have no label: not learnt from, not scored"))
    words, prefix = bio.without_prefix(composed.words)
    if prefix:
        composition.append(("note", f"prefix {prefix} taken off every word"))
    return Reading(replace(corpus, words=words, labels=labels), (*changes, *composition))


def _without(labels: Column, marks: frozenset[str]) -> Column:
    """Take labels for none that mean none."""
    return labels.map(lambda tag: UNLABELLED if tag in marks else tag) if marks & labels.distinct() else labels


PLAIN = (".tsv", ".csv", ".txt", "", ".json")  # suffixes of corpora only if the file is named after a split
READERS: dict[str, Reader] = {
    ".conllu": _reader(_parse_conllu),
    **dict.fromkeys((".parquet", ".arrow"), _reader(table_corpora.parse_arrow)),
    ".spacy": _reader(docbin.parse),
    ".eaf": _reader(eaf.EafText.parse),
    ".flextext": _reader(flextext.FlexText.parse),
    **dict.fromkeys((".bio", ".iob", ".iob1", ".iob2", ".bioes", ".bilou", ".conll", *PLAIN), _reader(_parse_columns)),
    ".csv": _reader(table_corpora.parse_text),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _reader(records.parse_json)),
}
