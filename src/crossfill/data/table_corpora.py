"""Tables of corpora: TSV and CSV with a sentence or a pair in each row, and Hugging Face datasets (Parquet, Arrow).

A table of text has a header, whose names tell the columns of text and labels, or a file `columns.txt` next to it names
them (`text=text label=category`; columns may be named or counted from 1). No script of a dataset is ever run.
"""

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from crossfill.data.labels import is_ner
from crossfill.data.reading import OnBadLine, ReadingHints, check_printable, decode
from crossfill.data.segmentation import split_words
from crossfill.errors import DataError, missing_package
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Unit

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

TEXT_NAMES = ("text", "sentence", "utterance", "utt", "review", "tweet", "question", "content")
PAIR_NAMES = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("text1", "text2"), ("question1", "question2"))
LABEL_NAMES = ("label", "category", "class", "topic", "intent", "sentiment", "gold_label", "labels")
NAMED_LABELS = ("label_text", "label_name", "label_names")
"""Columns with the names of labels that are numbers, next to a column of numbers."""
_WORD_NAMES = ("tokens", "words", "token", "word", "form")
_FEATURES = b"huggingface"
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")


class ItemColumns(NamedTuple):
    """The names of the columns that hold the text of an item, or the two texts of a pair, and its label."""

    texts: tuple[str, ...]
    label: str


def find_columns(names: Iterable[str], task: str) -> ItemColumns | None:
    """Find the columns of sentences or pairs among these; none if they do not hold both texts and labels."""
    known = {name.strip().lower(): name for name in reversed(list(names))}
    label = next((known[n] for n in (*NAMED_LABELS, task.lower(), *LABEL_NAMES) if n in known), None)
    pair = next((tuple(known[n] for n in both) for both in PAIR_NAMES if all(n in known for n in both)), None)
    text = next((known[n] for n in TEXT_NAMES if n in known and known[n] != label), None)
    if label is None or not (pair or text):
        return None
    return ItemColumns(pair or (text or "",), label)


def holds_items(lines: Sequence[str], task: str, hints: ReadingHints) -> bool:
    """Tell whether a file has sentences or pairs in the rows of a table, and not words.

    A column `text` may also hold words. Those have a blank line after each sentence, or a task that labels words.
    """
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    header = lines[first].split("\t")
    columns = find_columns(header, task)
    if hints.texts or columns is None or hints.word or {name.strip().lower() for name in header} & {*_WORD_NAMES}:
        return bool(hints.texts)
    place, rows = header.index(columns.texts[0]), [line.split("\t") for line in lines[first + 1 :] if line.strip()]
    spaced = sum(len(row) > place and " " in row[place].strip() for row in rows)
    has_blanks = any(not line.strip() for line in "\n".join(lines).strip().split("\n"))
    is_words = has_blanks or is_ner(task) or task == "pos"
    return len(columns.texts) == 2 or 2 * spaced > len(rows) or not is_words


def parse_text(
    data: bytes, where: str, task: str, hints: ReadingHints, on_bad_line: OnBadLine, separator: str = ","
) -> Iterator[Sentence]:
    """Yield the sentences or pairs of a table, whose first line that is not blank is the header."""
    (first, names), *rows = table_rows(decode(data, where), separator, where) or [(1, [])]
    header = [name.strip() for name in names]
    columns = ItemColumns(hints.texts, hints.label) if hints.texts else find_columns(header, task)
    shown = ", ".join(header)[:80] or "nothing"
    if columns is None:
        raise DataError(
            f"{where}:{first}: expected a header that names a column of text ({', '.join(TEXT_NAMES[:3])}) or two "
            f"({' and '.join(PAIR_NAMES[0])}), and one of labels ({', '.join(LABEL_NAMES[:3])}); got {shown}; rename "
            "them, or name them in columns.txt as text=1 label=2"
        )
    places = []
    for name in (*columns.texts, columns.label):
        counted = name.isdecimal() and 1 <= int(name) <= len(header)
        if name not in header and not counted:
            raise DataError(
                f"{where}:{first}: expected a column '{name[:40]}', as columns.txt says; got {shown}; correct "
                "columns.txt"
            )
        places.append(header.index(name) if name in header else int(name) - 1)
    for number, row in rows:
        try:
            if len(row) != len(header):
                raise DataError(
                    f"expected {len(header)} columns, as the header has, got {len(row)}; put text with tabs in quotes"
                )
            *texts, label = (row[place] for place in places)
            yield read_item(texts, label, hints.labels, hints.language)
        except DataError as error:
            on_bad_line(number, str(error))


