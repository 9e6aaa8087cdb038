"""Token columns, the format of most NER corpora: a word and its tag in each line, a blank line after each sentence.

The word is in the first column and its tag in the last, unless a header line or a file `columns.txt` says otherwise.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from crossfill.data.labels import UPOS, is_ner, split_tag
from crossfill.data.reading import MOST_WORDS, NO_HINTS, OnBadLine, ReadingHints, blocks
from crossfill.errors import DataError
from crossfill.grid.sentence import Column, Sentence, on_one_line

Row = list[str]
_MARK = "\ufeff"
_PREFIX = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*:")
_WORD_NAMES = frozenset({"token", "tokens", "word", "words", "form", "text"})
_TAG_NAMES = ("tag", "tags", "label", "labels")
_NER_NAMES = ("ner", "ner_tag", "ner_tags", "ner_label", "ne", "iob", "iob2", "bio", "entity")
_POS_NAMES = ("pos", "upos", "pos_tag", "pos_tags", "upos_tags")
_EMPTY = frozenset({"_", "-", "*", "-X-"})
_INTEGER = re.compile(r"[0-9]{1,6}")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)?(?:[eE][-+]?[0-9]+)?")


@dataclass
class TokenTable:
    """The rows of a file, by sentence, and which columns hold words and tags, counted from 0."""

    where: str
    rows: list[tuple[int, list[Row]]]
    """The number of a sentence's first line, and the columns of each of its lines; none for `-DOCSTART-`."""
    tabs: bool
    """Whether tabs separate the columns, so that words may contain spaces."""
    word: int = 0
    tag: int = -1
    width: int = 2
    """Columns in every row, or with `exact` false, in every row at least."""
    exact: bool = True
    header: bool = False
    tags: Collection[str] = ()
    """All tags: a line before a sentence that begins with # and has none of them is a comment."""
    names: tuple[str, ...] = ()
    """Names of tags that are numbers."""
    how: str = ""
    """What a person should check; empty if there are two columns and no header."""

    @classmethod
    def of(cls, lines: Iterable[str], where: str, task: str = "", hints: ReadingHints = NO_HINTS) -> "TokenTable":
        """Split lines into columns; what most lines have between their columns separates all of them."""
        parts = list(blocks(lines))
        n_tabs = sum("\t" in line for _, part in parts for line in part)
        tabs = 2 * n_tabs > sum(len(part) for _, part in parts)
        rows = [
            (start, [[] if line.startswith("-DOCSTART-") else split_columns(line, tabs) for line in part])
            for start, part in parts
        ]
        table = cls(where, rows, tabs)
        table._choose_columns(task, hints)
        return table

    def _choose_columns(self, task: str, hints: ReadingHints) -> None:
        """Find the columns of words and tags; an error if they cannot be what a header, or their place, says."""
        sample = list(self._sample())
        if not sample:
            return
        place, first = f"{self.where}:{sample[0][0]}", sample[0][1]
        self.header = _is_header(first, task)
        rows = [row for _, row in sample[self.header :]]
        if not rows:
            return
        width = Counter(map(len, rows)).most_common(1)[0][0]
        rows = [row for row in rows if len(row) == width]
        self.tag, self.width = width - 1, width
        if hints.word:
            self.word, self.tag = hints.word - 1, hints.tag - 1
            self.width, self.exact = max(hints.word, hints.tag), False
            if self.width > width:
                raise DataError(f"{place}: expected {self.width} columns or more, got {width}; correct columns.txt")
        elif self.header and len(first) == width:
            self._follow_header(first, task)
        words, tags = [row[self.word] for row in rows], [row[self.tag] for row in rows if row[self.tag]]
        self.tags = set(tags)
        numbers = bool(tags) and all(map(_INTEGER.fullmatch, self.tags))
        self.names = hints.labels if numbers else ()
        problem = ""
        if width > 2 and all(word.isdigit() for word in words):  # which usually count the words
            hint = "; is this CoNLL-U? rename it to .conllu" if width == 10 else ""
            problem = f"expected words in column {self.word + 1}, got numbers{hint}"
        elif not self.names and (wrong := wrong_tags(tags, words, task)):
            problem = f"expected the tags of {task or 'words'} in column {self.tag + 1}, got {wrong}"
            problem += "; write their names in the order of their numbers into labels.txt next to it" if numbers else ""
        if problem and (not hints.word or (numbers and not self.names)):
            shown = " | ".join(cell[:20] for cell in rows[0][:10])
            raise DataError(
                f"{place}: {problem} ({shown}); words were read from column {self.word + 1} of {width}, tags from "
                f"{self.tag + 1}: name others in a file columns.txt next to it, as word=1 tag=2"
            )
        notes = {
            f"word in column {self.word + 1}, tag in column {self.tag + 1} of {width}": hints.word or width > 2,
            "as columns.txt says": hints.word,
            f"first line is a header ({', '.join(first)[:60]})": self.header,
            "tags are numbers, named by the list of labels": self.names,
        }
        self.how = "; ".join(note for note, holds in notes.items() if holds)

    def _sample(self) -> Iterator[tuple[int, Row]]:
        """Yield rows and their line numbers, without bad ones and what may be comments before sentences."""
        for start, rows in self.rows:
            first = next((i for i, row in enumerate(rows) if row and not row[0].startswith("#")), len(rows))
            yield from ((start + i, row) for i, row in enumerate(rows) if i >= first and len(row) > 1)

    def _follow_header(self, header: Row, task: str) -> None:
        """Take the columns that a header names: of words, and of the tags of the task if one is named."""
        names = [name.lower().strip("# ") for name in header]
        usual = _NER_NAMES if is_ner(task) else _POS_NAMES if task == "pos" else ()
        self.word = next(i for i, name in enumerate(names) if name in _WORD_NAMES)
        tag = next((names.index(name) for name in (task.lower(), *usual, *_TAG_NAMES) if name in names), None)
        self.tag = self.tag if tag is None else tag

    def sentences(self, on_bad_line: OnBadLine | None = None) -> Iterator[Sentence]:
        """Yield the words and tags in these columns; a bad line is an error, or costs its sentence."""
        headed = self.header
        for start, rows in self.rows:
            words, tags, lines, problem, bad = [], [], [], "", start
            if len(rows) > MOST_WORDS:
                problem = f"expected at most {MOST_WORDS:,} words in a sentence, got {len(rows):,}; put in blank lines"
            for number, row in enumerate(rows, start=start) if not problem else ():
                if not row or (not words and row[0].startswith("#") and self._is_comment(row)):
                    continue
                if headed:
                    headed = False
                elif problem := self._problem(row):
                    bad = number
                    break
                else:
                    words.append(row[self.word])
                    tags.append(row[self.tag])
                    lines.append(number)
            if problem and on_bad_line is None:
                raise DataError(f"{self.where}:{bad}: {problem}")
            if problem and on_bad_line is not None:
                on_bad_line(bad, problem)
            elif words and words[0] != "-DOCSTART-":
                labels = [self.names[int(tag)] if tag else tag for tag in tags] if self.names else tags
                yield Sentence(tuple(words), tuple(labels), lines=tuple(lines))

    def _is_comment(self, row: Row) -> bool:
        """Tell whether a line that begins with #, before the first word of a sentence, is a comment or a header."""
        if self.word or _is_header(row) or not self._fits(row):
            return True
        return row[self.tag] not in self.tags and not (self.tabs and " " not in row[0])

    def _fits(self, row: Row) -> bool:
        return len(row) == self.width or (len(row) > self.width and not self.exact)

    def _problem(self, row: Row) -> str:
        if len(row) < 2:
            return "expected a word and a tag, got one column; separate them by a tab, and sentences by a blank line"
        if not self._fits(row):
            few = len(row) < self.width
            hint = "write _ for an empty one" if few else "are there spaces in a word? separate by tabs"
            return f"expected {self.width} columns, as in other lines, got {len(row)}; {hint}"
        tag = row[self.tag]
        if not row[self.word]:
            return "expected a word before the tag, got nothing; remove the line or write the word"
        if tag and self.names and not (tag.isascii() and tag.isdigit() and int(tag[:9]) < len(self.names)):
            return f"expected a number from 0 to {len(self.names) - 1}, got '{tag[:20]}'; complete the list of labels"
        return ""


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


def split_columns(line: str, tabs: bool) -> Row:
    """Split a line into its columns, separated by tabs or by spaces; a word and a tab have an empty tag."""
    stripped = line.rstrip(" \t")
    if tabs:
        columns = [column.strip(" ") for column in stripped.split("\t")]
        return [*columns, ""] if len(columns) == 1 and "\t" in line else columns
    return [column for column in stripped.replace("\t", " ").split(" ") if column]


def _is_header(row: Row, task: str = "") -> bool:
    names = {name.lower().strip("# ") for name in row}
    known = {*_TAG_NAMES, *_NER_NAMES, *_POS_NAMES, task.lower()} - _WORD_NAMES
    return not names.isdisjoint(_WORD_NAMES) and not names.isdisjoint(known)
