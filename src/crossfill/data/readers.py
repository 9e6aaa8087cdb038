"""Readers of corpus files, by file suffix. To add a format, write a reader and add its suffix to `READERS`."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from crossfill.data import arrow_tables, bio, conllu, docbin, json_corpora, sentence_tables
from crossfill.data.beside import NOTHING, Beside
from crossfill.data.columns import recognise
from crossfill.data.evidence import kind_of
from crossfill.data.gzipped import MAGIC, unpacked
from crossfill.data.labels import LabelColumn, iob2, recased, scheme, split_tag
from crossfill.data.lines import BadLines, decode
from crossfill.data.separated import SeparatedTable
from crossfill.data.storage import Reading
from crossfill.data.table import Table
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.unicode import is_composed
from crossfill.grid.unit import Unit

Reader = Callable[[bytes, str, str, Beside], Reading]
"""Reads a corpus from the bytes of a file, its name for error messages, the task to read, and what stands beside it."""
VERSION = "6"
"""To be raised when the same bytes would be read differently, so that older cache entries are ignored."""


def read_corpus(data: bytes, where: str, task: str, beside: Beside, suffix: str, packed: bool = False) -> Reading:
    """Read a corpus with the reader of a suffix, unpacked first if it is packed with gzip."""
    content = unpacked(data, where) if packed or data.startswith(MAGIC) else data
    return READERS[suffix](content, where, task, beside)


def read_conllu(data: bytes, where: str, task: str, beside: Beside = NOTHING) -> Reading:  # noqa: ARG001
    """Read the words of a CoNLL-U file, with labels from the column that the task names."""
    bad = BadLines(where)
    parsed = list(conllu.parse(data, where, bad))
    bad.check(len(parsed))
    if not LabelColumn.names(task) and (own := _from_misc(parsed, task)) is not None:
        return replace(own, **_told(bad))
    try:
        label = LabelColumn(task)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    corpus = Corpus.from_sentences(sentence.sentence(label) for sentence in parsed)
    if task == "pos":
        _check_parts_of_speech(corpus, where)
    return replace(composed(corpus), **_told(bad))


def read_columns(data: bytes, where: str, task: str, beside: Beside = NOTHING) -> Reading:
    """Read words and labels from token columns; span tags of any scheme and case become IOB2.

    A table with a header and a sentence or a pair in every row is read as such: see `sentence_tables`.
    """
    lines, bad = decode(data, where), BadLines(where)
    items = SeparatedTable.of(lines, "\t")
    if sentence_tables.holds_items(items, task, beside):
        return _collected(sentence_tables.parse(items, where, task, beside, bad), task, bad)
    table = Table.of(lines)
    columns = recognise(table, task, beside, where)
    tagged, prefix = bio.without_prefix(list(bio.sentences(table, columns, where, bad)))
    bad.check(len(tagged))
    found = labelled([Sentence(s.words, s.tags) for s in tagged], task)
    return replace(found, prefix=prefix, columns=columns.how, doubtful=columns.doubtful, **_told(bad))


def read_comma_separated(data: bytes, where: str, task: str, beside: Beside = NOTHING) -> Reading:
    """Read sentences or pairs with their labels from a table with a header, whose columns commas separate."""
    bad = BadLines(where)
    table = SeparatedTable.of(decode(data, where), ",")
    return _collected(sentence_tables.parse(table, where, task, beside, bad), task, bad)


def read_json(data: bytes, where: str, task: str, beside: Beside = NOTHING) -> Reading:
    """Read words and labels, text and spans, or sentences or pairs with their labels, from JSON objects."""
    bad, cut = BadLines(where), BadLines(where)
    tell = cut if beside.split_words else None
    sentences = json_corpora.parse(data, where, task, beside.language, bad, tell, beside.labels)
    return replace(_collected(sentences, task, bad), cut=tuple(cut.lost), n_cut=cut.n_lost)


def read_parquet(data: bytes, where: str, task: str, beside: Beside = NOTHING) -> Reading:
    """Read words and labels, or sentences or pairs with theirs, from a Parquet file of a Hugging Face dataset."""
    bad = BadLines(where)
    return _collected(arrow_tables.parse_parquet(data, where, task, beside, bad), task, bad)


def read_arrow(data: bytes, where: str, task: str, beside: Beside = NOTHING) -> Reading:
    """As `read_parquet`, from an Arrow file, as `save_to_disk` of Hugging Face datasets writes it."""
    bad = BadLines(where)
    return _collected(arrow_tables.parse_arrow(data, where, task, beside, bad), task, bad)


def read_docbin(data: bytes, where: str, task: str, beside: Beside = NOTHING) -> Reading:  # noqa: ARG001
    """Read words and labels from a DocBin of spaCy."""
    bad = BadLines(where)
    return _collected(docbin.parse(data, where, task, bad), task, bad)


def labelled(sentences: Sequence[Sentence], task: str) -> Reading:
    """The corpus of these sentences; span tags of any scheme and case become IOB2, labels of other units stay."""
    if sentences and sentences[0].unit is not Unit.WORD:
        return composed(Corpus.from_sentences(sentences))
    counts = Counter(tag for sentence in sentences for tag in sentence.labels)
    upper = recased(counts, task)
    tags = [tuple(upper.get(tag, tag) for tag in s.labels) if upper else s.labels for s in sentences]
    found, repaired = scheme(tags)
    strict = tags if found == "none" else [tuple(iob2(sentence)) for sentence in tags]
    corpus = Corpus.from_sentences(Sentence(s.words, own, s.spaces) for s, own in zip(sentences, strict, strict=True))
    return replace(composed(corpus), scheme=found, repaired=repaired, recased=sum(counts[tag] for tag in upper))


def _collected(sentences: Iterable[Sentence], task: str, bad: BadLines) -> Reading:
    kept = list(sentences)
    bad.check(len(kept))
    return replace(labelled(kept, task), **_told(bad))


def _told(bad: BadLines) -> dict[str, Any]:
    return {"lost": tuple(bad.lost), "n_lost": bad.n_lost}


def _from_misc(parsed: Sequence[conllu.ConlluSentence], task: str) -> Reading | None:
    """What is labelled in MISC under the name of the task (`NER=B-PER`), as `data convert` writes it; none if nothing.

    Where labels are tags of spans, words without one are in none.
    """
    sentences = [sentence.sentence(LabelColumn(f"misc:{task.upper()}")) for sentence in parsed]
    found = {label for sentence in sentences for label in sentence.labels} - {"_"}
    if found and all(label == "O" or split_tag(label) for label in found):
        whole = ((s, tuple("O" if label == "_" else label for label in s.labels)) for s in sentences)
        sentences = [replace(sentence, labels=labels) for sentence, labels in whole]
    return labelled(sentences, task) if found else None


def _check_parts_of_speech(corpus: Corpus, where: str) -> None:
    """Refuse a UPOS column that plainly holds something else; tag sets of one's own are let through."""
    kind = kind_of(list(corpus.labels), list(corpus.words)) if len(corpus.labels) else "blank"
    what = {"integers": "numbers", "numbers": "numbers", "spans": "tags of spans", "words": "what looks like words"}
    if kind in what:
        shown = ", ".join(f"'{label[:20]}'" for label in sorted(corpus.labels.distinct())[:3])
        raise DataError(
            f"{where}: expected parts of speech in column 4 (UPOS), got {what[kind]} ({shown}); put the columns in the "
            "order of CoNLL-U, or give the labels as word<TAB>label in .bio files"
        )


def composed(corpus: Corpus) -> Reading:
    """The corpus with its words in composed form (NFC), and the number of words that were not."""
    found = corpus.composed()
    changed = {} if found is corpus else corpus.words.counts()
    return Reading(found, normalised=sum(n for word, n in changed.items() if not is_composed(word)))


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
    **dict.fromkeys(JSON, read_json),
}
