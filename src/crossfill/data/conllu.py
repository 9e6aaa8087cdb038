"""CoNLL-U: ten columns per line, read and written back without loss."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from crossfill.data.labels import LabelColumn
from crossfill.data.lines import Block, Lose, blocks, decode
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence

N_COLUMNS = 10
_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY_NODE = re.compile(r"(0|[1-9][0-9]{0,8})\.[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class ConlluSentence:
    """A sentence with the full content of its lines."""

    comments: tuple[str, ...]
    rows: list[list[str]]
    """The columns of every line: words, multiword tokens (`1-2`) and empty nodes (`8.1`), as UD defines them."""

    @property
    def words(self) -> list[list[str]]:
        """The lines of syntactic words, which are what UD annotates."""
        return [row for row in self.rows if row[0].isdigit()]

    @property
    def text(self) -> str:
        """The original text: surface tokens, with the spaces between them."""
        parts, end = [], 0
        for row in self.rows:
            first, dash, last = row[0].partition("-")
            if dash:
                end = int(last)
            elif "." in first or int(first) <= end:
                continue
            parts.append(row[1] + " " * _space_after(row))
        return "".join(parts).rstrip(" ")

    def sentence(self, label: LabelColumn) -> Sentence:
        """The syntactic words with their labels. There are no spaces within a multiword token."""
        words, labels, spaces = [], [], []
        end, space = 0, True
        for row in self.rows:
            number = row[0]
            if number.isdigit():
                words.append(row[1])
                labels.append(label(row))
                position = len(words)
                spaces.append(_space_after(row) if position > end else space if position == end else False)
            elif "-" in number:
                end, space = int(number.partition("-")[2]), _space_after(row)
        return Sentence(tuple(words), tuple(labels), () if all(spaces) else tuple(spaces))


def parse(data: bytes, where: str, lose: Lose | None = None) -> Iterator[ConlluSentence]:
    """The sentences of a CoNLL-U file; `where` names it in errors."""
    return parse_blocks(blocks(decode(data, where)), where, lose)


def parse_blocks(parts: Iterable[Block], where: str, lose: Lose | None = None) -> Iterator[ConlluSentence]:
    """The sentences in blocks of lines, parsed one at a time; a bad line is an error, or loses its sentence."""
    for start, lines in parts:
        n_comments = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        rows = [line.split("\t") for line in lines[n_comments:]]
        if bad := _bad_line(rows):
            number, problem = start + n_comments + bad[0], bad[1]
            if lose is None:
                raise DataError(f"{where}:{number}: {problem}")
            lose(number, problem)
        elif rows:
            yield ConlluSentence(tuple(lines[:n_comments]), rows)


def read(path: Path) -> list[ConlluSentence]:
    """The sentences of a CoNLL-U file."""
    return list(parse(path.read_bytes(), str(path)))


def render(sentences: Iterable[ConlluSentence]) -> str:
    """The text of a CoNLL-U file with these sentences."""
    return "".join(
        "\n".join([*sentence.comments, *("\t".join(row) for row in sentence.rows)]) + "\n\n" for sentence in sentences
    )


def with_feature(column: str, key: str, value: str) -> str:
    """FEATS with another value of a feature, in the order that UD asks for; `_` removes it."""
    kept = [pair for pair in column.split("|") if pair not in ("", "_") and pair.partition("=")[0] != key]
    kept += [f"{key}={value}"] * (value != "_")
    return "|".join(sorted(kept, key=lambda pair: pair.partition("=")[0].lower())) or "_"


def _space_after(row: list[str]) -> bool:
    misc = row[9]
    return misc == "_" or "SpaceAfter=No" not in misc.split("|")


def _bad_line(rows: list[list[str]]) -> tuple[int, str] | None:
    """The first bad line of a sentence, counted from 0, and what is wrong with it."""
    expected, covered = 1, 0
    for i, row in enumerate(rows):
        if len(row) == N_COLUMNS and row[0] == str(expected) and row[1]:
            expected += 1
        elif problem := _problem(row, expected, covered):
            return i, problem
        elif "-" in row[0]:
            covered = int(row[0].partition("-")[2])
    missing = max(covered, 1)
    if rows and missing >= expected:
        return len(rows) - 1, (
            f"expected word number {missing} before the sentence ends, got {expected - 1} words; restore the missing "
            "lines"
        )
    return None


def _problem(row: list[str], expected: int, covered: int) -> str | None:
    """What is wrong with a line that is not word number `expected`; none for multiword tokens and empty nodes."""
    found = len(row)
    if found != N_COLUMNS:
        if row[0].startswith("#"):
            return "expected comments before the words of a sentence, got one among them; move it up"
        if found == 1 and len(row[0].split()) == N_COLUMNS:
            return "expected columns separated by tabs, got spaces; replace the spaces"
        hint = "is this a BIO file? rename it to .bio" if found < N_COLUMNS else "remove the surplus tabs"
        return f"expected {N_COLUMNS} columns, got {found}; {hint}"
    if not row[1]:
        return "expected a form in column 2, got nothing; write _ for none"
    if span := _RANGE.fullmatch(row[0]):
        if int(span[1]) == expected and int(span[2]) > expected > covered:
            return None
        return (
            f"expected a multiword token of two or more words from {expected} on, got {row[0]}; number it by its words"
        )
    if _EMPTY_NODE.fullmatch(row[0]):
        return None
    return f"expected word number {expected}, got '{row[0][:20]}'; number the words from 1 in each sentence"
