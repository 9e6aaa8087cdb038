"""Readers of corpus files, by file suffix. To add a format, write a reader and add its suffix to `READERS`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any
from unicodedata import is_normalized

from crossfill.data import arrow_tables, bio, conllu, docbin, json_corpora, text_tables
from crossfill.data.hints import NO_HINTS, ReadingHints
from crossfill.data.labels import LabelColumn, Scheme, iob2, recased, scheme, split_tag
from crossfill.data.lines import GZIP, BadLines, decode, unpacked
from crossfill.errors import DataError
from crossfill.grid.column import Column
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Unit

VERSION = "7"
"""To be raised when the same bytes would be read differently, so that older cache entries are ignored."""


@dataclass(frozen=True)
class Reading:
    """A corpus as it was read, and what reading it changed."""

    corpus: Corpus
    scheme: Scheme = "none"
    repaired: int = 0
    """Tags that do not fit the scheme (`mixed` only)."""
    normalised: int = 0
    """Words that were not in Unicode's composed form (NFC)."""
    prefix: str = ""
    """The language prefix that was removed from every word."""
    recased: int = 0
    """Tags that were written in another case."""
    columns: str = ""
    """Which columns are words and tags; empty if there are no others and no header."""
    lost: tuple[tuple[int, str], ...] = ()
    """The first sentences that were left out: the number of a bad line, and what is wrong with it."""
    n_lost: int = 0
    cut: tuple[tuple[int, str], ...] = ()
    """The first lines with words that were split where a span begins or ends, and what was split."""
    n_cut: int = 0


Reader = Callable[[bytes, str, str, ReadingHints], Reading]
"""Reads a corpus from the bytes of a file, its name for error messages, the task to read, and hints next to it."""


def read_corpus(data: bytes, where: str, task: str, hints: ReadingHints, suffix: str, packed: bool = False) -> Reading:
    """Read a corpus with the reader of a suffix, unpacked first if it is packed with gzip."""
    content = unpacked(data, where) if packed or data.startswith(GZIP) else data
    return READERS[suffix](content, where, task, hints)


def read_conllu(data: bytes, where: str, task: str, hints: ReadingHints = NO_HINTS) -> Reading:  # noqa: ARG001
    """Read the words of a CoNLL-U file, with labels from the column that the task names."""
    bad = BadLines(where)
    parsed = list(conllu.parse(data, where, bad))
    bad.check(len(parsed))
    if not LabelColumn.names(task) and (reading := _from_misc(parsed, task)) is not None:
        return replace(reading, **_lost(bad))
    try:
        label = LabelColumn(task)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    corpus = Corpus.from_sentences(sentence.sentence(label) for sentence in parsed)
    labels = corpus.labels.distinct()
    if task == "pos" and labels - {"_"} and (problem := bio.wrong_tags(corpus.labels, corpus.words, task)):
        shown = ", ".join(f"'{label[:20]}'" for label in sorted(labels)[:3])
        raise DataError(
            f"{where}: expected parts of speech in column 4 (UPOS), got {problem} ({shown}); put columns in the order "
            "of CoNLL-U, or give the labels as word<TAB>label in .bio files"
        )
    return replace(composed_reading(corpus), **_lost(bad))


def read_columns(data: bytes, where: str, task: str, hints: ReadingHints = NO_HINTS) -> Reading:
    """Read words and labels from token columns; span tags of any scheme and case become IOB2.

    A table with a header and a sentence or a pair in every row is read as such: see `text_tables`.
    """
    lines, bad = decode(data, where), BadLines(where)
    if text_tables.holds_items(lines, task, hints):
        table = text_tables.TextTable.of(lines, "\t")
        return _collected(text_tables.parse(table, where, task, hints, bad), task, bad)
    rows = bio.TokenRows.of(lines)
    columns = bio.choose_columns(rows, task, hints, where)
    reading = _collected(bio.tagged_sentences(rows, columns, where, bad), task, bad)
    corpus = reading.corpus
    words, prefix = bio.without_prefix(corpus.words)
    if prefix:
        corpus = Corpus(words, corpus.labels, corpus.spaces, corpus.offsets)
    return replace(reading, corpus=corpus, prefix=prefix, columns=columns.how)


def read_comma_separated(data: bytes, where: str, task: str, hints: ReadingHints = NO_HINTS) -> Reading:
    """Read sentences or pairs with their labels from a table with a header, whose columns commas separate."""
    bad, table = BadLines(where), text_tables.TextTable.of(decode(data, where), ",", where)
    return _collected(text_tables.parse(table, where, task, hints, bad), task, bad)


