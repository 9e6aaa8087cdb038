"""Text to be tagged, sentence by sentence as it is read: plain text, CoNLL-U, token columns or JSON lines."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Literal, cast, get_args

from crossfill.data.bio import split_columns
from crossfill.data.conllu import ConlluSentence, parse_blocks
from crossfill.data.eaf import EafText
from crossfill.data.flextext import FlexText
from crossfill.data.labels import LabelColumn, split_tag
from crossfill.data.reading import MOST_WORDS, Block, blocks, stream
from crossfill.data.records import PAIR_NAMES, json_object, word_offsets
from crossfill.data.segmentation import LONGEST_WINDOW, Segmenter, split_at_spaces
from crossfill.errors import DataError, unknown
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Unit

Format = Literal["text", "conllu", "bio", "jsonl", "eaf", "flextext"]
Cutting = Literal["raw", "layout", "texts", "lines", "words"]
"""Form of plain text: `raw` paragraphs; `layout`, with an item without words for each blank line among them; `texts`, a
text per line; `lines`, a sentence per line; `words`, the same with spaces between words."""
_READ_KEYS = ("words", "tokens", "text", "spaces", "offsets", "surfaces")
_SUFFIXES: dict[str, Format] = {
    **dict.fromkeys((".txt", ""), "text"),
    **dict.fromkeys((".conllu", ".conll-u"), "conllu"),
    **dict.fromkeys((".bio", ".iob", ".iob2", ".tsv", ".conll"), "bio"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    ".eaf": "eaf",
    ".flextext": "flextext",
}
FIELD_TEXTS = {"eaf": EafText, "flextext": FlexText}
"""Formats of files that are read as a whole, and tagged in place."""


@dataclass(frozen=True, slots=True)
class Item:
    """A sentence to be tagged, and the rest of its source."""

    sentence: Sentence
    conllu: ConlluSentence | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    """Other fields of its JSON object: the input's; what was cut from text has its own `text` and its place."""
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


def output_form(out: Path | None, named: str | None, source: Format, formats: Collection[str]) -> Format:
    """Return the named format, else the one that the ending of the file to write means, else that of the input."""
    ending = out.suffix.lower() if out is not None else ""
    if named is None and ending and _SUFFIXES.get(ending) not in formats:
        endings = ", ".join(suffix for suffix, form in _SUFFIXES.items() if suffix and form in formats)
        raise DataError(f"{out}: expected a file that ends in {endings}, got {ending}; or name its --format")
    if named is None and not ending:
        return source
    return format_of(out, named)


def input_form(path: Path | None, named: str | None, unit: Unit) -> tuple[Format, Cutting]:
    """Return the format of a text and how it is cut; `named` may also be `texts`, `lines` or `words`."""
    if named in ("texts", "lines", "words"):
        return "text", "lines" if named == "texts" and unit is not Unit.WORD else cast("Cutting", named)
    return format_of(path, named), "lines" if unit is not Unit.WORD else "raw"


def read_items(
    file: BufferedIOBase,
    where: str,
    form: Format,
    segmenter: Segmenter,
    cutting: Cutting = "raw",
    unit: Unit = Unit.WORD,
    first: int = 1,
) -> Iterator[Item]:
    """Yield the sentences of an open file; `where` names it in errors, raw text is split by `segmenter`.

    If the `unit` is a pair, text has its two sentences on a line with a tab between, and JSON has them as `premise` and
    `hypothesis`. `first` is the number of the first line, if what is read is a part of a file.
    """
    if unit is Unit.PAIR and form not in ("text", "jsonl"):
        raise DataError(f"{where}: expected pairs as text (premise<TAB>hypothesis) or jsonl, got {form}")
    if form in FIELD_TEXTS:
        items = field_items(FIELD_TEXTS[form](file.read(), where, segmenter.language))
    elif form in ("conllu", "bio"):
        parts = blocks(stream(file, where, first=first), 3 * MOST_WORDS, where, first)
        items = _conllu(parts, where) if form == "conllu" else _columns(parts, where)
    else:
        items = _lines(file, where, form, segmenter, cutting, unit, first)
    for item in items:
        yield check_length(item, where)


def field_items(text: EafText | FlexText) -> Iterator[Item]:
    """Yield the sentences of a file of ELAN or FLEx."""
    for one in text.sentences:
        yield check_length(Item(one.sentence, fields=one.fields), text.where)


def check_length(item: Item, where: str) -> Item:
    """Refuse a sentence of more than `MOST_WORDS` words."""
    if len(item.sentence) > MOST_WORDS:
        raise DataError(
            f"{where}: expected at most {MOST_WORDS:,} words in a sentence, got {len(item.sentence):,} from "
            f"'{' '.join(item.sentence.words[:5])} …' on; is a sentence break missing?"
        )
    return item


def _lines(
    file: BufferedIOBase, where: str, form: Format, segmenter: Segmenter, cutting: Cutting, unit: Unit, first: int
) -> Iterator[Item]:
    """Yield what is on each line, a pair or an object of JSON, or in each paragraph or line of text."""
    lines = enumerate(stream(file, where, keep_ends=True, first=first), start=first)
    if form == "text" and unit is not Unit.PAIR:
        for number, paragraph in _paragraphs(lines) if cutting in ("raw", "layout") else lines:
            text = paragraph.removesuffix("\n").removesuffix("\r")
            if cutting not in ("raw", "texts") or text.strip():
                yield from _cut(text, segmenter, cutting, {"line": number}, paragraph[len(text) :])
        return
    for number, line in lines:
        text = line.removesuffix("\n").removesuffix("\r")
        if not text.strip():
            continue
        try:
            fields = json_object(text) if form == "jsonl" else {}
            if unit is Unit.PAIR:
                yield _pair(text, fields, number, segmenter, cutting)
            else:
                yield from row_items(fields, segmenter, cutting)
        except DataError as error:
            raise DataError(f"{where}:{number}: {error}") from None


