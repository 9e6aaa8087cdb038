"""A table as terminal text, Markdown, LaTeX (booktabs) or HTML."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import rich.table
from rich import box
from rich.text import Text

_LATEX = {
    **{character: rf"\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "–": "--",
    "†": r"$^\dagger$",
    "×": r"$\times$",
    "<": "$<$",
    ">": "$>$",
    "|": r"$|$",
    "σ": r"$\sigma$",
    "θ": r"$\theta$",
}


def method_label(method: str) -> str:
    """Return a method's name as shown to readers, initials in capitals: PF-lr, JM, JM-deep."""
    family, dash, kind = method.partition("-")
    return f"{family.upper()}{dash}{kind}" if len(family) <= 3 else method


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
        cls, name: str, title: str, columns: Iterable[str], rows: Iterable[Iterable[Datum | str]], caption: str
    ) -> "Table":
        """Make a table; texts in its rows become entries."""
        entries = tuple(tuple(Datum(entry) if isinstance(entry, str) else entry for entry in row) for row in rows)
        return cls(name, title, tuple(columns), entries, caption)


def number(value: float, digits: int) -> Datum:
    """Return a number as an entry; a dash if it is NaN."""
    return Datum("–") if math.isnan(value) else Datum(f"{value:,.{digits}f}", float(value))


def percent(value: float) -> Datum:
    """Return a share as an entry in percent; a dash if it is NaN."""
    return number(100 * float(value), 1)


def true_minus(text: str) -> str:
    """Return the text with minus signs in place of hyphens."""
    return text.replace("-", "−")


def terminal(table: Table) -> rich.table.Table:
    """Return the table for a terminal."""
    method_label = rich.table.Table(title=table.title, caption=table.caption, box=box.SIMPLE_HEAD, title_justify="left")
    method_label.caption_justify = "left"
    for name, right in zip(table.columns, numeric(table), strict=True):
        method_label.add_column(name, justify="right" if right else "left")
    for row in table.rows:
        method_label.add_row(*(Text(datum.text + datum.mark, "bold" if datum.bold else "") for datum in row))
    return method_label


def markdown(table: Table) -> str:
    """Return the table in GitHub-flavoured Markdown."""

    def cell(datum: Datum) -> str:
        text = datum.text.replace("|", r"\|") + datum.mark
        return f"**{text}**" if datum.bold else text

    rule = ["---:" if right else "---" for right in numeric(table)]
    head = [name.replace("|", r"\|") for name in table.columns]
    lines = [head, rule, *([cell(datum) for datum in row] for row in table.rows)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"### {table.title}\n\n{body}\n\n{table.caption}\n"


def latex(table: Table) -> str:
    """Return the table in LaTeX with booktabs, to be included in a document."""

    def cell(datum: Datum) -> str:
        text = tex(datum.text)
        return (rf"\textbf{{{text}}}" if datum.bold else text) + tex(datum.mark)

    alignment = "".join("r" if right else "l" for right in numeric(table))
    lines = [" & ".join(map(cell, row)) + r" \\" for row in table.rows]
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \begin{{tabular}}{{{alignment}}}",
            r"    \toprule",
            "    " + " & ".join(map(tex, table.columns)) + r" \\",
            r"    \midrule",
            *(f"    {line}" for line in lines),
            r"    \bottomrule",
            r"  \end{tabular}",
            rf"  \caption{{{tex(re.sub('^Table [0-9]+: ', '', table.title))}. {tex(table.caption)}}}",
            rf"  \label{{tab:{table.name}}}",
            r"\end{table}",
            "",
        ]
    )


def html(table: Table) -> str:
    """Return the table in HTML, with sortable columns."""

    def cell(datum: Datum, tag: str, right: bool) -> str:
        text = escape(datum.text) + (f"<sup>{escape(datum.mark)}</sup>" if datum.mark else "")
        value = "" if datum.value is None else f' data-value="{datum.value:.6g}"'
        return f"<{tag}{' class=number' * right}{value}>{f'<b>{text}</b>' if datum.bold else text}</{tag}>"

    right = numeric(table)
    head = "".join(
        f'<th scope="col"{" class=number" * is_right}><button type="button">{escape(name)}</button></th>'
        for name, is_right in zip(table.columns, right, strict=True)
    )
    rows = "\n".join(
        "<tr>" + "".join(cell(d, "td", r) for d, r in zip(row, right, strict=True)) + "</tr>" for row in table.rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}"><table id="{table.name}">'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n"
        f"<p class=note>{escape(table.caption)}</p>"
    )


def tex(text: str) -> str:
    """Escape LaTeX's special characters."""
    return "".join(_LATEX.get(character, character) for character in text)


def numeric(table: Table) -> list[bool]:
    """Tell which columns hold numbers."""
    return [
        bool(table.rows) and all(row[i].value is not None or row[i].text in ("–", "") for row in table.rows)
        for i in range(len(table.columns))
    ]


FORMS: dict[str, Callable[[Table], str]] = {"md": markdown, "tex": latex}
"""Output formats that are written to files, by file extension."""
