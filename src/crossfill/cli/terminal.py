"""Tables and text for a terminal."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
_VISIBLE = _PICTURES | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
for _kept in "\t\n":
    del _VISIBLE[ord(_kept)]


def visible(text: str) -> str:
    r"""Replace control characters but tab and newline by Unicode's pictures of them, so that none moves the cursor.

    >>> visible("a\x1b[2Jb")
    'a␛[2Jb'
    """
    return text.translate(_VISIBLE)


def print_table(console: "Console", table: "Table") -> None:
    """Print a table in the plain style of all commands; Rich folds columns where the terminal is too narrow."""
    from rich.box import SIMPLE_HEAD

    title, caption = table.title, table.caption
    table.title = table.caption = None  # printed apart, as they may be wider than the table
    table.box, table.show_edge, table.pad_edge, table.padding = SIMPLE_HEAD, False, False, (0, 1, 0, 0)
    for column in table.columns:
        column.overflow = "fold"
    if title:
        console.print(title, style="bold", markup=False)
    console.print(table)
    console.print()
    if caption:
        console.print(caption, style="dim", markup=False)
        console.print()
