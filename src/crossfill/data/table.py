"""Files of token columns as tables: a row for each word, a blank line after each sentence."""

from collections.abc import Iterable
from dataclasses import dataclass

from crossfill.data.lines import blocks

Row = list[str]
_SAMPLE = 5000  # rows by which columns are recognised


@dataclass(frozen=True)
class Table:
    """The columns of a file's lines, by sentence."""

    sentences: list[tuple[int, list[Row]]]
    """The number of a sentence's first line, and the columns of each of its lines; none for `-DOCSTART-`."""
    tabs: bool
    """Whether tabs separate the columns, so that words may contain spaces."""

    @classmethod
    def of(cls, lines: Iterable[str]) -> "Table":
        """The table of a file's lines; what most of them have between their columns separates all of them."""
        found = list(blocks(lines))
        n_tabs = sum("\t" in line for _, part in found for line in part)
        tabs = 2 * n_tabs > sum(len(part) for _, part in found)
        return cls([(start, [_row(line, tabs) for line in part]) for start, part in found], tabs)

    def sample(self) -> list[tuple[int, list[Row]]]:
        """The first sentences, without what may be comments before them."""
        kept, size = [], 0
        for start, rows in self.sentences:
            first = next((i for i, row in enumerate(rows) if row and not row[0].startswith("#")), len(rows))
            if words := [row for row in rows[first:] if row]:
                kept.append((start + first, words))
                size += len(words)
            if size >= _SAMPLE:
                break
        return kept


def columns_of(line: str, tabs: bool) -> Row:
    """The columns of a line, separated by tabs, or else by spaces."""
    kept = line.rstrip(" \t")
    if tabs:
        return [column.strip(" ") for column in kept.split("\t")]
    return [column for column in kept.replace("\t", " ").split(" ") if column]


def _row(line: str, tabs: bool) -> Row:
    return [] if line.startswith("-DOCSTART-") else columns_of(line, tabs)
