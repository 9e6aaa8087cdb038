"""Tables and words at any width: everything is there."""

import io

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from crossfill.cli.demo import print_words
from crossfill.cli.output import print_table
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task
from crossfill.prediction.tagging import Tagging

NUMBERS = [f"{i}2,345.{i}" for i in range(9)]


def table() -> Table:
    made = Table("", "cell", "remark", title="A title [of it]", caption="A caption [of it]")
    for i in range(len(NUMBERS)):
        made.add_column(f"column {i}", justify="right")
    made.add_row("■", "ner/wol", "some words that go on", *NUMBERS)
    made.add_row("▣", "ner/yor", "short", *reversed(NUMBERS))
    return made


@pytest.mark.parametrize("width", [60, 140, 300])
def test_it_fits_and_cuts_nothing(width: int):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_table(console, table())
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    assert "A title [of it]" in shown
    assert "A caption [of it]" in shown
    assert shown.count("■") == shown.count("▣") == shown.count("─\n") == 1
    assert width < 140 or all(shown.split().count(number) == 2 for number in NUMBERS)


@pytest.mark.parametrize("width", [24, 40, 80])
def test_words_stand_above_what_is_said_of_them(width: int):
    labels, sure = ("X", "LABEL"), np.array([0.95, 0.7, 0.3])
    sentence = Sentence(("word", "another", "third"), ("X", "X", "LABEL"))
    task, zero = Task("pos", labels), np.zeros(3)
    tagging = Tagging(
        Cell("pos", "wol"), sentence, ("X", "LABEL", "LABEL"), np.full((3, 2), 0.5), task, sure, zero, zero
    )
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_words(console, tagging)
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    for row, expected in enumerate((sentence.words, ("X", "LABEL ✗X", "LABEL"), ("0.95", "0.70", "0.30"))):
        assert " ".join(lines[row::3]).split() == " ".join(expected).split()
