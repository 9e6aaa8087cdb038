"""Rows of named values as tables: HTML for notebooks, text for terminals, data frames for pandas."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

from crossfill.errors import ConfigError

Row = Mapping[str, Any]
"""Values by the names of their columns; all rows of a table have the same names in the same order."""


def data_frame(rows: Sequence[Row]) -> Any:
    """A data frame of pandas, which is not installed with crossfill."""
    try:
        pandas = import_module("pandas")
    except ModuleNotFoundError:
        raise ConfigError("expected pandas for data frames, found none; pip install pandas") from None
    return pandas.DataFrame([dict(row) for row in rows])


def html_table(rows: Sequence[Row]) -> str:
    """A table of HTML, as notebooks show data frames; numbers stand to the right."""
    if not rows:
        return "<p>nothing</p>"
    head = "".join(f"<th{_aligned(value)}>{escape(name)}</th>" for name, value in rows[0].items())
    body = "".join(
        "<tr>" + "".join(f"<td{_aligned(value)}>{escape(_shown(value))}</td>" for value in row.values()) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def text_table(rows: Sequence[Row]) -> str:
    """A table of text, a line for each row."""
    if not rows:
        return "nothing"
    cells = [list(rows[0]), *([_shown(value) for value in row.values()] for row in rows)]
    right = [bool(_aligned(value)) for value in rows[0].values()]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    )


def _aligned(value: Any) -> str:
    return ' style="text-align:right"' if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
