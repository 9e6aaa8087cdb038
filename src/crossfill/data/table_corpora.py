"""Tables of corpora: TSV and CSV with a sentence or a pair in each row, and Hugging Face datasets (Parquet, Arrow).

A table of text has a header, whose names tell the columns of text and labels, or a file `columns.txt` next to it names
them (`text=text label=category`; columns may be named or counted from 1). No script of a dataset is ever run.
"""

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crossfill.data.labels import is_ner
from crossfill.data.reading import FileNotes, ReadingHints, decode
from crossfill.data.records import WORD_NAMES, as_row, find_columns, item_columns, read_records, tag_names
from crossfill.errors import DataError, first_line, missing_package
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Unit

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

_FEATURES = b"huggingface"


def holds_items(lines: Sequence[str], task: str, hints: ReadingHints) -> bool:
    """Tell whether a file has sentences or pairs in the rows of a table, and not words.

    A column `text` may also hold words. Those have a blank line after each sentence, or a task that labels words.
    """
    if hints.texts:
        return True
    rows = [line.split("\t") for line in lines if line.strip()] or [[]]
    columns = find_columns(rows[0], task)
    if columns is None or hints.word or {name.strip().lower() for name in rows[0]} & {*WORD_NAMES}:
        return False
    place = rows[0].index(columns.texts[0])
    spaced = sum(len(row) > place and " " in row[place].strip() for row in rows[1:])
    has_blanks = len(rows) < len("\n".join(lines).strip().split("\n"))
    is_words = has_blanks or is_ner(task) or task == "pos"
    return len(columns.texts) == 2 or 2 * spaced >= len(rows) or not is_words


def parse_text(
    data: bytes, where: str, task: str, hints: ReadingHints, notes: FileNotes, separator: str = ","
) -> Iterator[Sentence]:
    """Yield the sentences or pairs of a table, whose first line that is not blank is the header."""
    (_, names), *rows = table_rows(decode(data, where), separator, where) or [(1, [])]
    header = [name.strip() for name in names]
    counted = {str(i): name for i, name in enumerate(header, start=1)} | {name: name for name in header}
    *texts, label = (counted.get(name, name) for name in (*hints.texts, hints.label))

    def records() -> Iterator[tuple[int, dict[str, str]]]:
        for number, row in rows:
            if len(row) == len(header):
                yield number, dict(zip(header, row, strict=True))
            else:
                expected = f"expected {len(header)} columns, as the header has, got {len(row)}"
                notes(number, f"{expected}; text may have no tabs")

    return read_records(records(), task, replace(hints, texts=tuple(texts), label=label), notes)


def render_text(rows: Iterable[Mapping[str, str]], separator: str) -> bytes:
    """Write these rows, all of which have the same columns, under a header."""
    table = list(rows)
    lines = [*(list(row) for row in table[:1]), *(list(row.values()) for row in table)]
    if separator == "\t":  # no text of a corpus has tabs
        return "".join("\t".join(line) + "\n" for line in lines).encode()
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(lines)
    return out.getvalue().encode()


def table_rows(lines: Sequence[str], separator: str, where: str) -> list[tuple[int, list[str]]]:
    """Read the rows of a table, and the lines on which they begin; blank lines are left out.

    Quotes are those of CSV in files that are separated by commas; between tabs, they are just quotes.
    """
    if separator == "\t":
        return [(n, line.split(separator)) for n, line in enumerate(lines, start=1) if line.strip()]
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    rows, start = [], 0
    try:
        for row in reader:
            if "".join(lines[start : reader.line_num]).strip():
                rows.append((start + 1, row))
            start = reader.line_num
    except csv.Error as error:
        raise DataError(f"{where}: expected comma-separated values, got {error}; correct its quotes") from None
    return rows


def parse_arrow(data: bytes, where: str, task: str, hints: ReadingHints, notes: FileNotes) -> Iterator[Sentence]:
    """Read a Parquet file, or one of Arrow; labels that are numbers have the names next to it, if the file has none."""
    arrow = _pyarrow()
    from pyarrow import ipc, parquet

    with _refusing(where):
        if data.startswith(b"PAR1"):
            table = parquet.ParquetFile(arrow.BufferReader(data)).read()
        else:
            opened = ipc.open_file if data.startswith(b"ARROW1") else ipc.open_stream
            table = opened(arrow.BufferReader(data)).read_all()
        table.validate(full=True)
        rows = table.to_pylist()
    columns: list[str] = table.column_names
    items = None if {*columns} & {*WORD_NAMES} else item_columns(columns, task, hints)
    label = items.label if items else next((name for name in tag_names(task) if name in columns), "")
    if len({*columns}) < len(columns):
        raise DataError(f"{where}: expected columns with different names, got {', '.join(columns)[:80]}; rename them")
    hints = replace(hints, labels=_names_of(table, label) or hints.labels)
    return read_records(enumerate(rows, start=1), task, hints, notes)


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
            f"{task}_tags": ("label", [[numbers.get(label) for label in s.labels] for s in corpus]),
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
        return tuple(feature["names"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


@contextmanager
def opened_parquet(file: Any, where: str) -> "Iterator[ParquetFile]":
    """Open a Parquet file to read it; `where` names it in errors."""
    _pyarrow(f"{where}: ")
    from pyarrow import parquet

    with _refusing(where):
        yield parquet.ParquetFile(file)


@contextmanager
def _refusing(where: str) -> Iterator[None]:
    """Say what is wrong with a file that pyarrow cannot read."""
    try:
        yield
    except (_pyarrow().ArrowException, OSError, ValueError, OverflowError) as error:
        raise DataError(f"{where}: expected a Parquet or Arrow file; {first_line(error)}; fetch it again") from None


def _pyarrow(where: str = "") -> Any:
    try:
        import pyarrow
    except ImportError:
        raise DataError(where + missing_package("pyarrow for Parquet and Arrow files", "datasets")) from None
    return pyarrow
