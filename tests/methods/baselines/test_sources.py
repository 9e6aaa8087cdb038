"""Which language serves which cell: nearest and largest sources, ties, fallbacks, cuts and shortfalls."""

from pathlib import Path

import pytest

from crossfill.config import Config
from crossfill.errors import DataError
from crossfill.evaluation.scoring import evaluate
from crossfill.grid.cells import Cell, Grid
from crossfill.methods.baselines.joint import cut
from crossfill.methods.baselines.language_heads import nearest
from crossfill.methods.registry import Plan, build_model, find_method
from crossfill.settings import parse_assignments
from crossfill.tagger.train import train_model
from tests.methods.grids import GRID, SEEN, SETTINGS, splits, write_vectors


def settings(method: str, *changes: str) -> Config:
    return SETTINGS.change({"method": method, **parse_assignments(changes)})


def planned(grid: Grid, seen: frozenset[Cell], config: Config) -> Plan:
    return find_method(config.method).plan(grid, seen, config)


def test_the_nearest_seen_language_of_the_task_serves(tmp_path: Path):
    config = settings("ns", f"sources.vectors={write_vectors(tmp_path)}")
    plan = planned(GRID, SEEN, config)
    # ner is seen in aaa and bbb, pos in aaa, ccc and ddd
    expected = {"ner/ccc": "bbb", "ner/ddd": "bbb", "pos/bbb": "aaa"}
    assert plan.sources == {Cell.parse(cell): language for cell, language in expected.items()}
    assert plan.notes == ()
    assert (plan.cells, plan.seen) == (SEEN, SEEN)


def test_ties_go_to_more_words_then_to_the_alphabet():
    assert nearest({"a": 0.5, "b": 0.5 + 1e-12, "c": 0.4}, {"a": 1, "b": 9, "c": 99}) == "b"
    assert nearest({"b": 0.5, "a": 0.5}, {"a": 3, "b": 3}) == "a"
    assert nearest({"a": float("nan"), "b": -2.0}, {"a": 3, "b": 3}) == "b"
    assert nearest({"a": float("nan")}, {"a": 3}) is None


def test_a_language_without_vectors_is_served_by_the_largest_source_and_it_is_told(tmp_path: Path):
    config = settings("ns", f"sources.vectors={write_vectors(tmp_path, ('aaa', 'bbb', 'ddd'))}")
    plan = planned(GRID, SEEN, config)
    assert plan.sources[Cell("ner", "ccc")] == "bbb"
    assert plan.sources[Cell("ner", "ddd")] == "bbb"
    assert any("served by the largest source: ner/ccc" in note for note in plan.notes)


def test_english_serves_from_outside_the_comparison_and_is_cut():
    outside = {Cell(task, "eng"): splits(task, "eng", 30 if task == "pos" else 10) for task in ("ner", "pos")}
    grid = Grid(GRID.corpora | outside)
    plan = planned(grid, SEEN, settings("ls"))
    assert plan.cells == frozenset(outside)
    assert plan.seen == SEEN | frozenset(outside)
    # pos: 90 words, cut to those of aaa, ccc and ddd; ner: 30 words where aaa and bbb have 45
    assert plan.grid.training(Cell("pos", "eng")).n_words == 3 * (6 + 5 + 7)
    assert plan.grid.training(Cell("ner", "eng")).n_words == 30
    assert plan.notes == ("ner/eng has 30 training words, the seen cells of ner 45 together",)
    assert plan.sources[Cell("ner", "ccc")] == "eng"


def test_a_compared_english_never_serves_its_held_out_cell():
    grid = Grid(GRID.corpora | {Cell(task, "eng"): splits(task, "eng", 30) for task in ("ner", "pos")})
    plan = planned(grid, SEEN | {Cell("pos", "eng")}, settings("ls"))
    assert plan.cells == {Cell("pos", "eng"), Cell("ner", "bbb")}
    assert any("its largest source is ner/bbb" in note for note in plan.notes)


def test_largest_source_trains_on_it_alone_and_keeps_the_partition_in_results():
    config = settings("ls")
    model = train_model(GRID, SEEN, config).model
    assert model.seen == SEEN
    assert {r.cell for r in evaluate(model, GRID, config) if r.seen} == SEEN
    heads = model.heads.plug_in([Cell("pos", "aaa"), Cell("pos", "bbb")])
    assert (heads[0].parameters == heads[1].parameters).all()


def test_a_cut_keeps_order_and_shares():
    first, second = splits("pos", "aaa", 30)[0], splits("pos", "bbb", 10)[0]
    made = cut((first, second), 60, seed=1)
    assert [s.train.n_words for s in made] == [45, 15]
    words = [sentence.words[0] for sentence in made[0].train]
    assert words == sorted(words, key=lambda word: int(word[3:]))


def test_a_task_without_any_seen_language_is_refused():
    model = build_model(settings("ns"), GRID.inventory, {Cell("pos", "aaa")})
    with pytest.raises(DataError, match="ner/bbb: expected a seen language with this task, got none"):
        model.heads.plug_in([Cell("ner", "bbb")])