def _paragraphs(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Join lines up to a blank one, or to many characters; with the number of the first. Blank lines stay alone."""
    first, paragraph, length = 0, list[str](), 0
    for number, line in lines:
        blank = line.isspace()
        if paragraph and (blank or length > LONGEST_WINDOW):
            yield first, "".join(paragraph)
            paragraph, length = [], 0
        if blank:
            yield number, line
            continue
        first = number if not paragraph else first
        paragraph.append(line)
        length += len(line)
    if paragraph:
        yield first, "".join(paragraph)


def _cut(text: str, segmenter: Segmenter, cutting: Cutting, fields: dict[str, Any], end: str) -> Iterator[Item]:
    """Yield the sentences of a text, at least one, each with its own text; `end` stands after the text."""
    item, place = Item(Sentence(()), None, {**fields, "text": text, "sentence": 0}), 0
    sentences = (sentence for sentence in _sentences(text, segmenter, cutting) if sentence)
    for number, sentence in enumerate(sentences):
        (first, _), *_, (_, last) = sentence.offsets * 2
        gap = text[place:first]
        line_end = gap.rfind("\n") + 1
        if number:
            yield replace(item, after=gap[:line_end])
            gap = gap[line_end:]
        moved = replace(sentence, source=text[first:last], starts=tuple(start - first for start in sentence.starts))
        rest = {**fields, "text": moved.source, "sentence": number, "start": first}
        if "line" in fields:
            rest |= {
                "line": fields["line"] + text.count("\n", 0, first),
                "start": first - text.rfind("\n", 0, first) - 1,
            }
        item = Item(moved, None, rest, before=gap)
        place = last
    yield replace(item, after=text[place:] + end)


def _sentences(text: str, segmenter: Segmenter, cutting: Cutting) -> Iterator[Sentence]:
    if cutting not in ("lines", "words"):
        yield from segmenter.split_text(text)
        return
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        yield segmenter.split_words(text, start, end) if cutting == "lines" else split_at_spaces(text, start, end)
        start = end + 1


def _conllu(parts: Iterable[Block], where: str) -> Iterator[Item]:
    label = LabelColumn("pos")  # any column will do: the labels are not used
    for parsed in parse_blocks(parts, where):
        sentence = parsed.sentence(label)
        yield Item(Sentence(sentence.words, (), sentence.spaces), conllu=parsed)


def _columns(parts: Iterable[Block], where: str) -> Iterator[Item]:
    """Yield the first column of each line; tags, if there are any, are not read."""
    for start, lines in parts:
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


def row_items(item: dict[str, Any], segmenter: Segmenter, cutting: Cutting = "raw") -> Iterator[Item]:
    """Yield the sentences of a JSON object or of a table's row: of its `words` (or `tokens`), else of its `text`."""
    words, text = item.get("words", item.get("tokens")), item.get("text")
    rest = {key: value for key, value in item.items() if key not in _READ_KEYS}
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        sentence = _given(tuple(words), item)
        yield Item(sentence, fields=rest | ({"text": sentence.source} if sentence.source else {}))
    elif words is None and isinstance(text, str):
        yield from _cut(text, segmenter, cutting, rest, "\n")
    else:
        raise DataError('expected "words" as a list of strings, or "text" as a string')


def _given(words: tuple[str, ...], item: dict[str, Any]) -> Sentence:
    """Make the sentence of a JSON object's words, with its `spaces`, placed in its `text` if it has `offsets`."""
    spaces, offsets, text = item.get("spaces", []), word_offsets(item, len(words)), item.get("text")
    if not (isinstance(spaces, list) and all(isinstance(space, bool) for space in spaces)):
        raise DataError("expected spaces as a list of true and false")
    surfaces = item.get("surfaces", [])
    if not (
        isinstance(surfaces, list) and all(isinstance(surface, str) for surface in surfaces) and surfaces[:1] != [""]
    ):
        raise DataError("expected surfaces as a list of strings, of which the first is not empty")
    if offsets is None or not isinstance(text, str):
        return Sentence(words, (), tuple(spaces), surfaces=tuple(surfaces))
    starts = tuple(start for start, _ in offsets)
    placed = Sentence(words, (), tuple(spaces), text, starts, tuple(surfaces))
    return placed if spaces else Sentence.cut(text, placed.offsets)


def _pair(line: str, fields: dict[str, Any], number: int, segmenter: Segmenter, cutting: Cutting) -> Item:
    """Make a pair of two texts with a tab between, or of the fields of a JSON object."""
    names = next((both for both in PAIR_NAMES if {*both} <= fields.keys()), ())
    texts = [fields[name] for name in names] if fields else line.split("\t")
    if len(texts) != 2 or not all(isinstance(text, str) and text.strip() for text in texts):
        wanted = '"premise" and "hypothesis"' if fields else "premise<TAB>hypothesis"
        raise DataError(f"expected two sentences, {wanted}; got {line[:60]}")
    first, second = (next(_sentences(text, segmenter, cutting)) for text in texts)
    rest = {name: value for name, value in fields.items() if name not in names}
    return Item(Sentence.pair(first, second), fields=rest or {"line": number})
