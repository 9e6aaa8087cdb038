"""Token columns, the format of most NER corpora: a word and its tag in each line, other columns ignored."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crossfill.data.columns import Columns, recognise
from crossfill.data.labels import split_tag
from crossfill.data.lines import Lose, decode
from crossfill.data.table import Row, Table, columns_of
from crossfill.errors import DataError
from crossfill.grid.unicode import on_one_line

MOST_WORDS = 5000
"""Most words in a sentence; with more, blank lines are probably missing."""
_MARK = "\ufeff"
_PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """Words and their tags, as they are written in the file."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


def parse(data: bytes, where: str) -> Iterator[TaggedSentence]:
    """The sentences of a file of token columns, separated by tabs or spaces; `where` names it in errors.

    `-DOCSTART-` lines and comments before a sentence are left out. A prefix `wo:` of every word, as in WikiANN, is
    kept here; `without_prefix` removes it.
    """
    table = Table.of(decode(data, where))
    return sentences(table, recognise(table, where=where), where)


def sentences(table: Table, columns: Columns, where: str, lose: Lose | None = None) -> Iterator[TaggedSentence]:
    """The words and tags in these columns; a bad line is an error, or loses its sentence."""
    headed = columns.header
    for start, rows in table.sentences:
        words, tags, problem, bad = [], [], _too_long(rows), start
        for number, row in enumerate(rows, start=start) if not problem else ():
            if not row or (not words and row[0].startswith("#") and columns.is_comment(row)):
                continue
            if headed:
                headed = False
                continue
            if problem := _problem(row, columns):
                bad = number
                break
            words.append(row[columns.word])
            tags.append(row[columns.tag])
        if problem and lose is None:
            raise DataError(f"{where}:{bad}: {problem}")
        if problem and lose is not None:
            lose(bad, problem)
        elif words and words[0] != "-DOCSTART-":
            named = [columns.names[int(tag)] for tag in tags] if columns.names else tags
            yield TaggedSentence(tuple(words), tuple(named))


def read(path: Path) -> list[TaggedSentence]:
    """The sentences of a file of token columns."""
    return list(parse(path.read_bytes(), str(path)))


def render(sentences: Iterable[TaggedSentence]) -> str:
    """The text of a file with these sentences: word, tab, tag."""
    text = "".join(
        "".join(f"{on_one_line(word)}\t{tag}\n" for word, tag in zip(sentence.words, sentence.tags, strict=True)) + "\n"
        for sentence in sentences
    )
    return f"{_MARK}{text}" if text.startswith(_MARK) else text  # readers take the first for the file's, not the word's


def without_prefix(sentences: Sequence[TaggedSentence]) -> tuple[list[TaggedSentence], str]:
    """The sentences without the language prefix of every word (`wo:Dakar`), and the prefix; empty if there is none."""
    first = next((_PREFIX.match(word) for sentence in sentences for word in sentence.words), None)
    if not first or not all(word.startswith(first[0]) for sentence in sentences for word in sentence.words):
        return list(sentences), ""
    cut = len(first[0])
    stripped = [TaggedSentence(tuple(word[cut:] or word for word in s.words), s.tags) for s in sentences]
    return stripped, first[0]


def split_columns(line: str) -> Row:
    """The columns of a line, separated by tabs, or by spaces where there is no tab."""
    return columns_of(line, "\t" in line.rstrip(" \t"))


def is_skipped(line: str, columns: Sequence[str], first: bool) -> bool:
    """Whether a line is no word: `-DOCSTART-`, or a comment (`# …`, not ending in a tag) before the first word."""
    comment = len(columns) != 2 and columns[-1] != "O" and split_tag(columns[-1]) is None
    return line.startswith("-DOCSTART-") or (first and comment and line.startswith("# "))


def _too_long(rows: Sequence[Row]) -> str | None:
    if len(rows) <= MOST_WORDS:
        return None
    return (
        f"expected at most {MOST_WORDS:,} words in a sentence, got {len(rows):,}; put a blank line after each sentence"
    )


def _problem(row: Row, columns: Columns) -> str | None:
    n = len(row)
    if n < 2:
        return "expected a word and a tag, got one column; separate them by a tab, and sentences by a blank line"
    if n < columns.fewest or n > (columns.width or n):
        hint = "write _ for an empty one" if n < columns.fewest else "are there spaces in a word? separate by tabs"
        return f"expected {columns.fewest} columns, as in other lines, got {n}; {hint}"
    if not row[columns.word]:
        return "expected a word before the tag, got nothing; remove the line or write the word"
    if not row[columns.tag]:
        return "expected a tag after the word, got nothing; write the tag"
    tag, names = row[columns.tag], columns.names
    if names and not (tag.isascii() and tag.isdigit() and int(tag[:9]) < len(names)):
        return f"expected a number from 0 to {len(names) - 1}, got '{tag[:20]}'; complete the list of labels beside it"
    return None
