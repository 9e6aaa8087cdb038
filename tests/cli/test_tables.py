"""Tables and words at any width: everything is there."""

import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crossfill.cli.demo import word_lines
from crossfill.cli.output import print_table

NUMBERS = [f"{i}2,345.{i}" for i in range(9)]


def table() -> Table:
    made = Table("", "cell", "remark", title="A title [of it]", caption="A caption [of it]")
    for i in range(len(NUMBERS)):
        made.add_column(f"column {i}", justify="right")
    made.add_row("■", "ner/wol", "some words that go on", *NUMBERS)
    made.add_row("▣", "ner/yor", "short", *reversed(NUMBERS))
    return made


@pytest.mark.parametrize("width", [24, 30, 40, 60, 80, 100, 140, 300])
def test_it_fits_and_breaks_no_number(width: int):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_table(console, table())
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    assert "A title [of it]" in shown
    assert "A caption [of it]" in shown
    assert all(shown.split().count(number) == 2 for number in NUMBERS)
    assert shown.count("■") == shown.count("▣") == shown.count("─\n")  # once in every part
    assert (shown.count("─\n") == 1) == (width >= 140)


@pytest.mark.parametrize("width", [16, 24, 80])
def test_words_stand_above_what_is_said_of_them(width: int):
    words = [(Text(f"word{i}"), Text("LABEL" * (1 + i % 2)), Text(f"0.{i}")) for i in range(7)]
    console = Console(file=io.StringIO(), width=width, color_system=None)
    for line in word_lines(words, width):
        console.print(line)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    for row, expected in enumerate(zip(*words, strict=True)):
        assert " ".join(lines[row::3]).split() == [text.plain for text in expected]
    assert list(word_lines([], width)) == []
