"""Text to be tagged, sentence by sentence as it is read: plain text, CoNLL-U, token columns or JSON lines."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Literal, cast, get_args

from crossfill.data.bio import split_columns
from crossfill.data.conllu import ConlluSentence, parse_blocks
from crossfill.data.json_corpora import json_object, word_offsets
from crossfill.data.labels import LabelColumn, split_tag
from crossfill.data.reading import MOST_WORDS, Block, blocks, stream
from crossfill.data.segmentation import split_at_spaces, split_text, split_words
from crossfill.data.table_corpora import PAIR_NAMES, find_columns
from crossfill.errors import DataError, unknown
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Unit

Format = Literal["text", "conllu", "bio", "jsonl"]
Cutting = Literal["raw", "layout", "lines", "words"]
"""Form of plain text: `raw` paragraphs; `layout`, with an item without words for each blank line among them; `lines`, a
sentence per line; `words`, with spaces between words."""
_READ_KEYS = ("words", "tokens", "text", "spaces", "offsets")
_SPACES = re.compile(r"\s*")
_SUFFIXES: dict[str, Format] = {
    **dict.fromkeys((".txt", ""), "text"),
    **dict.fromkeys((".conllu", ".conll-u"), "conllu"),
    **dict.fromkeys((".bio", ".iob", ".iob2", ".tsv", ".conll"), "bio"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
}


@dataclass(frozen=True, slots=True)
class Item:
    """A sentence to be tagged, and the rest of its source."""

    sentence: Sentence
    conllu: ConlluSentence | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    """Other fields of its JSON object: the input's; for text, line and sentence number, and the text at sentence 0."""
    before: str = ""
    """What stands before its first word in its line: white space."""
    after: str = "\n"
    """What stands after its last word up to the end of its line; empty if another sentence follows in the line."""


def format_of(path: Path | None, named: str | None) -> Format:
    """Return the named format, else the one of the file's suffix, else plain text."""
    if named is None:
        return _SUFFIXES.get(path.suffix.lower(), "text") if path else "text"
    if named not in get_args(Format):
        raise DataError(unknown("format", named, get_args(Format)))
    return cast("Format", named)


def input_form(path: Path | None, named: str | None, unit: Unit) -> tuple[Format, Cutting]:
    """Return the format of a text and how it is cut; `named` may also be `lines` or `words`."""
    cutting: Cutting = "words" if named == "words" else "lines" if named == "lines" or unit is not Unit.WORD else "raw"
    return ("text" if named in ("lines", "words") else format_of(path, named)), cutting


def read_items(
    file: BufferedIOBase,
    where: str,
    form: Format,
    language: str,
    cutting: Cutting = "raw",
    unit: Unit = Unit.WORD,
    first: int = 1,
) -> Iterator[Item]:
    """Yield the sentences of an open file; `where` names it in errors, raw text is split by the rules of `language`.

    If the `unit` is a pair, text has its two sentences on a line with a tab between, and JSON has them as `premise` and
    `hypothesis`. `first` is the number of the first line, if what is read is a part of a file.
    """
    if unit is Unit.PAIR and form not in ("text", "jsonl"):
        raise DataError(f"{where}: expected pairs as text (premise<TAB>hypothesis) or jsonl, got {form}")
    if form in ("conllu", "bio"):
        parts = blocks(stream(file, where, first=first), 3 * MOST_WORDS, where, first)
        items = _conllu(parts, where) if form == "conllu" else _columns(parts, where)
    else:
        items = _lines(file, where, form, language, cutting, unit, first)
    for item in items:
        yield check_length(item, where)


def check_length(item: Item, where: str) -> Item:
    """Refuse a sentence of more than `MOST_WORDS` words."""
    if len(item.sentence) > MOST_WORDS:
        raise DataError(
            f"{where}: expected at most {MOST_WORDS:,} words in a sentence, got {len(item.sentence):,} from "
            f"'{' '.join(item.sentence.words[:5])} …' on; is a sentence break missing?"
        )
    return item


def _lines(
    file: BufferedIOBase, where: str, form: Format, language: str, cutting: Cutting, unit: Unit, first: int
) -> Iterator[Item]:
    """Yield what is on each line: text, a pair, or an object of JSON."""
    for number, line in enumerate(stream(file, where, keep_ends=True, first=first), start=first):
        text = line.removesuffix("\n").removesuffix("\r")
        if form == "text" and unit is not Unit.PAIR:
            if cutting != "raw" or text.strip():
                yield from _cut(text, language, cutting, {"line": number}, line[len(text) :])
            continue
        if not text.strip():
            continue
        try:
            fields = json_object(text) if form == "jsonl" else {}
            if unit is Unit.PAIR:
                yield _pair(text, fields, number, language, cutting)
            else:
                yield from row_items(fields, language, cutting)
        except DataError as error:
            raise DataError(f"{where}:{number}: {error}") from None


def _cut(text: str, language: str, cutting: Cutting, fields: dict[str, Any], end: str) -> Iterator[Item]:
    """Yield the sentences of a text, at least one, with the white space around them; `end` stands after the text."""
    item, place = Item(Sentence(()), None, {**fields, "text": text, "sentence": 0}), 0
    sentences = (sentence for sentence in _sentences(text, language, cutting) if sentence)
    for number, sentence in enumerate(sentences):
        gap = text[place : sentence.starts[0]]
        line_end = gap.rfind("\n") + 1
        if number:
            yield replace(item, after=gap[:line_end])
            gap = gap[line_end:]
        rest = {**fields, "sentence": number} if number else item.fields  # the text is long: once is enough
        item = Item(sentence, None, rest, before=gap)
        place = sentence.offsets[-1][1]
    yield replace(item, after=text[place:] + end)


