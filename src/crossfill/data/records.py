"""Records of corpora, names with values: a line of JSON, a row of a table, a row of a Hugging Face dataset.

A record is words with labels (`words` or `tokens`; `labels`, `tags` or `<task>_tags`), a sentence or a pair with one
label (`text`, `label`; `premise`, `hypothesis`, `label`), or text with spans of characters as annotation tools export
it: Prodigy (`text`, `spans`, `tokens`, `answer`), Doccano (`text`, `label` or `entities`), Label Studio (`data`,
`annotations`; or its short form, `text` and `label`).
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from crossfill.data.reading import FileNotes, ReadingHints, check_printable, decode
from crossfill.data.segmentation import Segmenter, TextSpan, cut_with_spans, sentences_with_spans, spans_of
from crossfill.errors import DataError
from crossfill.grid.sentence import UNLABELLED, Corpus, Sentence
from crossfill.grid.task import Unit

TEXT_NAMES = ("text", "sentence", "utterance", "utt", "review", "tweet", "question", "content")
PAIR_NAMES = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("text1", "text2"), ("question1", "question2"))
LABEL_NAMES = ("label", "category", "class", "topic", "intent", "sentiment", "gold_label", "labels")
NAMED_LABELS = ("label_text", "label_name", "label_names")
"""Columns with the names of labels that are numbers, next to a column of numbers."""
WORD_NAMES = ("tokens", "words", "token", "word", "form")
_SPAN_KEYS = ("spans", "entities", "label", "labels")
_STARTS, _ENDS = ("start", "start_offset"), ("end", "end_offset")
_NAMES = ("label", "labels", "tag", "type")


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


def item_columns(names: Iterable[str], task: str, hints: ReadingHints) -> ItemColumns | None:
    """Return the columns of sentences or pairs that `columns.txt` names, else those that their names tell."""
    return ItemColumns(hints.texts, hints.label) if hints.texts else find_columns(names, task)


def tag_names(task: str) -> tuple[str, ...]:
    """List the names that the labels of words may have in a record."""
    return f"{task}_tags", task, f"{task}_labels", *(("upos", "upos_tags") if task == "pos" else ()), "tags", "labels"


def parse_json(data: bytes, where: str, task: str, hints: ReadingHints, notes: FileNotes) -> Iterator[Sentence]:
    """Yield the sentences of a file."""
    lines = decode(data, where)
    if data.lstrip()[:1] == b"[":
        try:
            lines = list(map(json.dumps, json.loads("\n".join(lines))))
        except ValueError as error:
            raise DataError(f"{where}: expected a list of JSON objects, got invalid JSON: {error}; fix it") from None
    return read_records(((n, line) for n, line in enumerate(lines, start=1) if line.strip()), task, hints, notes)


def render_json(corpus: Corpus, task: str, labels: Collection[str] = ()) -> bytes:  # noqa: ARG001
    """Write a JSON object on every line: words, labels, text, offsets, and spans if the task has any."""
    lines = []
    for sentence in corpus:
        values: dict[str, Any] = dict(as_row(sentence))
        if sentence.unit is Unit.WORD:
            values = {"text": sentence.text, "words": sentence.words, "offsets": sentence.offsets}
            values["labels"] = [label or None for label in sentence.labels]
            if spans := spans_of(sentence.labels, sentence.offsets):
                values["spans"] = [span._asdict() for span in spans]
        lines.append(json.dumps(values | {"task": task}, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


def read_records(
    records: Iterable[tuple[int, Any]], task: str, hints: ReadingHints, notes: FileNotes
) -> Iterator[Sentence]:
    """Yield the sentences of numbered records, which may still be lines of JSON; a bad record is left out."""
    for number, record in records:
        split: list[str] = []
        try:
            read = _sentences(json_object(record), task, hints, split)
            sentences = [replace(check_printable(s), lines=(number,) * len(s)) for s in read]
        except DataError as error:
            notes(number, str(error))
            continue
        except (TypeError, AttributeError) as error:  # a field of another type than any tool writes
            notes(number, f"expected a record as annotation tools write it; {error}")
            continue
        yield from sentences
        if split:
            notes.split.append((number, ", ".join(split)[:80]))


def _sentences(record: dict[str, Any], task: str, hints: ReadingHints, split: list[str]) -> Iterable[Sentence]:
    """Read the sentences of a record, and add the words that are split to a list.

    Text is cut into words by the rules of its language. A word in which a span begins or ends is split there. Words
    that the file gives are never split.
    """
    if record.get("answer", "accept") != "accept":  # Prodigy keeps what was rejected or ignored
        return []
    words: Any = next((record[name] for name in WORD_NAMES if isinstance(record.get(name), list)), None)
    lists = (record[name] for name in tag_names(task) if isinstance(record.get(name), list))
    labels = next((tags for tags in lists if all(isinstance(tag, str | int | None) for tag in tags)), None)
    if labels is not None and words is not None and all(isinstance(word, str) for word in words):
        offsets = word_offsets(record, len(words)) or []
        spaces = record.get("spaces") or [*(after[0] > before[1] for before, after in pairwise(offsets)), True]
        return [read_words(words, labels, spaces, hints.labels)]
    # Doccano writes one label as a list of one string
    single = {
        name: value[0] if isinstance(value, list) and len(value) == 1 else value for name, value in record.items()
    }
    single = {name: value for name, value in single.items() if isinstance(value, str | int | None)}
    if columns := item_columns(single, task, hints):
        if missing := {*columns.texts, columns.label} - record.keys():
            raise DataError(f"expected a column '{min(missing)[:40]}', as columns.txt says; correct columns.txt")
        texts = [record[name] for name in columns.texts]
        return [read_item(texts, single.get(columns.label), hints.labels, hints.language)]
    text, spans = _annotated(record)
    if not words:
        return sentences_with_spans(text, spans, hints.language, split)
    places = (_bounds(token) for token in words if isinstance(token, dict))
    bounds = [(start, end) for start, end in places if start is not None and end is not None]
    if len(bounds) != len(words):
        raise DataError('expected labels for "tokens", or tokens with their start and end in "text"; add them')
    return [cut_with_spans(text, bounds, spans)]


def read_item(texts: Sequence[Any], label: Any, names: Sequence[str], language: str) -> Sentence:
    """Make a sentence, or a pair, with its label; `names` are those of labels that are numbers, or all labels."""
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise DataError("expected text, or two sentences of a pair, got nothing")
    name = read_label(label, names)
    first, *second = (Segmenter(language).split_words(text) for text in texts)
    if second:
        return Sentence.pair(first, second[0], name)
    return Sentence(first.words, (name,), first.spaces, unit=Unit.SENTENCE)


def read_label(value: Any, names: Sequence[str]) -> str:
    """Return a label; a number is the place of its name, from 0, where there are names."""
    text = str(value).strip()
    if not text or isinstance(value, bool | None) or set(text) & set("\t\n"):
        raise DataError(f"expected one label, got {repr(text[:40]) if text else 'nothing'}")
    if not names or text in names:
        return text
    if not (text.isdecimal() and int(text) < len(names)):
        numbers = f"0 to {len(names) - 1}"
        raise DataError(f"expected one of the labels {', '.join(names)[:80]}, or {numbers}; got '{text[:40]}'")
    return names[int(text)]


def read_words(words: Any, tags: Any, spaces: Any, names: Sequence[str]) -> Sentence:
    """Make a sentence of lists of words and tags; `names` are those of tags that are numbers."""
    if not (isinstance(words, list) and isinstance(tags, list) and len(words) == len(tags)):
        raise DataError("expected a list of words and a list of as many labels, got others; complete them")
    labels = []
    for tag in tags:
        if type(tag) is int and not 0 <= tag < len(names):
            raise DataError(f"expected tags with names, got number {tag} of {len(names)}; list the names in labels.txt")
        labels.append(names[tag] if type(tag) is int else tag or UNLABELLED)
    known = isinstance(spaces, list) and len(spaces) == len(words) and None not in spaces and not all(spaces)
    return check_printable(Sentence(tuple(words), tuple(labels), tuple(spaces) if known else ()))


def as_row(sentence: Sentence) -> Mapping[str, str]:
    """Return an item as it is written: text and label, or premise, hypothesis and label."""
    texts = [part.text for part in sentence.sentences]
    names = PAIR_NAMES[0] if sentence.unit is Unit.PAIR else TEXT_NAMES[:1]
    return {**dict(zip(names, texts, strict=True)), **dict(zip(LABEL_NAMES, sentence.labels, strict=False))}


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
        raise DataError("expected offsets as a list of [start, end], one per word, in characters of the text")
    return offsets


def _annotated(record: dict[str, Any]) -> tuple[str, list[TextSpan]]:
    """Read the text of an object and its spans."""
    text = record.get("text", record.get("data"))
    if isinstance(record.get("annotations"), list) and isinstance(record.get("data"), dict):  # Label Studio
        texts = [value for value in record["data"].values() if isinstance(value, str)]
        text = record["data"].get("text", texts[0] if len(texts) == 1 else None)
        done = [a for a in record["annotations"] if isinstance(a, dict) and not a.get("was_cancelled")]
        results = [a.get("result", []) for a in done]
        regions = ([r for r in result if r.get("type", "labels") == "labels"] for result in results)
        annotations = [sorted(_span(r.get("value")) for r in result) for result in regions]
        if not annotations or any(other != annotations[0] for other in annotations):
            raise DataError(f"expected one annotation of the text, got {len(annotations)}; keep the one to train on")
        spans = annotations[0]
    else:
        values = next((record[key] for key in _SPAN_KEYS if isinstance(record.get(key), list)), None)
        if values is None:
            raise DataError(
                'expected "words" and "labels", "text" and "label", "premise", "hypothesis" and "label", or "text" and '
                f'"spans"; got {", ".join(record)[:80] or "nothing"}; rename them, or name them in columns.txt'
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
    fields = value if isinstance(value, dict) else {}
    label = next((fields[name] for name in _NAMES if fields.get(name)), None)
    if isinstance(label, list) and len(label) == 1:
        label = label[0]
    start, end = _bounds(fields)
    if not isinstance(label, str) or label.split() != [label] or start is None or end is None:
        example = '{"start": 0, "end": 5, "label": "PER"}'
        raise DataError(f"expected a span as {example}, with one label without spaces; got {value!r:.80}")
    return TextSpan(start, end, label)


def _bounds(value: dict[str, Any]) -> list[int | None]:
    """Return the start and the end of a span or a word, in characters; none where it has none."""
    places = (next((value[name] for name in names if name in value), None) for names in (_STARTS, _ENDS))
    return [place if type(place) is int else None for place in places]