def read_json_objects(data: bytes, where: str, task: str, hints: ReadingHints = NO_HINTS) -> Reading:
    """Read words and labels, text and spans, or sentences or pairs with their labels, from JSON objects."""
    bad, cut = BadLines(where), BadLines(where)
    sentences = json_corpora.parse(data, where, task, hints, bad, cut)
    return replace(_collected(sentences, task, bad), cut=tuple(cut.lost), n_cut=cut.n_lost)


def read_parquet(data: bytes, where: str, task: str, hints: ReadingHints = NO_HINTS) -> Reading:
    """Read words and labels, or sentences or pairs with theirs, from a Parquet file of a Hugging Face dataset."""
    bad = BadLines(where)
    return _collected(arrow_tables.parse_parquet(data, where, task, hints, bad), task, bad)


def read_arrow(data: bytes, where: str, task: str, hints: ReadingHints = NO_HINTS) -> Reading:
    """Read an Arrow file, as `save_to_disk` of Hugging Face datasets writes it."""
    bad = BadLines(where)
    return _collected(arrow_tables.parse_arrow(data, where, task, hints, bad), task, bad)


def read_docbin(data: bytes, where: str, task: str, hints: ReadingHints = NO_HINTS) -> Reading:  # noqa: ARG001
    """Read words and labels from a DocBin of spaCy."""
    bad = BadLines(where)
    return _collected(docbin.parse(data, where, task, bad), task, bad)


def labelled(corpus: Corpus, task: str) -> Reading:
    """Bring a corpus into its normal form: span tags of any scheme and case become IOB2, words NFC."""
    if corpus.unit is not Unit.WORD or not len(corpus.labels):
        return composed_reading(corpus)
    counts = corpus.labels.counts()
    upper = recased(counts, task)
    labels = corpus.labels.map(lambda tag: upper.get(tag, tag)) if upper else corpus.labels
    bounds = corpus.offsets.tolist()
    values = list(labels)
    tags = [values[start:end] for start, end in pairwise(bounds)]
    kind, repaired = scheme(tags)
    if kind not in ("none", "IOB2"):
        labels = Column.of(chain.from_iterable(map(iob2, tags)))
    corpus = Corpus(corpus.words, labels, corpus.spaces, corpus.offsets)
    return replace(composed_reading(corpus), scheme=kind, repaired=repaired, recased=sum(counts[tag] for tag in upper))


def composed_reading(corpus: Corpus) -> Reading:
    """Return the corpus with its words in composed form (NFC), and the number of words that were not."""
    changed = corpus.composed()
    n_changed = 0
    if changed is not corpus:
        n_changed = sum(n for word, n in corpus.words.counts().items() if not is_normalized("NFC", word))
    return Reading(changed, normalised=n_changed)


def _collected(sentences: Iterable[Sentence], task: str, bad: BadLines) -> Reading:
    corpus = Corpus.from_sentences(sentences)
    bad.check(len(corpus))
    return replace(labelled(corpus, task), **_lost(bad))


def _lost(bad: BadLines) -> dict[str, Any]:
    return {"lost": tuple(bad.lost), "n_lost": bad.n_lost}


def _from_misc(parsed: Sequence[conllu.ConlluSentence], task: str) -> Reading | None:
    """Read labels in MISC under the name of the task (`NER=B-PER`), as `data convert` writes them, if there are any.

    Where labels are tags of spans, words without one are in none.
    """
    corpus = Corpus.from_sentences(sentence.sentence(LabelColumn(f"misc:{task.upper()}")) for sentence in parsed)
    labels = corpus.labels.distinct() - {"_"}
    if labels and all(label == "O" or split_tag(label) for label in labels):
        spans = corpus.labels.map(lambda label: "O" if label == "_" else label)
        corpus = Corpus(corpus.words, spans, corpus.spaces, corpus.offsets)
    return labelled(corpus, task) if labels else None


COLUMNS = (".bio", ".iob", ".iob1", ".iob2", ".bioes", ".bilou", ".conll")
PLAIN = (".tsv", ".csv", ".txt", "", ".json")
"""Suffixes of corpora only if the file is named after a split."""
JSON = (".jsonl", ".ndjson", ".json")
TEXT = (*JSON, *PLAIN, ".parquet", ".arrow")
"""Suffixes of files whose text may have to be cut into words, by the rules of its language."""
READERS: dict[str, Reader] = {
    ".conllu": read_conllu,
    ".parquet": read_parquet,
    ".arrow": read_arrow,
    ".spacy": read_docbin,
    **dict.fromkeys((*COLUMNS, *PLAIN), read_columns),
    ".csv": read_comma_separated,
    **dict.fromkeys(JSON, read_json_objects),
}
