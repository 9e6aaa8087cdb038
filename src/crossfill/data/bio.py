"""Token columns, the format of most NER corpora: a word and its tag in each line, a blank line after each sentence.

The word is in the first column and its tag in the last, unless a header line or a file `columns.txt` says otherwise.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from crossfill.data.labels import UPOS, is_ner, split_tag
from crossfill.data.reading import MOST_WORDS, NO_HINTS, OnBadLine, ReadingHints, blocks, decode
from crossfill.errors import DataError
from crossfill.grid.sentence import Column, Sentence, on_one_line

Row = list[str]
_MARK = "\ufeff"
_PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")
_SENTENCE_NAMES = frozenset({"sentence", "sentence_id", "sent_id", "sent"})
_WORD_NAMES = frozenset({"token", "tokens", "word", "words", "form", "text"})
_TAG_NAMES = ("tag", "tags", "label", "labels")
_NER_NAMES = ("ner", "ner_tag", "ner_tags", "ner_label", "ne", "iob", "iob2", "bio", "entity")
_POS_NAMES = ("pos", "upos", "pos_tag", "pos_tags", "upos_tags")
_EMPTY = frozenset({"_", "-", "*", "-X-"})
_INTEGER = re.compile(r"[0-9]{1,6}")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)?(?:[eE][-+]?[0-9]+)?")
_SAMPLE = 5000  # rows by which columns are checked


@dataclass(frozen=True)
class TokenRows:
    """The rows of a file, by sentence."""

    sentences: list[tuple[int, list[Row]]]
    """The number of a sentence's first line, and the columns of each of its lines; none for `-DOCSTART-`."""
    tabs: bool
    """Whether tabs separate the columns, so that words may contain spaces."""

    @classmethod
    def of(cls, lines: Iterable[str]) -> "TokenRows":
        """Split lines into columns; what most lines have between their columns separates all of them."""
        parts = list(blocks(lines))
        n_tabs = sum("\t" in line for _, part in parts for line in part)
        tabs = 2 * n_tabs > sum(len(part) for _, part in parts)
        return cls([(start, [_row(line, tabs) for line in part]) for start, part in parts], tabs)

    def sample(self) -> Iterator[tuple[int, Row]]:
        """Yield rows and their line numbers, without bad ones and what may be comments before sentences."""
        for start, rows in self.sentences:
            first = next((i for i, row in enumerate(rows) if row and not row[0].startswith("#")), len(rows))
            yield from ((start + i, row) for i, row in enumerate(rows) if i >= first and len(row) > 1)


@dataclass(frozen=True)
class Columns:
    """Which column holds the words and which their tags, counted from 0."""

    word: int = 0
    tag: int = -1
    width: int = 2
    """Columns in every row, or with `exact` false, in every row at least."""
    exact: bool = True
    tabs: bool = True
    header: bool = False
    tags: frozenset[str] = frozenset()
    """Tags of the sample: a line before a sentence that begins with # and has none of them is a comment."""
    names: tuple[str, ...] = ()
    """Names of tags that are numbers."""
    how: str = ""
    """What a person should check; empty if there are two columns and no header."""

    def is_comment(self, row: Row) -> bool:
        """Tell whether a line that begins with #, before the first word of a sentence, is a comment or a header."""
        if self.word or _is_header(row) or not self.fits(row):
            return True
        return row[self.tag] not in self.tags and not (self.tabs and " " not in row[0])

    def fits(self, row: Row) -> bool:
        """Tell whether a row has as many columns as it should have."""
        return len(row) == self.width or (len(row) > self.width and not self.exact)


