"""Corpora as JSON, an object on every line or a list of them: words with labels, or text with spans of characters.

Read as they are exported: Prodigy (`text`, `spans`, `tokens`, `answer`), Doccano (`text`, `label` or `entities`), Label
Studio (`data`, `annotations`; or its short form, `text` and `label`), and words with labels (`words` or `tokens`;
`labels`, `tags` or `<task>_tags`). Text with one label is a labelled sentence (`text`, `label`), and `premise` and
`hypothesis` with one are a pair (`table_corpora` has all names).
"""

import json
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any

from crossfill.data.reading import FileNotes, ReadingHints, check_printable, decode
from crossfill.data.segmentation import TextSpan, cut_with_spans, sentences_with_spans, spans_of
from crossfill.data.table_corpora import as_row, find_columns, read_item, read_words
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Unit

_SPAN_KEYS = ("spans", "entities", "label", "labels")
_STARTS, _ENDS = ("start", "start_offset"), ("end", "end_offset")
_NAMES = ("label", "labels", "tag", "type")


def parse(data: bytes, where: str, task: str, hints: ReadingHints, notes: FileNotes) -> Iterator[Sentence]:
    """Yield the sentences of a file; text is cut into words by the rules of its language.

    A word in which a span begins or ends is split there. Words that the file gives are never split.
    """
    lines = decode(data, where)
    values: Iterable[tuple[int, Any]] = ((n, line) for n, line in enumerate(lines, start=1) if line.strip())
    if data.lstrip()[:1] == b"[":
        try:
            values = enumerate(json.loads("\n".join(lines)), start=1)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: expected a list of JSON objects, got invalid JSON: {error}; fix it") from None
    for number, value in values:
        split: list[str] = []
        try:
            item = json_object(value)
            if item.get("answer", "accept") != "accept":  # Prodigy keeps what was rejected or ignored
                continue
            sentence = _item(item, task, hints)
            sentences = [sentence] if sentence else _sentences(item, task, hints, split)
            printable = [check_printable(sentence) for sentence in sentences]
        except DataError as error:
            notes(number, str(error))
            continue
        yield from printable
        if split:
            notes.split.append((number, ", ".join(split)[:80]))


