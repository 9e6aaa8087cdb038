"""Token columns: a word, whatever else, and its tag last, as NER corpora come."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crossfill.data.labels import split_tag
from crossfill.data.lines import blocks, decode
from crossfill.errors import DataError

_PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """Words and their tags, as they stand in the file."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


def parse(data: bytes, where: str) -> Iterator[TaggedSentence]:
    """The sentences of a file of token columns, separated by tabs or spaces; `where` names it in errors.

    `-DOCSTART-` lines and comments (`# …` before a sentence, not ending in a tag) are left out. A `wo:` before every
    word, as WikiANN has it, is kept here; `without_prefix` takes it off.
    """
    for start, lines in blocks(decode(data, where)):
        words, tags = [], []
        for number, line in enumerate(lines, start=start):
            kept = line.rstrip(" \t")
            tabbed = "\t" in kept  # words may hold spaces there
            columns = [column.strip(" ") for column in kept.split("\t")] if tabbed else kept.split(" ")
            columns = columns if tabbed else [column for column in columns if column]
            if line.startswith("-DOCSTART-") or (line.startswith("# ") and not words and _is_comment(columns)):
                continue
            if problem := _problem(columns):
                raise DataError(f"{where}:{number}: {problem}")
            words.append(columns[0])
            tags.append(columns[-1])
        if words:
            yield TaggedSentence(tuple(words), tuple(tags))


def read(path: Path) -> list[TaggedSentence]:
    """The sentences of a file of token columns."""
    return list(parse(path.read_bytes(), str(path)))


def render(sentences: Iterable[TaggedSentence]) -> str:
    """The text of a file with these sentences: word, tab, tag."""
    return "".join(
        "".join(f"{word}\t{tag}\n" for word, tag in zip(sentence.words, sentence.tags, strict=True)) + "\n"
        for sentence in sentences
    )


def without_prefix(sentences: Sequence[TaggedSentence]) -> tuple[list[TaggedSentence], str]:
    """The sentences without the language prefix that stands before every word (`wo:Dakar`), and the prefix, if any."""
    first = next((_PREFIX.match(word) for sentence in sentences for word in sentence.words), None)
    if not first or not all(word.startswith(first[0]) for sentence in sentences for word in sentence.words):
        return list(sentences), ""
    cut = len(first[0])
    stripped = [TaggedSentence(tuple(word[cut:] or word for word in s.words), s.tags) for s in sentences]
    return stripped, first[0]


def _is_comment(columns: Sequence[str]) -> bool:
    return len(columns) != 2 and columns[-1] != "O" and split_tag(columns[-1]) is None


def _problem(columns: Sequence[str]) -> str | None:
    if len(columns) < 2:
        return "expected a word and a tag, got one column; separate them by a tab, and sentences by a blank line"
    if not columns[0]:
        return "expected a word before the tag, got nothing; remove the line or write the word"
    if len(columns) == 10 and columns[0].isdigit() and Counter(columns[2:])["_"]:
        return "expected a word and its tag, got ten columns after a number; is this CoNLL-U? rename it to .conllu"
    return None