def read_item(texts: Sequence[Any], label: Any, names: Sequence[str], language: str) -> Sentence:
    """Make a sentence, or a pair, with its label; `names` are those of labels that are numbers, or all labels."""
    if not all(isinstance(text, str) and text.strip() for text in texts):
        missing = "two sentences, got one" if len(texts) == 2 and any(texts) else "text, got nothing"
        raise DataError(f"expected {missing}")
    name = read_label(label, names)
    first, *second = (split_words(text, language) for text in texts)
    if second:
        return Sentence.pair(first, second[0], name)
    return Sentence(first.words, (name,), first.spaces, unit=Unit.SENTENCE)


def read_label(value: Any, names: Sequence[str]) -> str:
    """Return a label; a number is the place of its name, from 0, where there are names."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not text or set(text) & set("\t\n"):
        shown = str(value).strip()[:40]
        raise DataError(f"expected one label, got {repr(shown) if shown else 'nothing'}")
    if not names or text in names:
        return text
    if not _NUMBER.fullmatch(text):
        raise DataError(f"expected one of the labels {', '.join(names)[:80]}; got '{text[:40]}'")
    if not 0 <= int(text) < len(names):
        last = len(names) - 1
        raise DataError(f"expected a label from 0 to {last}, as labels.txt or the file names them; got {text}")
    return names[int(text)]


def read_words(words: Any, tags: Any, spaces: Any, names: Sequence[str]) -> Sentence:
    """Make a sentence of lists of words and tags; `names` are those of tags that are numbers."""
    if not (isinstance(words, list) and isinstance(tags, list) and len(words) == len(tags)):
        raise DataError("expected a list of words and a list of as many labels, got others; complete them")
    if not all(isinstance(word, str) for word in words):
        raise DataError("expected words as strings, got others; correct them")
    labels = []
    for tag in tags:
        if isinstance(tag, str):
            labels.append(tag)
        elif type(tag) is int and 0 <= tag < len(names):
            labels.append(names[tag])
        elif type(tag) is int and not names:
            raise DataError(f"expected names of tags, got a number ({tag}); list the names in labels.txt next to it")
        else:
            raise DataError(f"expected tags from 0 to {len(names) - 1}, got {str(tag)[:20]}; complete the names")
    known = isinstance(spaces, list) and len(spaces) == len(words) and None not in spaces and not all(spaces)
    return check_printable(Sentence(tuple(words), tuple(labels), tuple(spaces) if known else ()))


def as_row(sentence: Sentence) -> Mapping[str, str]:
    """Return an item as it is written: text and label, or premise, hypothesis and label."""
    texts = [part.text for part in sentence.sentences]
    names = PAIR_NAMES[0] if sentence.unit is Unit.PAIR else TEXT_NAMES[:1]
    return {**dict(zip(names, texts, strict=True)), **dict(zip(LABEL_NAMES, sentence.labels, strict=False))}


def render_text(rows: Iterable[Mapping[str, str]], separator: str) -> bytes:
    """Write these rows, all of which have the same columns, under a header."""
    table = list(rows)
    header = [list(row) for row in table[:1]]
    return _written([*header, *(list(row.values()) for row in table)], separator, csv.QUOTE_MINIMAL).encode()


def _written(rows: Iterable[Sequence[str]], separator: str, quoting: Any) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n", quoting=quoting).writerows(rows)
    return out.getvalue()


def table_rows(lines: Sequence[str], separator: str, where: str) -> list[tuple[int, list[str]]]:
    """Read the rows of a table, and the lines on which they begin; blank lines are left out.

    In files that are separated by tabs, quotes are often just quotes: they are taken for those of CSV only if writing
    the rows again gives the same lines.
    """
    if separator == ",":
        try:
            return _csv_rows(lines, separator)
        except csv.Error as error:
            raise DataError(f"{where}: expected comma-separated values, got {error}; correct its quotes") from None
    plain = [(n, line.split(separator)) for n, line in enumerate(lines, start=1) if line.strip()]
    if not any('"' in line for line in lines):
        return plain
    try:
        rows = _csv_rows(lines, separator)
    except csv.Error:
        return plain
    if len(rows) < len(plain) and len({len(row) for _, row in plain}) == 1:  # each line is a row
        return plain
    text = "".join("".join(lines).split())  # lines that are blank make no difference
    cells = [row for _, row in rows]
    same = ("".join(_written(cells, separator, how).split()) == text for how in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    return rows if any(same) else plain


def _csv_rows(lines: Sequence[str], separator: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    rows, start = [], 0
    for row in reader:
        if "".join(lines[start : reader.line_num]).strip():
            rows.append((start + 1, row))
        start = reader.line_num
    return rows


def parse_arrow(data: bytes, where: str, task: str, hints: ReadingHints, on_bad_line: OnBadLine) -> Iterator[Sentence]:
    """Read a Parquet file, or one of Arrow; labels that are numbers have the names next to it, if the file has none."""
    arrow = _pyarrow()
    from pyarrow import ipc

    source = arrow.BufferReader(data)
    if data.startswith(b"PAR1"):
        with opened_parquet(source, where) as file:
            table = file.read()
            table.validate(full=True)
    else:
        with _refusing(where, "an Arrow"):
            opened = ipc.open_file if data.startswith(b"ARROW1") else ipc.open_stream
            table = opened(source).read_all()
            table.validate(full=True)
    columns: list[str] = table.column_names
    word = next((name for name in _WORD_NAMES if name in columns), None)
    items = ItemColumns(hints.texts, hints.label) if hints.texts else find_columns(columns, task)
    upos = ("upos", "upos_tags") if task == "pos" else ()
    usual = (f"{task}_tags", task, f"{task}_labels", *upos, "tags", "labels")
    label = next((name for name in usual if name in columns), None)
    if word is None and items is not None:
        label, chosen = items.label, list(items.texts)
    elif word is not None and label is not None:
        chosen = [word, "spaces"] if "spaces" in columns else [word]
    else:
        raise DataError(
            f"{where}: expected columns tokens and {usual[0]}, or text and label, got "
            f"{', '.join(columns)[:80] or 'none'}; rename them"
        )
    names = _names_of(table, label) or hints.labels
    values = (table.column(name).to_pylist() for name in (label, *chosen))
    for number, (given, *row) in enumerate(zip(*values, strict=True), start=1):
        try:
            if word is None:
                yield read_item(row, given, names, hints.language)
            elif sentence := read_words(row[0], given, row[1:] and row[1], names):
                yield sentence
        except DataError as error:
            on_bad_line(number, str(error))


def render_parquet(corpus: Corpus, task: str, labels: Collection[str]) -> bytes:
    """Write a Parquet file with columns `tokens`, `<task>_tags` and `spaces`, and the features that `datasets` reads.

    Sentences have columns `text` and `label`, pairs `premise`, `hypothesis` and `label`. `datasets` takes the numbers
    of labels from the first split that it reads: `labels` must be the same in all.
    """
    arrow, names = _pyarrow(), sorted(labels)
    from pyarrow import parquet

    numbers = {name: i for i, name in enumerate(names)}
    kinds = {"string": arrow.string(), "bool": arrow.bool_(), "label": arrow.int64()}
    features: dict[str, Any] = {kind: {"dtype": kind, "_type": "Value"} for kind in ("string", "bool")}
    features["label"] = {"names": names, "_type": "ClassLabel"}
    if corpus.unit is Unit.WORD:
        columns: dict[str, tuple[str, list[Any]]] = {
            "tokens": ("string", [list(s.words) for s in corpus]),
            f"{task}_tags": ("label", [[numbers[label] for label in s.labels] for s in corpus]),
            "spaces": ("bool", [list(s.spaces) or [True] * len(s) for s in corpus]),
        }
        kinds = {kind: arrow.list_(of) for kind, of in kinds.items()}
        features = {kind: {"feature": feature, "_type": "Sequence"} for kind, feature in features.items()}
    else:
        rows = [as_row(sentence) for sentence in corpus]
        columns = {name: ("string", [row[name] for row in rows]) for name in (rows[0] if rows else ())}
        columns["label"] = ("label", [numbers[row["label"]] for row in rows])
    described = {"info": {"features": {name: features[kind] for name, (kind, _) in columns.items()}}}
    fields = [(name, kinds[kind]) for name, (kind, _) in columns.items()]
    schema = arrow.schema(fields, {_FEATURES: json.dumps(described).encode()})
    out = arrow.BufferOutputStream()
    parquet.write_table(arrow.table({name: values for name, (_, values) in columns.items()}, schema=schema), out)
    return out.getvalue().to_pybytes()


def _names_of(table: "pyarrow.Table", column: str) -> tuple[str, ...]:
    """Return the names of a column's labels, by the features that `datasets` writes into a file."""
    try:
        described = json.loads((table.schema.metadata or {}).get(_FEATURES, b"{}"))
        feature = described["info"]["features"][column]
        feature = feature[0] if isinstance(feature, list) else feature.get("feature", feature)
        names = tuple(feature["names"])
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return ()
    return names if all(isinstance(name, str) and name for name in names) else ()


@contextmanager
def opened_parquet(file: Any, where: str) -> "Iterator[ParquetFile]":
    """Open a Parquet file to read it; `where` names it in errors."""
    _pyarrow(f"{where}: ")
    from pyarrow import parquet

    with _refusing(where, "a Parquet"):
        yield parquet.ParquetFile(file)


@contextmanager
def _refusing(where: str, kind: str) -> Iterator[None]:
    """Say what is wrong with a file that pyarrow cannot read."""
    try:
        yield
    except (_pyarrow().ArrowException, OSError, ValueError) as error:
        shown = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise DataError(f"{where}: expected {kind} file; {shown}; fetch it again") from None


def _pyarrow(where: str = "") -> Any:
    try:
        import pyarrow
    except ImportError:
        raise DataError(where + missing_package("pyarrow for Parquet and Arrow files", "datasets")) from None
    return pyarrow
