"""Tables at any width: every number whole, every word there, every part with its keys."""

import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crossfill.cli.tables import print_boxed, print_table, word_lines

NUMBERS = [f"{i}2,345.{i}" for i in range(9)]


def table() -> Table:
    made = Table("", "cell", "remark", title="A title [of it]", caption="A caption [of it]")
    for i in range(len(NUMBERS)):
        made.add_column(f"column {i}", justify="right")
    made.add_row("■", "ner/wol", "some words that go on", *NUMBERS)
    made.add_row("▣", "ner/yor", "short", *reversed(NUMBERS))
    return made


def printed(width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_table(console, table(), keys=2)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [24, 30, 40, 60, 80, 100, 140, 300])
def test_it_fits_and_keeps_everything(width: int):
    shown = printed(width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    words = shown.split()
    for number in NUMBERS:
        assert words.count(number) == 2
    assert [word for word in words if word in {"some", "words", "that", "go", "on"}] == [
        "some",
        "words",
        "that",
        "go",
        "on",
    ]
    assert "[of it]" in " ".join(words)
    assert words.count("■") == words.count("ner/wol") == shown.count("─\n")  # once in every part


def test_a_wide_terminal_has_it_in_one_part():
    assert printed(300).count("─\n") == 1
    assert printed(24).count("─\n") > 5


@pytest.mark.parametrize("width", [30, 50, 90, 300])
def test_a_box_is_drawn_only_where_it_fits(width: int):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_boxed(console, table())
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert ("┃" in shown) == (width == 300)
    assert max(map(len, shown.splitlines())) <= width
    assert all(shown.split().count(number) == 2 for number in NUMBERS)


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