def choose_columns(table: TokenRows, task: str = "", hints: ReadingHints = NO_HINTS, where: str = "") -> Columns:
    """Find the columns of words and tags; an error if they cannot be what a header, or their place, says."""
    sample = list(islice(table.sample(), _SAMPLE))
    if not sample:
        return Columns(tabs=table.tabs)
    place, header = f"{where}:{sample[0][0]}", sample[0][1] if _is_header(sample[0][1], task) else None
    rows = [row for _, row in sample[1 if header else 0 :]]
    if not rows:
        return Columns(tabs=table.tabs, header=True)
    width = Counter(map(len, rows)).most_common(1)[0][0]
    rows = [row for row in rows if len(row) == width]
    columns, notes = Columns(0, width - 1, width, tabs=table.tabs, header=header is not None), []
    if hints.word:
        last = max(hints.word, hints.tag)
        columns = replace(columns, word=hints.word - 1, tag=hints.tag - 1, width=last, exact=False)
        if last > width:
            raise DataError(
                f"{place}: expected {last} columns or more, as columns.txt names column {last}, got {width}; correct "
                "columns.txt"
            )
    elif header and len(header) == width:
        columns = replace(columns, **_named(header, task, len(table.sentences), place))
    words, tags = ([row[column] for row in rows] for column in (columns.word, columns.tag))
    if all(map(_INTEGER.fullmatch, set(tags))):
        columns = replace(columns, names=hints.labels)
        if not hints.labels:
            shown = ", ".join(sorted(set(tags), key=lambda number: (len(number), number))[:4])
            raise DataError(
                f"{place}: expected names of tags in column {columns.tag + 1}, got numbers ({shown}); write the names "
                "in the order of their numbers, one a line, into labels.txt next to it; or name the columns in "
                "columns.txt, as word=1 tag=2"
            )
    if not hints.word and (problem := _wrong_columns(words, tags, columns, task)):
        shown = " | ".join(cell[:20] for cell in rows[0][:10])
        raise DataError(
            f"{place}: {problem} ({shown}); words were read from column {columns.word + 1} of {width}, tags from "
            f"{columns.tag + 1}: name others in a file columns.txt next to it, as word=1 tag=2"
        )
    if hints.word or width > 2:
        notes.append(f"word in column {columns.word + 1}, tag in column {columns.tag + 1} of {width}")
    if hints.word:
        notes.append("as columns.txt says")
    if header:
        notes.append(f"first line is a header ({', '.join(header)[:60]})")
    if columns.names:
        notes.append("tags are numbers, named by the list of labels")
    return replace(columns, tags=frozenset(tags), how="; ".join(notes))


