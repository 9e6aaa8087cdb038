"""A table as terminal text, Markdown or HTML."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import NamedTuple

import rich.table
import yaml
from rich.text import Text


class Datum(NamedTuple):
    """One entry of a table."""

    text: str
    value: float | None = None
    """The value to sort by."""
    bold: bool = False
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """A table, independent of its output format."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Datum, ...], ...]
    caption: str = ""

    @classmethod
    def of(
        cls,
        name: str,
        columns: Iterable[str],
        rows: Iterable[Iterable[Datum | str]],
        notes: Iterable[str] = (),
        **values: str | None,
    ) -> "Table":
        """Make a table; its title, caption and notes have these values in them, texts in its rows become entries."""
        entries = tuple(tuple(Datum(entry) if isinstance(entry, str) else entry for entry in row) for row in rows)
        texts = _texts()[name]
        title, *caption = (texts[part].format(**values) for part in ("title", "caption", *notes))
        return cls(name, title, tuple(columns), entries, " ".join(caption))

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers."""
        columns = zip(*self.rows, strict=True) if self.rows else ((Datum("text"),) for _ in self.columns)
        return [all(datum.value is not None or datum.text in ("–", "") for datum in column) for column in columns]


@cache
def _texts() -> dict[str, dict[str, str]]:
    return yaml.safe_load(files("crossfill.report").joinpath("tables.yaml").read_text(encoding="utf-8"))


def method_label(method: str) -> str:
    """Return a method's name as shown to readers, initials in capitals: PF-lr, JM, JM-deep."""
    family, dash, kind = method.partition("-")
    return f"{family.upper()}{dash}{kind}" if len(family) <= 3 else method


def number(value: float, digits: int) -> Datum:
    """Return a number as an entry; a dash if it is NaN."""
    return Datum("–") if math.isnan(value) else Datum(f"{value:,.{digits}f}", float(value))


def percent(value: float) -> Datum:
    """Return a share as an entry in percent; a dash if it is NaN."""
    return number(100 * float(value), 1)


def points(difference: float) -> Datum:
    """Return a difference of shares as an entry in points, with its sign."""
    return Datum(true_minus(f"{100 * difference:+.1f}"), difference)


def true_minus(text: str) -> str:
    """Return the text with minus signs in place of hyphens."""
    return text.replace("-", "−")


def with_best_in_bold(data: Sequence[Datum]) -> list[Datum]:
    """Put the highest score of a row in bold, and those equal to it to the digit shown; none if none is lower."""
    values = [round(datum.value, 1) for datum in data if datum.value is not None]
    if len(set(values)) < 2:
        return list(data)
    return [d._replace(bold=d.value is not None and round(d.value, 1) == max(values) and not d.mark) for d in data]


def terminal(table: Table) -> rich.table.Table:
    """Return the table for a terminal."""
    laid_out = rich.table.Table(title=table.title, caption=table.caption)
    for name, right in zip(table.columns, table.numeric, strict=True):
        laid_out.add_column(name, justify="right" if right else "left")
    for row in table.rows:
        laid_out.add_row(*(Text(datum.text + datum.mark, "bold" if datum.bold else "") for datum in row))
    return laid_out


def markdown(table: Table) -> str:
    """Return the table in GitHub-flavoured Markdown."""

    def cell(datum: Datum) -> str:
        text = datum.text.replace("|", r"\|") + datum.mark
        return f"**{text}**" if datum.bold else text

    rule = ["---:" if right else "---" for right in table.numeric]
    head = [name.replace("|", r"\|") for name in table.columns]
    lines = [head, rule, *([cell(datum) for datum in row] for row in table.rows)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"### {table.title}\n\n{body}\n\n{table.caption}\n"


def html(table: Table) -> str:
    """Return the table in HTML, with sortable columns."""

    def cell(datum: Datum, right: bool) -> str:
        text = escape(datum.text) + (f"<sup>{escape(datum.mark)}</sup>" if datum.mark else "")
        value = "" if datum.value is None else f' data-value="{datum.value:.6g}"'
        return f"<td{' class=number' if right else ''}{value}>{f'<b>{text}</b>' if datum.bold else text}</td>"

    head = "".join(
        f'<th scope="col"{" class=number" if right else ""}><button type="button">{escape(name)}</button></th>'
        for name, right in zip(table.columns, table.numeric, strict=True)
    )
    rows = "\n".join(f"<tr>{''.join(map(cell, row, table.numeric))}</tr>" for row in table.rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}"><table id="{table.name}">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n"
        f"<p class=note>{escape(table.caption)}</p>"
    )
