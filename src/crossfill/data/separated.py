"""Tables with a header whose columns are separated by tabs or commas, one row a line (TSV, CSV).

A cell in quotes may contain separators, line ends and quotes, each of the latter written twice. In files that are
separated by tabs, quotes are often just quotes: there they count only if all quotes of a file follow that rule.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Row = list[str]
_LONGEST = 200
"""Most lines that a cell in quotes goes over; with more, its quote is a quote."""


@dataclass(frozen=True)
class SeparatedTable:
    """A table with the number of the line on which each row begins."""

    header: Row
    first: int
    """The line of the header."""
    rows: list[tuple[int, Row]]
    blanks: int
    """Blank lines between rows."""

    @classmethod
    def of(cls, lines: Sequence[str], separator: str) -> "SeparatedTable":
        """The table in these lines, whose first that is not blank is the header."""
        plain = [(n, line.split(separator)) for n, line in enumerate(lines, start=1) if line.strip()]
        rows = plain
        if separator == "," or not _quotes_are_quotes(plain, lines):
            rows = [(number, row) for number, row, _ in _rows(lines, separator)]
        last = rows[-1][0] if rows else 0
        blanks = sum(not line.strip() for line in lines[:last])
        header = [name.strip() for name in rows[0][1]] if rows else []
        return cls(header, rows[0][0] if rows else 1, rows[1:], blanks)


def _quotes_are_quotes(rows: Sequence[tuple[int, Row]], lines: Sequence[str]) -> bool:
    """Whether quotes in a table that is separated by tabs are part of the text."""
    if not any('"' in line for line in lines):
        return True
    if len({len(row) for _, row in rows}) == 1:  # no cell holds a tab or a line end: each line is a row
        found = (_cells(lines[number - 1], "\t") for number, _ in rows)
        return any(cells is None or cells[1] for cells in found)
    return any(strays for _, _, strays in _rows(lines, "\t"))


def render(rows: Iterable[Mapping[str, str]], separator: str) -> bytes:
    """A table of these rows, all of which have the same columns, under a header."""
    out, kept = io.StringIO(), list(rows)
    if kept:
        writer = csv.DictWriter(out, list(kept[0]), delimiter=separator, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
    return out.getvalue().encode()


def _rows(lines: Sequence[str], separator: str) -> Iterator[tuple[int, Row, int]]:
    """The line on which each row begins, its cells, and the quotes in it that follow no rule."""
    place = 0
    while place < len(lines):
        if not lines[place].strip():
            place += 1
            continue
        text, n = lines[place], 1
        while (found := _cells(text, separator)) is None and n < _LONGEST and place + n < len(lines):
            text, n = f"{text}\n{lines[place + n]}", n + 1
        if found is None:
            yield place + 1, lines[place].split(separator), 1
            place += 1
        else:
            yield place + 1, *found
            place += n


def _cells(text: str, separator: str) -> tuple[Row, int] | None:
    """The cells of a row, and the quotes that follow no rule; none if a cell in quotes does not end."""
    cells, strays, place = [], 0, 0
    quoted = re.compile(rf'"((?:[^"]|"")*)"(?={separator}|\Z)')
    while True:
        if found := quoted.match(text, place):
            cells.append(found[1].replace('""', '"'))
            end = found.end()
        else:
            if text.startswith('"', place) and text.count('"', place) % 2:
                return None
            end = text.find(separator, place)
            end = len(text) if end < 0 else end
            cells.append(text[place:end])
            strays += '"' in cells[-1]
        if end >= len(text):
            return cells, strays
        place = end + 1