def render(corpus: Corpus, task: str, labels: Collection[str] = ()) -> bytes:  # noqa: ARG001
    """Write a JSON object on every line: words, labels, text, offsets, and spans if the task has any."""
    lines = []
    for sentence in corpus:
        values: dict[str, Any] = dict(as_row(sentence))
        if sentence.unit is Unit.WORD:
            values = {"text": sentence.text, "words": sentence.words, "offsets": sentence.offsets}
            values["labels"] = sentence.labels
            if spans := spans_of(sentence.labels, sentence.offsets):
                values["spans"] = [span._asdict() for span in spans]
        lines.append(json.dumps(values | {"task": task}, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def json_object(value: Any) -> dict[str, Any]:
    """Return the object that a line of JSON holds, or that was read from a list of them."""
    try:
        item = json.loads(value) if isinstance(value, str) else value
        if isinstance(value, str) and "\\u" in value:
            json.dumps(item, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DataError("expected whole characters, got half of a surrogate pair; write both halves") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"expected a JSON object, got invalid JSON: {error}; fix that line") from None
    if not isinstance(item, dict):
        raise DataError(f"expected a JSON object, got {type(item).__name__}; put words or text in an object")
    return item


def word_offsets(item: dict[str, Any], n_words: int) -> list[list[int]] | None:
    """Return start and end of each word in the text of an object; none if it does not have them."""
    offsets = item.get("offsets")
    pairs = offsets if isinstance(offsets, list) else []
    whole = all(isinstance(pair, list) and list(map(type, pair)) == [int, int] for pair in pairs)
    if offsets is not None and not (isinstance(offsets, list) and whole and len(pairs) == n_words):
        raise DataError(
            "expected offsets as a list of [start, end], one per word, in characters of the text; correct them"
        )
    return offsets


def _item(item: dict[str, Any], task: str, hints: ReadingHints) -> Sentence | None:
    """Read the sentence or pair of an object that has one label; none if it labels words."""
    single = {name: value for name, value in item.items() if isinstance(value, str | int | None)}
    for name, value in item.items():  # Doccano writes one label as a list of one string
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
            single[name] = value[0]
    columns = find_columns((name for name in item if name in single), task)
    if columns is None or (isinstance(item[columns.label], list) and ("words" in item or "tokens" in item)):
        return None  # a sentence of one word has a list of one label
    return read_item([item[name] for name in columns.texts], single[columns.label], hints.labels, hints.language)


def _sentences(item: dict[str, Any], task: str, hints: ReadingHints, split: list[str]) -> Iterable[Sentence]:
    """Read the sentences of an object, and add the words that are split to a list."""
    given: Any = item.get("words", item.get("tokens"))
    lists = (item.get(key) for key in (f"{task}_tags", "labels", "tags"))
    labels = next((tags for tags in lists if isinstance(tags, list) and all(type(t) in (str, int) for t in tags)), None)
    if labels is not None and isinstance(given, list) and all(isinstance(word, str) for word in given):
        offsets = word_offsets(item, len(given)) or []
        spaces = [*(after[0] > before[1] for before, after in pairwise(offsets)), True]
        return [read_words(given, labels, spaces, hints.labels)]
    text, spans = _annotated(item)
    if isinstance(given, list) and given:
        bounds = [(_number(token, _STARTS), _number(token, _ENDS)) for token in given if isinstance(token, dict)]
        if len(bounds) != len(given):
            raise DataError(
                'expected labels for "tokens", or tokens with their start and end in "text", got neither; add them'
            )
        return [cut_with_spans(text, bounds, spans)]
    return sentences_with_spans(text, spans, hints.language, split)


def _annotated(item: dict[str, Any]) -> tuple[str, list[TextSpan]]:
    """Read the text of an object and its spans."""
    text = item.get("text", item.get("data"))
    if isinstance(item.get("annotations"), list) and isinstance(item.get("data"), dict):  # Label Studio
        texts = [value for value in item["data"].values() if isinstance(value, str)]
        text = item["data"].get("text", texts[0] if len(texts) == 1 else None)
        done = [a for a in item["annotations"] if isinstance(a, dict) and not a.get("was_cancelled")]
        results = ([r for r in a.get("result", ()) if r.get("type", "labels") == "labels"] for a in done)
        annotations = [sorted(_span(r.get("value")) for r in result) for result in results]
        if not annotations or any(other != annotations[0] for other in annotations):
            raise DataError(f"expected one annotation of the text, got {len(annotations)}; keep the one to train on")
        spans = annotations[0]
    else:
        values = next((item[key] for key in _SPAN_KEYS if isinstance(item.get(key), list)), None)
        if values is None:
            raise DataError(
                'expected "words" and "labels", or "text" and "spans" ("entities", "label"), got neither; rename them'
            )
        spans = [_span(value) for value in values]
    if not isinstance(text, str):
        raise DataError('expected "text" as a string, got none; add it')
    if outside := [span for span in spans if not 0 <= span.start < span.end <= len(text)]:
        got = f"{outside[0].start} to {outside[0].end}"
        raise DataError(f"expected spans within the {len(text)} characters of the text, got {got}; correct it")
    return text, spans


def _span(value: Any) -> TextSpan:
    if isinstance(value, list) and len(value) == 3:
        value = dict(zip(("start", "end", "label"), value, strict=True))
    if not isinstance(value, dict):
        raise DataError(
            f"expected a span as start, end and label, got {json.dumps(value)[:40]}; use "
            '{"start": 0, "end": 5, "label": "PER"}'
        )
    label = next((value[name] for name in _NAMES if value.get(name)), None)
    if isinstance(label, list) and len(label) == 1:
        label = label[0]
    if not isinstance(label, str) or not label or label.split() != [label]:
        raise DataError(f"expected one label without spaces for a span, got {json.dumps(label)[:40]}; give it one")
    return TextSpan(_number(value, _STARTS), _number(value, _ENDS), label)


def _number(value: dict[str, Any], names: tuple[str, ...]) -> int:
    item = next((value[name] for name in names if name in value), None)
    if type(item) is not int:
        raise DataError(f"expected {names[0]} as a number of characters, got {json.dumps(item)[:20]}; use an integer")
    return item
