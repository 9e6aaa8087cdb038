"""Token columns, the format of most NER corpora: the word first, its tag last, other columns ignored."""

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
    """Words and their tags, as they are written in the file."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


def parse(data: bytes, where: str) -> Iterator[TaggedSentence]:
    """The sentences of a file of token columns, separated by tabs or spaces; `where` names it in errors.

    `-DOCSTART-` lines and comments (`# …` before a sentence, not ending in a tag) are left out. A prefix `wo:` of
    every word, as in WikiANN, is kept here; `without_prefix` removes it.
    """
    for start, lines in blocks(decode(data, where)):
        words, tags = [], []
        for number, line in enumerate(lines, start=start):
            columns = split_columns(line)
            if is_skipped(line, columns, first=not words):
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
    """The sentences without the language prefix of every word (`wo:Dakar`), and the prefix; empty if there is none."""
    first = next((_PREFIX.match(word) for sentence in sentences for word in sentence.words), None)
    if not first or not all(word.startswith(first[0]) for sentence in sentences for word in sentence.words):
        return list(sentences), ""
    cut = len(first[0])
    stripped = [TaggedSentence(tuple(word[cut:] or word for word in s.words), s.tags) for s in sentences]
    return stripped, first[0]


def split_columns(line: str) -> list[str]:
    """The columns of a line, separated by tabs, or by spaces where there is no tab."""
    kept = line.rstrip(" \t")
    if "\t" in kept:  # words may contain spaces there
        return [column.strip(" ") for column in kept.split("\t")]
    return [column for column in kept.split(" ") if column]


def is_skipped(line: str, columns: Sequence[str], first: bool) -> bool:
    """Whether a line is no word: `-DOCSTART-`, or a comment (`# …`, not ending in a tag) before the first word."""
    comment = len(columns) != 2 and columns[-1] != "O" and split_tag(columns[-1]) is None
    return line.startswith("-DOCSTART-") or (first and comment and line.startswith("# "))


def _problem(columns: Sequence[str]) -> str | None:
    if len(columns) < 2:
        return "expected a word and a tag, got one column; separate them by a tab, and sentences by a blank line"
    if not columns[0]:
        return "expected a word before the tag, got nothing; remove the line or write the word"
    if len(columns) == 10 and columns[0].isdigit() and Counter(columns[2:])["_"]:
        return "expected a word and its tag, got ten columns after a number; is this CoNLL-U? rename it to .conllu"
    return None