def wrong_tags(tags: Sequence[str], words: Sequence[str], task: str) -> str:
    """Say what these are if they plainly are no tags of a task; empty if they may be."""
    distinct, n_words = set(tags), len(set(words))
    if distinct <= _EMPTY:
        return "nothing"
    if all(map(_NUMBER.fullmatch, distinct)):
        return "numbers"
    if all(tag in ("O", "o") or split_tag(tag.upper()) for tag in distinct):
        return "tags of spans" if task == "pos" else ""
    if all(tag.upper() in UPOS or tag == "_" for tag in distinct):
        return "parts of speech" if is_ner(task) else ""
    # lemmas have about as many different values as words have
    return "what looks like words" if len(distinct) > max(9, min(n_words - 1, max(50, n_words // 2))) else ""


def parse(data: bytes, where: str) -> Iterator[Sentence]:
    """Parse a file of token columns, separated by tabs or spaces; `where` names it in errors.

    `-DOCSTART-` lines and comments before a sentence are left out. A prefix `wo:` of every word, as in WikiANN, is
    kept here; `without_prefix` removes it.
    """
    table = TokenRows.of(decode(data, where))
    return tagged_sentences(table, choose_columns(table, where=where), where)


def tagged_sentences(
    table: TokenRows, columns: Columns, where: str, on_bad_line: OnBadLine | None = None
) -> Iterator[Sentence]:
    """Yield the words and tags in these columns; a bad line is an error, or costs its sentence."""
    word, tag, names, headed = columns.word, columns.tag, columns.names, columns.header
    for start, rows in table.sentences:
        words, tags, problem, bad = [], [], "", start
        if len(rows) > MOST_WORDS:
            problem = f"expected at most {MOST_WORDS:,} words in a sentence, got {len(rows):,}; put in blank lines"
        for number, row in enumerate(rows, start=start) if not problem else ():
            if not row or (not words and row[0].startswith("#") and columns.is_comment(row)):
                continue
            if headed:
                headed = False
            elif problem := _problem(row, columns):
                bad = number
                break
            else:
                words.append(row[word])
                tags.append(row[tag])
        if problem and on_bad_line is None:
            raise DataError(f"{where}:{bad}: {problem}")
        if problem and on_bad_line is not None:
            on_bad_line(bad, problem)
        elif words and words[0] != "-DOCSTART-":
            yield Sentence(tuple(words), tuple(names[int(label)] for label in tags) if names else tuple(tags))


def read(path: Path) -> list[Sentence]:
    """Read a file of token columns."""
    return list(parse(path.read_bytes(), str(path)))


def render(sentences: Iterable[Sentence]) -> str:
    """Write sentences as word, tab, tag."""
    text = "".join(
        "".join(f"{on_one_line(word)}\t{tag}\n" for word, tag in zip(sentence.words, sentence.labels, strict=True))
        + "\n"
        for sentence in sentences
    )
    return f"{_MARK}{text}" if text.startswith(_MARK) else text  # readers take the first for the file's, not the word's


def without_prefix(words: Column) -> tuple[Column, str]:
    """Remove the language prefix of every word (`wo:Dakar`), and return it; empty if there is none."""
    first = _PREFIX.match(words.vocabulary[0]) if words.vocabulary else None
    if not first or not all(word.startswith(first[0]) for word in words.vocabulary):
        return words, ""
    cut = len(first[0])
    return words.map(lambda word: word[cut:] or word), first[0]


def _row(line: str, tabs: bool) -> Row:
    return [] if line.startswith("-DOCSTART-") else split_columns(line, tabs)


def split_columns(line: str, tabs: bool) -> Row:
    """Split a line into its columns, separated by tabs or by spaces."""
    stripped = line.rstrip(" \t")
    if tabs:
        return [column.strip(" ") for column in stripped.split("\t")]
    return [column for column in stripped.replace("\t", " ").split(" ") if column]


def _is_header(row: Row, task: str = "") -> bool:
    names = {name.lower().strip("# ") for name in row}
    known = {*_TAG_NAMES, *_NER_NAMES, *_POS_NAMES, task.lower()} - _WORD_NAMES
    return not names.isdisjoint(_WORD_NAMES) and not names.isdisjoint(known)


def _named(header: Row, task: str, n_sentences: int, place: str) -> dict[str, int]:
    """Find the columns that a header names: of words, and of the tags of the task if one is named."""
    names = [name.lower().strip("# ") for name in header]
    if n_sentences == 1 and (numbered := next((name for name in names if name in _SENTENCE_NAMES), None)):
        raise DataError(
            f"{place}: expected a blank line after each sentence, got a column '{numbered}' that tells them apart; put "
            "a blank line wherever it changes"
        )
    usual = _NER_NAMES if is_ner(task) else _POS_NAMES if task == "pos" else ()
    word = next(i for i, name in enumerate(names) if name in _WORD_NAMES)
    tag = next((names.index(name) for name in (task.lower(), *usual, *_TAG_NAMES) if name in names), None)
    return {"word": word} if tag is None else {"word": word, "tag": tag}


def _wrong_columns(words: Sequence[str], tags: Sequence[str], columns: Columns, task: str) -> str:
    """Say why these plainly are no words or no tags of a task."""
    if columns.width > 2 and all(word.isdigit() for word in words):  # which usually count the words
        hint = "; is this CoNLL-U? rename it to .conllu" if columns.width == 10 else ""
        return f"expected words in column {columns.word + 1}, got numbers{hint}"
    problem = "" if columns.names else wrong_tags(tags, words, task)
    return problem and f"expected the tags of {task or 'words'} in column {columns.tag + 1}, got {problem}"


def _problem(row: Row, columns: Columns) -> str:
    n, names = len(row), columns.names
    if columns.fits(row) and row[columns.word] and row[columns.tag]:
        tag = row[columns.tag]
        if not names or (tag.isascii() and tag.isdigit() and int(tag[:9]) < len(names)):
            return ""
        return f"expected a number from 0 to {len(names) - 1}, got '{tag[:20]}'; complete the list of labels"
    if n < 2:
        return "expected a word and a tag, got one column; separate them by a tab, and sentences by a blank line"
    if not columns.fits(row):
        hint = "write _ for an empty one" if n < columns.width else "are there spaces in a word? separate by tabs"
        return f"expected {columns.width} columns, as in other lines, got {n}; {hint}"
    if not row[columns.word]:
        return "expected a word before the tag, got nothing; remove the line or write the word"
    return "expected a tag after the word, got nothing; write the tag"
