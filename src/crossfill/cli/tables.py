"""Tables for a terminal of any width: columns that do not fit are printed below, after the first columns again."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

_GAP = 2
"""Spaces between columns."""
_ENOUGH = 24
"""Least width of a column of words before the table is split; longer entries are wrapped."""
_ANY_WIDTH = 10_000


def print_table(console: Console, table: Table, keys: int = 1) -> None:
    """Print a table, in parts that each begin with the first `keys` columns where the terminal is too narrow.

    Numbers (columns to the right) are never broken, words only where the terminal leaves no other way.
    """
    if table.title:
        console.print(table.title, style="bold", markup=False)
    for part in _parts(console, table, keys):
        console.print(part)
        console.print()
    if table.caption:
        console.print(table.caption, style="dim", markup=False)
        console.print()


def print_boxed(console: Console, table: Table) -> None:
    """Print a table in its box if the terminal has room for that, else as `print_table` does."""
    title, caption = table.title, table.caption
    table.title = table.caption = None  # they may be wrapped
    fits = console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum <= console.width
    table.title, table.caption = title, caption
    if fits:
        console.print(table)
    else:
        print_table(console, table)


def word_lines(words: Sequence[tuple[Text, ...]], width: int) -> Iterator[Table]:
    """The words of a sentence, each above what is said of it, in as many lines as the width asks for."""
    line: list[tuple[Text, ...]] = []
    for word in words:
        if line and sum(map(_word_width, (*line, word))) > width - 2 * _GAP:
            yield _word_line(line)
            line = []
        line.append(word)
    if line:
        yield _word_line(line)


def _word_line(words: Sequence[tuple[Text, ...]]) -> Table:
    table = Table.grid(padding=(0, _GAP, 0, 0))
    for row in zip(*words, strict=True):
        table.add_row("  ", *row)
    return table


def _word_width(word: tuple[Text, ...]) -> int:
    return max(text.cell_len for text in word) + _GAP


def _parts(console: Console, table: Table, keys: int) -> Iterator[Table]:
    """The columns in as few tables as the width allows."""
    needed = [
        min(_width(console, column), _ENOUGH) if _breaks(column) else _width(console, column)
        for column in table.columns
    ]
    chosen = list(range(keys))
    for number in range(keys, len(needed)):
        if len(chosen) > keys and _total([needed[i] for i in (*chosen, number)]) > console.width:
            yield _part(console, table, chosen)
            chosen = list(range(keys))
        chosen.append(number)
    yield _part(console, table, chosen)


def _part(console: Console, table: Table, chosen: Sequence[int]) -> Table:
    """A table of some columns: those of words share the room that numbers leave, the narrowest first."""
    widths = {i: _width(console, table.columns[i]) for i in chosen}
    room = console.width - _total([width for i, width in widths.items() if not _breaks(table.columns[i])])
    words = sorted((i for i in chosen if _breaks(table.columns[i])), key=lambda i: widths[i])
    for already, i in enumerate(words):
        widths[i] = max(1, min(widths[i], (room - _GAP * (len(words) - already)) // (len(words) - already)))
        room -= widths[i] + _GAP
    part = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for i in chosen:
        column = table.columns[i]
        part.add_column(column.header, justify=column.justify, overflow="fold", width=widths[i])
    for row in zip(*(table.columns[i].cells for i in chosen), strict=True):
        part.add_row(*row)
    return part


def _breaks(column: Column) -> bool:
    return column.justify != "right"


def _width(console: Console, column: Column) -> int:
    """The widest entry of a column, or the longest word of its heading."""
    anything = console.options.update(max_width=_ANY_WIDTH)
    entries = [console.measure(cell, options=anything).maximum for cell in column.cells]
    return max(1, console.measure(column.header, options=anything).minimum, *entries)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * max(0, len(widths) - 1)