def _sentences(text: str, language: str, cutting: Cutting) -> Iterator[Sentence]:
    if cutting in ("raw", "layout"):
        yield from split_text(text, language)
        return
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        yield split_words(text, language, start, end) if cutting == "lines" else split_at_spaces(text, start, end)
        start = end + 1


def _conllu(parts: Iterable[Block], where: str) -> Iterator[Item]:
    label = LabelColumn("pos")  # any column will do: the labels are not used
    for parsed in parse_blocks(parts, where):
        sentence = parsed.sentence(label)
        yield Item(Sentence(sentence.words, (), sentence.spaces), conllu=parsed)


def _columns(parts: Iterable[Block], where: str) -> Iterator[Item]:
    """Yield the first column of each line; tags, if there are any, are not read."""
    for start, lines in parts:
        if start == 1:
            _refuse_table(lines, where)
        words = []
        for number, line in enumerate(lines, start=start):
            columns = split_columns(line, "\t" in line.rstrip(" \t"))
            tagged = len(columns) == 2 or columns[-1] == "O" or split_tag(columns[-1]) is not None
            if line.startswith("-DOCSTART-") or (not words and line.startswith("# ") and not tagged):  # a comment
                continue
            if not columns[0]:
                raise DataError(f"{where}:{number}: expected a word in the first column, got nothing; write the word")
            words.append(columns[0])
        if words:
            yield Item(Sentence(tuple(words)))


def _refuse_table(lines: Sequence[str], where: str) -> None:
    """Refuse a table that has a header and a sentence or a pair in every row: its texts are no words."""
    header, *rows = (line.split("\t") for line in lines[:2])
    columns = find_columns(header, task="")
    place = header.index(columns.texts[0]) if columns else 0
    if columns and rows and any(mark.isspace() for mark in "".join(rows[0][place : place + 1]).strip()):
        unit = Unit.PAIR if len(columns.texts) == 2 else Unit.SENTENCE
        raise DataError(
            f"{where}:1: expected a word a line, got a table of {unit}s ({', '.join(header)[:80]}); write its "
            f"{' and '.join(columns.texts)} to a text file, a {unit} a line, and tag that with --lines"
        )


def row_items(item: dict[str, Any], language: str, cutting: Cutting = "raw") -> Iterator[Item]:
    """Yield the sentences of a JSON object or of a table's row: of its `words` (or `tokens`), else of its `text`."""
    words, text = item.get("words", item.get("tokens")), item.get("text")
    rest = {key: value for key, value in item.items() if key not in _READ_KEYS}
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        sentence = _given(tuple(words), item)
        yield Item(sentence, fields=rest | ({"text": sentence.source} if sentence.source else {}))
    elif words is None and isinstance(text, str):
        yield from _cut(text, language, cutting, rest, "\n")
    else:
        raise DataError('expected "words" as a list of strings, or "text" as a string')


def _given(words: tuple[str, ...], item: dict[str, Any]) -> Sentence:
    """Make the sentence of a JSON object's words, placed in its `text` by `offsets`, or by the words themselves."""
    spaces, text, starts = item.get("spaces", []), item.get("text"), None
    if not (isinstance(spaces, list) and all(isinstance(space, bool) for space in spaces)):
        raise DataError("expected spaces as a list of true and false")
    if isinstance(text, str):
        offsets = word_offsets(item, len(words))
        starts = _places(words, text) if offsets is None else tuple(start for start, _ in offsets)
    if not isinstance(text, str) or starts is None:
        return Sentence(words, (), tuple(spaces))
    placed = Sentence(words, (), tuple(spaces), text, starts)
    return placed if spaces else Sentence.cut(text, placed.offsets)


def _pair(line: str, fields: dict[str, Any], number: int, language: str, cutting: Cutting) -> Item:
    """Make a pair of two texts with a tab between, or of the fields of a JSON object."""
    names = next((both for both in PAIR_NAMES if {*both} <= fields.keys()), ())
    texts = [fields[name] for name in names] if fields else line.split("\t")
    if len(texts) != 2 or not all(isinstance(text, str) and text.strip() for text in texts):
        wanted = '"premise" and "hypothesis"' if fields else "premise<TAB>hypothesis"
        raise DataError(f"expected two sentences, {wanted}; got {line[:60]}")
    first, second = (next(_sentences(text, language, cutting)) for text in texts)
    rest = {name: value for name, value in fields.items() if name not in names}
    return Item(Sentence.pair(first, second), fields=rest or {"line": number})


def _places(words: Iterable[str], text: str) -> tuple[int, ...] | None:
    """Find words in a text that has nothing else but white space; none if it has more, or other words."""
    starts, end = [], 0
    for word in words:
        space = _SPACES.match(text, end)
        start = space.end() if space else end
        if not text.startswith(word, start):
            return None
        end = start + len(word)
        starts.append(start)
    return tuple(starts) if not text[end:].strip() else None
