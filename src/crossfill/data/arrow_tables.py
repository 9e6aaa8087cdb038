"""Hugging Face datasets as tables of Arrow: Parquet files, and what `save_to_disk` writes; no script is ever run."""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crossfill.data.reading import OnBadLine, ReadingHints, check_printable
from crossfill.data.text_tables import ItemColumns, as_row, find_columns, read_item
from crossfill.errors import DataError, missing_package
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Unit

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

_WORDS = ("tokens", "words", "token", "word")
_FEATURES = b"huggingface"


def parse_parquet(
    data: bytes, where: str, task: str, hints: ReadingHints, on_bad_line: OnBadLine
) -> Iterator[Sentence]:
    """Read a Parquet file; labels that are numbers have the names next to it, if the file has none."""
    arrow = _pyarrow()
    with opened_parquet(arrow.BufferReader(data), where) as file:
        table = file.read()
        table.validate(full=True)
    return _sentences(table, where, task, hints, on_bad_line)


def parse_arrow(data: bytes, where: str, task: str, hints: ReadingHints, on_bad_line: OnBadLine) -> Iterator[Sentence]:
    """Read an Arrow file, in the streaming format or the other."""
    arrow = _pyarrow()
    from pyarrow import ipc

    try:
        opened = ipc.open_file if data.startswith(b"ARROW1") else ipc.open_stream
        table = opened(arrow.BufferReader(data)).read_all()
        table.validate(full=True)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{where}: expected an Arrow file; {_first_line(error)}; save it again") from None
    return _sentences(table, where, task, hints, on_bad_line)


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


def _sentences(
    table: "pyarrow.Table", where: str, task: str, hints: ReadingHints, on_bad_line: OnBadLine
) -> Iterator[Sentence]:
    columns: list[str] = table.column_names
    word = next((name for name in _WORDS if name in columns), None)
    items = ItemColumns(hints.texts, hints.label) if hints.texts else find_columns(columns, task)
    upos = ("upos", "upos_tags") if task == "pos" else ()
    usual = (f"{task}_tags", task, f"{task}_labels", *upos, "tags", "labels")
    tag = next((name for name in usual if name in columns), None)
    if word is None and items is not None:
        of_items, chosen = True, [*items.texts, items.label]
        names = _names_of(table, items.label) or hints.labels
    elif word is not None and tag is not None:
        of_items, chosen = False, [word, tag, *(["spaces"] if "spaces" in columns else [])]
        names = _names_of(table, tag) or hints.labels
    else:
        raise DataError(
            f"{where}: expected columns tokens and {usual[0]}, or text and label, got "
            f"{', '.join(columns)[:80] or 'none'}; rename them"
        )
    for number, row in enumerate(zip(*(table.column(name).to_pylist() for name in chosen), strict=True), start=1):
        try:
            sentence = read_item(row[:-1], row[-1], names, hints.language) if of_items else _tokens(names, *row)
        except DataError as error:
            on_bad_line(number, str(error))
        else:
            if sentence:
                yield sentence


def _tokens(names: Sequence[str], words: Any, tags: Any, spaces: Any = None) -> Sentence:
    """Make the sentence of a row of lists."""
    if not (isinstance(words, list) and isinstance(tags, list) and len(words) == len(tags)):
        raise DataError("expected a list of words and a list of as many tags, got others; correct the row")
    if not all(isinstance(word, str) for word in words):
        raise DataError("expected words as strings, got others; correct the row")
    labels = []
    for tag in tags:
        if isinstance(tag, str) and tag:
            labels.append(tag)
        elif type(tag) is int and 0 <= tag < len(names):
            labels.append(names[tag])
        elif type(tag) is int and not names:
            raise DataError(f"expected names of tags, got a number ({tag}); list the names in labels.txt next to it")
        else:
            raise DataError(f"expected tags from 0 to {len(names) - 1}, got {str(tag)[:20]}; complete the names")
    known = isinstance(spaces, list) and len(spaces) == len(words) and None not in spaces
    return check_printable(Sentence(tuple(words), tuple(labels), () if not known or all(spaces) else tuple(spaces)))


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
    arrow = _pyarrow(f"{where}: ")
    from pyarrow import parquet

    try:
        yield parquet.ParquetFile(file)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{where}: expected a Parquet file; {_first_line(error)}; fetch it again") from None


def _pyarrow(where: str = "") -> Any:
    try:
        import pyarrow
    except ImportError:
        raise DataError(where + missing_package("pyarrow for Parquet and Arrow files", "datasets")) from None
    return pyarrow


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__
