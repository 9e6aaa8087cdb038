"""Text to be tagged, sentence by sentence as it is read: plain text, CoNLL-U, token columns or JSON lines."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Literal, get_args

from crossfill.data.bio import is_skipped, split_columns
from crossfill.data.conllu import ConlluSentence, parse_blocks
from crossfill.data.labels import LabelColumn
from crossfill.data.lines import blocks, stream
from crossfill.data.segmentation import split_text, split_words
from crossfill.errors import DataError, unknown
from crossfill.grid.sentence import Sentence

Format = Literal["text", "conllu", "bio", "jsonl"]
Cutting = Literal["raw", "lines", "words"]
"""Form of plain text: `raw` paragraphs; `lines`, a sentence per line; `words`, with spaces between words."""
MOST_WORDS = 5000
"""Most words in a sentence; with more, a sentence break is probably missing."""
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
    """The other keys of a JSON object."""


def format_of(path: Path | None, named: str | None) -> Format:
    """The named format, else the one of the file's suffix, else plain text."""
    if named is not None:
        if named not in get_args(Format):
            raise DataError(unknown("format", named, get_args(Format)))
        return next(known for known in get_args(Format) if known == named)
    return _SUFFIXES.get(path.suffix.lower(), "text") if path else "text"


def read_items(
    file: BufferedIOBase, where: str, form: Format, language: str, cutting: Cutting = "raw"
) -> Iterator[Item]:
    """The sentences of an open file; `where` names it in errors, raw text is split by the rules of `language`."""
    readers: dict[Format, Callable[[], Iterator[Item]]] = {
        "text": lambda: _text(file, where, language, cutting),
        "conllu": lambda: _conllu(file, where),
        "bio": lambda: _columns(file, where),
        "jsonl": lambda: _json_lines(file, where, language),
    }
    for item in readers[form]():
        if len(item.sentence) > MOST_WORDS:
            raise DataError(
                f"{where}: expected at most {MOST_WORDS:,} words in a sentence, got {len(item.sentence):,} from "
                f"'{' '.join(item.sentence.words[:5])} …' on; is a sentence break missing?"
            )
        yield item


def _text(file: BufferedIOBase, where: str, language: str, cutting: Cutting) -> Iterator[Item]:
    for line in stream(file, where):
        match cutting:
            case "raw":
                yield from map(Item, split_text(line, language))
            case "lines":
                yield Item(split_words(line, language))
            case "words":
                yield Item(Sentence(tuple(line.split())))


def _conllu(file: BufferedIOBase, where: str) -> Iterator[Item]:
    label = LabelColumn("pos")  # any column will do: the labels are not used
    for found in parse_blocks(blocks(stream(file, where), 3 * MOST_WORDS, where), where):
        sentence = found.sentence(label)
        yield Item(Sentence(sentence.words, (), sentence.spaces), conllu=found)


def _columns(file: BufferedIOBase, where: str) -> Iterator[Item]:
    """The first column of each line; tags, if there are any, are not read."""
    for start, lines in blocks(stream(file, where), 3 * MOST_WORDS, where):
        words = []
        for number, line in enumerate(lines, start=start):
            columns = split_columns(line)
            if is_skipped(line, columns, first=not words):
                continue
            word = columns[0]
            if not word:
                raise DataError(f"{where}:{number}: expected a word in the first column, got nothing; write the word")
            words.append(word)
        if words:
            yield Item(Sentence(tuple(words)))


def _json_lines(file: BufferedIOBase, where: str, language: str) -> Iterator[Item]:
    for number, line in enumerate(stream(file, where), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}:{number}: expected a JSON object on every line; {error}") from None
        if not isinstance(found, dict):
            raise DataError(f"{where}:{number}: expected a JSON object, got {type(found).__name__}")
        words = found.get("words", found.get("tokens"))
        rest = {key: value for key, value in found.items() if key not in ("words", "tokens", "text", "spaces")}
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            spaces = found.get("spaces", ())
            if spaces and not (isinstance(spaces, list) and all(isinstance(space, bool) for space in spaces)):
                raise DataError(f"{where}:{number}: expected spaces as a list of true and false")
            try:
                yield Item(Sentence(tuple(words), (), tuple(spaces)), fields=rest)
            except DataError as error:
                raise DataError(f"{where}:{number}: {error}") from None
        elif words is None and isinstance(found.get("text"), str):
            yield Item(split_words(found["text"], language), fields=rest)
        else:
            raise DataError(f'{where}:{number}: expected "words" as a list of strings, or "text" as a string')
