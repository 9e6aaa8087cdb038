"""Partitions against brute-force checks of the constraint."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.partition import (
    Partition,
    alternating_halves,
    bridge_halves,
    different_languages,
    hold_out,
    language_folds,
    random_halves,
    similar_languages,
)

FULL = [Cell(task, f"l{i:02}") for task in ("ner", "pos") for i in range(33)]
ragged_grids = st.sets(st.builds(Cell, st.sampled_from("abcd"), st.sampled_from("uvwxyz")), min_size=1, max_size=24)


def breaks(partition: Partition) -> list[Cell]:
    """The constraint of section 4.1, word for word."""
    return [
        c
        for c in partition.unseen
        if not any(s.task == c.task and s.language != c.language for s in partition.seen)
        or not any(s.language == c.language and s.task != c.task for s in partition.seen)
    ]


def can_be_held_out(cells: set[Cell]) -> set[Cell]:
    return {c for c in cells if not breaks(Partition(frozenset(cells - {c}), frozenset({c})))}


@given(ragged_grids, st.integers(0, 5))
def test_random_halves_hold_out_all_that_can_be_once_and_evenly(cells: set[Cell], seed: int):
    free = can_be_held_out(cells)
    if not free:
        with pytest.raises(DataError, match="random halves need"):
            random_halves(cells, seed)
        return
    first, second = random_halves(cells, seed)
    assert not breaks(first)
    assert not breaks(second)
    assert first.unseen | second.unseen == free
    assert not first.unseen & second.unseen
    assert abs(len(first.unseen) - len(second.unseen)) <= 1
    for side in ("task", "language"):
        counts = [Counter(getattr(c, side) for c in half.unseen) for half in (first, second)]
        assert all(abs(counts[0][name] - counts[1][name]) <= 1 for name in counts[0] | counts[1])
    assert all(half.seen | half.unseen == cells for half in (first, second))


@given(ragged_grids, st.integers(0, 5), st.integers(0, 6))
def test_bridges_are_seen_in_all_their_tasks_and_nothing_else_changes(cells: set[Cell], seed: int, n: int):
    free = {c.language for c in can_be_held_out(cells)}
    if n >= len(free):
        with pytest.raises(DataError, match=r"to leave a language to hold out|random halves need"):
            bridge_halves(cells, n, seed)
        return
    halves, plain, fewer = (bridge_halves(cells, n, seed), random_halves(cells, seed), bridge_halves(cells, 0, seed))
    assert fewer == plain
    left = {c.language for half in halves for c in half.unseen}
    assert len(free - left) == n
    for half, before in zip(halves, plain, strict=True):
        assert not breaks(half)
        assert half.seen | half.unseen == cells
        assert half.unseen == {c for c in before.unseen if c.language in left}
    if n:
        assert left < {c.language for half in bridge_halves(cells, n - 1, seed) for c in half.unseen}


def test_bridges_differ_by_seed():
    drawn = {frozenset(c.language for c in bridge_halves(FULL, 10, seed)[0].unseen) for seed in range(20)}
    assert len(drawn) == 20


def test_random_halves_of_two_tasks_are_complements_and_differ_by_seed():
    first, second = random_halves(FULL, seed=0)
    assert (first.seen, first.unseen) == (second.unseen, second.seen)
    assert len(first.unseen) == 33
    assert random_halves(reversed(FULL), seed=0) == (first, second)
    assert len({random_halves(FULL, seed)[0].unseen for seed in range(20)}) == 20


def test_alternating_halves_are_those_of_the_script():
    halves = alternating_halves(FULL)
    for p, half in enumerate(halves):
        assert half.unseen == {cell for i, cell in enumerate(FULL) if i % 2 == p}
        assert not breaks(half)
    order = [f"l{i:02}" for i in (1, 0, *range(2, 33))]
    assert Cell("ner", "l01") in alternating_halves(FULL, order)[0].unseen
    # with an even number of languages the script would hold out whole languages
    even = alternating_halves([c for c in FULL if c.language != "l32"])
    assert not any(breaks(half) for half in even)
    with pytest.raises(DataError, match=r"unknown language 'l01'.* the order has to name every language"):
        alternating_halves(FULL, ["l00"])


@given(ragged_grids)
def test_alternating_halves_either_keep_the_constraint_or_say_which_cell_breaks_it(cells: set[Cell]):
    message = ""
    try:
        assert not any(breaks(half) for half in alternating_halves(cells))
    except DataError as error:
        message = str(error)
    assert not message or "would be seen in no other cell" in message or "alternating halves need" in message


def test_explicit_lists_are_kept_or_every_broken_cell_is_named():
    cells = [Cell(t, x) for t in ("pos", "ner") for x in ("wol", "yor", "tha")]
    assert hold_out(cells, [Cell("pos", "wol")]).seen == set(cells) - {Cell("pos", "wol")}
    with pytest.raises(DataError) as caught:
        hold_out(cells, [Cell("pos", x) for x in ("wol", "yor", "tha")] + [Cell("ner", "tha")])
    lines = str(caught.value).splitlines()
    assert lines[0] == "ner/tha cannot be unseen: language tha would be seen in no other cell"
    assert lines[1] == "pos/tha cannot be unseen: task pos and language tha would be seen in no other cell"
    assert len(lines) == 5
    with pytest.raises(DataError, match="unknown cell 'pos/wo'; did you mean 'pos/wol'"):
        hold_out(cells, [Cell("pos", "wo")])


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("UIA"), min_size=4), st.integers(2, 4))
def test_subsets_by_family_are_the_best_there_are(family: dict[str, str], size: int):
    def similarity(a: str, b: str) -> float:
        return float(family[a] == family[b])

    def score(chosen: tuple[str, ...]) -> float:
        return sum(similarity(a, b) for a, b in combinations(chosen, 2))

    scores = [score(chosen) for chosen in combinations(sorted(family), size)]
    assert score(similar_languages(family, size, similarity)) == max(scores)
    assert score(different_languages(family, size, similarity)) == min(scores)


def test_a_subset_larger_than_the_grid_is_refused():
    with pytest.raises(DataError, match="expected a subset of 2 to 3 languages, got 4"):
        similar_languages("abc", 4, lambda a, b: 0.0)


@pytest.mark.parametrize("n_folds", [2, 5, 33])
def test_every_language_is_left_out_once_with_all_its_tasks(n_folds: int):
    parts = language_folds(FULL, n_folds, seed=1)
    assert sorted(cell for part in parts for cell in part.unseen) == sorted(FULL)
    for part in parts:
        assert part.seen | part.unseen == set(FULL)
        assert not {cell.language for cell in part.seen} & {cell.language for cell in part.unseen}
    sizes = [len(part.unseen) for part in parts]
    assert max(sizes) - min(sizes) <= 2


def test_a_task_needs_a_language_that_is_not_left_out():
    with pytest.raises(DataError, match="ner would be seen in no language"):
        language_folds([Cell("pos", "aaa"), Cell("pos", "bbb"), Cell("ner", "aaa")], 2, 0)
    with pytest.raises(DataError, match="expected 2 to 33 parts"):
        language_folds(FULL, 34, 0)
