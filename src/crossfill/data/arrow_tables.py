"""Hugging Face datasets as tables of Arrow: Parquet files, and what `save_to_disk` writes; no script is ever run."""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crossfill.data.reading import OnBadLine, ReadingHints
from crossfill.data.text_tables import ItemColumns, as_row, find_columns, read_item, read_words
from crossfill.errors import DataError, missing_package
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Unit

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

_WORDS = ("tokens", "words", "token", "word")
_FEATURES = b"huggingface"


def parse(data: bytes, where: str, task: str, hints: ReadingHints, on_bad_line: OnBadLine) -> Iterator[Sentence]:
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
    word = next((name for name in _WORDS if name in columns), None)
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
    text, flag, label = (
        {"dtype": "string", "_type": "Value"},
        {"dtype": "bool", "_type": "Value"},
        {"names": names, "_type": "ClassLabel"},
    )
    if corpus.unit is Unit.WORD:
        columns: dict[str, list[Any]] = {
            "tokens": [list(s.words) for s in corpus],
            f"{task}_tags": [[numbers[label] for label in s.labels] for s in corpus],
            "spaces": [list(s.spaces) or [True] * len(s) for s in corpus],
        }
        types = [arrow.list_(kind) for kind in (arrow.string(), arrow.int64(), arrow.bool_())]
        features = [{"feature": feature, "_type": "Sequence"} for feature in (text, label, flag)]
    else:
        rows = [as_row(sentence) for sentence in corpus]
        columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
        columns["label"] = [numbers[row["label"]] for row in rows]
        types = [*[arrow.string()] * (len(columns) - 1), arrow.int64()]
        features = [*[text] * (len(columns) - 1), label]
    described = {"info": {"features": dict(zip(columns, features, strict=True))}}
    schema = arrow.schema(list(zip(columns, types, strict=True)), {_FEATURES: json.dumps(described).encode()})
    out = arrow.BufferOutputStream()
    parquet.write_table(arrow.table(columns, schema=schema), out)
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
