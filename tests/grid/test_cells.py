"""Cells, what a corpus with nothing but a test set trains on (docs/data.md), and the errors of a grid."""

import pytest

from crossfill.errors import DataError
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Column, Corpus, Sentence


def corpus(*labels: str) -> Corpus:
    return Corpus.from_sentences([Sentence(tuple(f"w{i}" for i in range(len(labels))), labels)])


GRID = Grid(
    {
        Cell("pos", "wol"): (Splits("wtf", train=corpus("NOUN", "VERB"), dev=corpus("NOUN"), test=corpus("ADJ")),),
        Cell("pos", "yor"): (
            Splits("ytb", test=corpus("VERB")),
            Splits("two", surplus=corpus("X"), test=corpus("DET")),
        ),
        Cell("ner", "yor"): (Splits("wikiann", train=corpus("O", "B-PER")),),
    }
)


def test_cell_is_written_task_slash_language():
    assert str(Cell.parse("ner/wol")) == "ner/wol"
    for text in ("ner", "ner/", "/wol", "a/b/c"):
        with pytest.raises(DataError, match="expected a cell as task/language"):
            Cell.parse(text)


def test_inventory_is_the_sorted_union_of_labels():
    labels = {name: task.labels for name, task in GRID.inventory.tasks.items()}
    assert labels == {"ner": ("B-PER", "O"), "pos": ("ADJ", "DET", "NOUN", "VERB", "X")}
    assert GRID.inventory.languages == ("wol", "yor")
    assert list(GRID.inventory.label_ids("pos", Column.of(["VERB", "ADJ"]))) == [3, 0]


def test_a_test_set_trains_only_where_there_is_nothing_else_and_is_then_not_scored():
    seen, unseen = (GRID.evaluation(Cell("pos", "yor"), seen=flag) for flag in (True, False))
    assert list(seen) == ["two"]
    assert list(unseen) == ["ytb", "two"]
    assert list(GRID.training(Cell("pos", "yor")).labels) == ["VERB", "X"]


def test_unknown_names_are_answered_with_the_closest():
    with pytest.raises(DataError, match="unknown cell 'pos/wl'; did you mean 'pos/wol'"):
        GRID.training(Cell("pos", "wl"))
    with pytest.raises(DataError, match="unknown task 'nre'; did you mean 'ner'"):
        GRID.inventory.task_index("nre")
    with pytest.raises(DataError, match="unknown language 'wo'"):
        GRID.inventory.language_index("wo")
    with pytest.raises(DataError, match="pos: unknown label 'NUON'; did you mean 'NOUN'"):
        GRID.inventory.label_ids("pos", Column.of(["NUON"]))
