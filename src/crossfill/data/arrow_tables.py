"""Hugging Face datasets as tables of Arrow: Parquet files, and what `save_to_disk` writes; no script is ever run."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crossfill.data.hints import ReadingHints
from crossfill.data.lines import OnBadLine, check_printable
from crossfill.data.text_tables import ItemColumns, as_row, find_columns, read_item
from crossfill.errors import DataError
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
    names = sorted(labels)
    numbers = {name: i for i, name in enumerate(names)}
    if corpus.unit is not Unit.WORD:
        return _render_items([as_row(sentence) for sentence in corpus], names)
    arrow = _pyarrow()
    column = f"{task}_tags"
    features = {
        "tokens": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"},
        column: {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"},
        "spaces": {"feature": {"dtype": "bool", "_type": "Value"}, "_type": "Sequence"},
    }
    schema = arrow.schema(
        [
            ("tokens", arrow.list_(arrow.string())),
            (column, arrow.list_(arrow.int64())),
            ("spaces", arrow.list_(arrow.bool_())),
        ],
        {_FEATURES: json.dumps({"info": {"features": features}}).encode()},
    )
    columns = {
        "tokens": [list(s.words) for s in corpus],
        column: [[numbers[label] for label in s.labels] for s in corpus],
        "spaces": [list(s.spaces) or [True] * len(s) for s in corpus],
    }
    return _written(arrow.table(columns, schema=schema))


def _render_items(rows: Sequence[Mapping[str, str]], names: Sequence[str]) -> bytes:
    arrow = _pyarrow()
    texts = [name for name in (rows[0] if rows else ()) if name != "label"]
    features: dict[str, Any] = {name: {"dtype": "string", "_type": "Value"} for name in texts}
    features["label"] = {"names": list(names), "_type": "ClassLabel"}
    schema = arrow.schema(
        [*((name, arrow.string()) for name in texts), ("label", arrow.int64())],
        {_FEATURES: json.dumps({"info": {"features": features}}).encode()},
    )
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in texts}
    columns["label"] = [list(names).index(row["label"]) for row in rows]
    return _written(arrow.table(columns, schema=schema))


def _written(table: "pyarrow.Table") -> bytes:
    from pyarrow import parquet

    out = _pyarrow().BufferOutputStream()
    parquet.write_table(table, out)
    return out.getvalue().to_pybytes()


def _items(
    table: "pyarrow.Table", items: ItemColumns, hints: ReadingHints, on_bad_line: OnBadLine
) -> Iterator[Sentence]:
    names = _names_of(table, items.label) or hints.labels
    columns = [table.column(name).to_pylist() for name in (*items.texts, items.label)]
    for number, (*texts, label) in enumerate(zip(*columns, strict=True), start=1):
        try:
            yield read_item(texts, label, names, hints.language)
        except DataError as error:
            on_bad_line(number, str(error))


def _sentences(
    table: "pyarrow.Table", where: str, task: str, hints: ReadingHints, on_bad_line: OnBadLine
) -> Iterator[Sentence]:
    columns: list[str] = table.column_names
    word = next((name for name in _WORDS if name in columns), None)
    items = ItemColumns(hints.texts, hints.label) if hints.texts else find_columns(columns, task)
    if word is None and items is not None:
        yield from _items(table, items, hints, on_bad_line)
        return
    wanted = (
        f"{task}_tags",
        task,
        f"{task}_labels",
        *(("upos", "upos_tags") if task == "pos" else ()),
        "tags",
        "labels",
    )
    tag = next((name for name in wanted if name in columns), None)
    if word is None or tag is None:
        raise DataError(
            f"{where}: expected columns tokens and {wanted[0]}, or text and label, got "
            f"{', '.join(columns)[:80] or 'none'}; rename them"
        )
    known = _names_of(table, tag) or hints.labels
    spaced = table.column("spaces").to_pylist() if "spaces" in columns else [None] * table.num_rows
    rows = zip(table.column(word).to_pylist(), table.column(tag).to_pylist(), spaced, strict=True)
    for number, (words, tags, spaces) in enumerate(rows, start=1):
        sentence = _row(words, tags, spaces, known)
        if isinstance(sentence, str):
            on_bad_line(number, sentence)
        elif sentence is not None:
            yield sentence


def _row(words: Any, tags: Any, spaces: Any, names: tuple[str, ...]) -> Sentence | str | None:
    """Return the sentence of a row, or what is wrong with it; none for an empty one."""
    if not (isinstance(words, list) and isinstance(tags, list) and len(words) == len(tags)):
        return "expected a list of words and a list of as many tags, got others; correct the row"
    if not words:
        return None
    if not all(isinstance(word, str) for word in words):
        return "expected words as strings, got others; correct the row"
    labels = []
    for tag in tags:
        if isinstance(tag, str) and tag:
            labels.append(tag)
        elif type(tag) is int and 0 <= tag < len(names):
            labels.append(names[tag])
        elif type(tag) is int and not names:
            return f"expected names of tags, got a number ({tag}); list the names in labels.txt next to it"
        else:
            return f"expected tags from 0 to {len(names) - 1}, got {str(tag)[:20]}; complete the names"
    kept = tuple(spaces) if isinstance(spaces, list) and len(spaces) == len(words) and None not in spaces else ()
    try:
        return check_printable(Sentence(tuple(words), tuple(labels), () if all(kept) else kept))
    except DataError as error:
        return str(error)


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
        raise DataError(
            f"{where}expected pyarrow for Parquet and Arrow files, found none; install it "
            "(pip install 'crossfill[datasets]')"
        ) from None
    return pyarrow


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__
