"""Bridges counted by hand, and the note on grids that lack them."""

from itertools import product

from crossfill.grid.cells import Cell
from crossfill.grid.partition import FEW_BRIDGES, bridge_note, bridges


def cells(*names: str) -> list[Cell]:
    return [Cell.parse(name) for name in names]


def test_bridges_are_the_languages_of_both_tasks():
    found = bridges(cells("pos/aaa", "ner/aaa", "pos/bbb", "ner/ccc", "chunk/ccc", "pos/ccc"))
    assert found == {("chunk", "ner"): ("ccc",), ("chunk", "pos"): ("ccc",), ("ner", "pos"): ("aaa", "ccc")}


def test_a_grid_without_bridges_is_told_so():
    note = bridge_note(cells("pos/aaa", "ner/bbb"))
    assert note is not None
    assert note.startswith("no language has both ner and pos: from so little the model can hardly learn how")
    note = bridge_note(cells("pos/aaa", "ner/bbb", "pos/ccc", "ner/ccc"))
    assert note is not None
    assert note.startswith("only ccc has both ner and pos: ")


def test_bridged_grids_full_grids_and_single_tasks_need_no_note():
    bridged = [Cell(task, f"l{i}") for task, i in product(("ner", "pos"), range(FEW_BRIDGES))]
    assert bridge_note([*bridged, Cell("ner", "other")]) is None
    assert bridge_note([*bridged[1:], Cell("ner", "other")]) is not None
    assert bridge_note(cells("pos/aaa", "ner/aaa")) is None
    assert bridge_note(cells("pos/aaa", "pos/bbb")) is None


def test_a_note_names_three_pairs_and_counts_the_others():
    note = bridge_note([Cell(f"t{i}", f"l{i}") for i in range(5)])
    assert note is not None
    assert note.count("no language has") == 3
    assert "and 7 more pairs of tasks have as few: " in note
