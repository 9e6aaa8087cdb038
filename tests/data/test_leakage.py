"""Evaluation text never trains in any task of its language, however text is shared and whichever cells are seen."""

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossfill.data.folder import ReadOptions, load_grid, read_folder
from crossfill.data.splits import capped_grid, separate_evaluation_text
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import Corpus, Sentence
from tests.data.folders import bio, conllu, numbered, write

SIX = ("pos", "ner", "deprel", "feats:Case", "xpos", "chunk")


def corpus(texts: Iterable[int], label: str = "X", cut: int = 1) -> Corpus:
    """Sentences of three letters that stand for numbers, in words of `cut` letters."""
    words = [tuple(f"{n:03}"[i : i + cut] for i in range(0, 3, cut)) for n in texts]
    return Corpus.from_sentences(Sentence(w, (label,) * len(w)) for w in words)


def texts(corpora: Iterable[Corpus]) -> set[str]:
    return {"".join(sentence.words) for corpus in corpora for sentence in corpus}


def leaks(grid: Grid, seen: frozenset[Cell]) -> list[str]:
    """Text that evaluates or selects and trains in the same language, by the definitions that training itself uses."""
    found = []
    for language in grid.languages:
        cells = [cell for cell in grid.cells if cell.language == language]
        training = texts(grid.training(cell) for cell in cells if cell in seen)
        usable = [s for cell in cells for s in grid[cell] if cell in seen or s.has_training_data]
        centred = texts(splits.training for splits in usable)
        test = texts(c for cell in cells for c in grid.evaluation(cell, cell in seen).values())
        dev = texts(grid.development(cell) for cell in cells)
        pairs = {
            "training/test": training & test,
            "centring/test": centred & test,
            "training/dev": training & dev,
            "dev/test": dev & test,
        }
        found += [f"{language} {name}: {sorted(shared)[:3]}" for name, shared in pairs.items() if shared]
    return found


def partitions(grid: Grid, n: int = 12) -> list[frozenset[Cell]]:
    """All seen, each cell alone unseen, each alone seen, and random choices."""
    cells, rng = frozenset(grid.cells), random.Random(0)
    chosen = [frozenset(cell for cell in grid.cells if rng.random() < 0.5) for _ in range(n)]
    return [cells, *(cells - {cell} for cell in cells), *(frozenset({cell}) for cell in cells), *chosen]


def treebank(start: int, n: int) -> str:
    return conllu(*numbered(n, "NOUN", start))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    def names(start: int, n: int) -> str:
        return bio(*numbered(n, "B-PER", start))

    return write(
        tmp_path / "data",
        {
            # one treebank of six columns, and a corpus of names on the same text with other splits
            "ud/wol/train.conllu": treebank(0, 60),
            "ud/wol/dev.conllu": treebank(60, 10),
            "ud/wol/test.conllu": treebank(70, 20),
            "ner/wol/train.bio": names(55, 30),  # in train, dev and test of the treebank
            "ner/wol/dev.bio": names(85, 8),  # in its test, and beyond
            "ner/wol/test.bio": names(40, 10),  # in its train
            # only a test set, in every column; names on part of the same text
            "ud/kpv/test.conllu": treebank(0, 40),
            "ner/kpv/test.bio": names(30, 30),
            # only a test set, and another corpus with its own training data that is tested on the same
            "ud/yor/test.conllu": treebank(0, 12),
            "ner/yor/train.bio": names(100, 20),
            "ner/yor/test.bio": names(6, 12),
            # a test set and surplus
            "ud/myv/test.conllu": treebank(0, 20),
            "ud/myv/surplus.conllu": treebank(20, 40),
            "ner/myv/train.bio": names(10, 20),
            "ner/myv/test.bio": names(35, 10),
            # two treebanks of one task, one with only a test set
            "UD_Turkish-A/tr_a-ud-train.conllu": treebank(0, 20),
            "UD_Turkish-A/tr_a-ud-test.conllu": treebank(20, 10),
            "UD_Turkish-B/tr_b-ud-test.conllu": treebank(15, 20),
            "ner/tur/test.bio": names(0, 10),
            # files without splits, the second in another order
            "chunk/fin.bio": names(0, 50),
            "ner/fin.bio": bio(*reversed(numbered(50, "B-PER"))),
            "xpos/fin.conllu": treebank(25, 50),
            # hardly anything
            "ud/tgl/test.conllu": treebank(0, 1),
            "ner/tgl/test.bio": names(0, 2),
        },
    )


def test_no_evaluation_text_trains_in_any_partition_of_a_grid_with_shared_text(folder: Path):
    for tasks in ((), ("pos", "ner"), SIX):
        for most in (None, 5):
            grid = capped_grid(load_grid(folder, tasks=tasks, max_train=most, cache=False), most, most, seed=1)
            for seen in partitions(grid):
                assert leaks(grid, seen) == []
                assert all(len(grid.training(cell)) for cell in seen)


def test_without_the_rule_the_same_grid_leaks(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("crossfill.data.folder.separate_evaluation_text", lambda corpora: (corpora, []))
    grid = load_grid(folder, tasks=SIX, cache=False)
    found = " ".join(leak for seen in partitions(grid) for leak in leaks(grid, seen))
    for language in ("wol", "kpv", "yor", "myv", "tur", "tgl"):
        assert f"{language} training/test" in found
    assert "fin dev/test" in found
    assert "fin training/dev" in found


def test_columns_of_a_treebank_with_only_a_test_set_are_parted_alike(folder: Path):
    grid = load_grid(folder, tasks=("pos", "deprel", "xpos"), cache=False)
    splits = [grid[Cell(task, "kpv")][0] for task in ("pos", "deprel", "xpos")]
    assert len({(s.train.text_hash, s.test.text_hash) for s in splits}) == 1
    assert len(splits[0].train) + len(splits[0].test) == 40
    assert 10 <= len(splits[0].train) <= 30
    alone = load_grid(folder, tasks=("pos",), cache=False)[Cell("pos", "kpv")][0]
    assert (len(alone.train), len(alone.test)) == (0, 40)  # nothing to share with


def test_files_without_splits_are_split_by_their_text(folder: Path):
    grid = load_grid(folder, tasks=("chunk", "ner"), cache=False)
    chunk, ner = (grid[Cell(task, "fin")][0] for task in ("chunk", "ner"))
    for split in ("train", "dev", "test"):
        assert texts([getattr(chunk, split)]) == texts([getattr(ner, split)])
    assert (len(ner.train), len(ner.dev), len(ner.test)) == (40, 5, 5)


def test_what_is_left_out_is_counted_and_told(folder: Path):
    reading = read_folder(folder, ReadOptions(tasks=("pos", "ner"), cache=False))
    told = [str(problem) for problem in reading.problems if problem.level == "note"]
    assert "ner/wol: sentences left out as dev or test text of pos: 25 training, 5 dev" in told
    assert "pos/wol: sentences left out as dev or test text of ner: 10 training" in told
    assert reading.grid[Cell("ner", "wol")][0].left_out == 30
    parted = reading.grid[Cell("pos", "kpv")][0]
    assert (
        f"pos/kpv: {len(parted.train)} test sentences train, {len(parted.test)} evaluate: the text is also test "
        "text of another corpus of the language"
    ) in told


def test_corpora_that_share_nothing_are_the_same_objects():
    splits = Splits("a", corpus(range(9)), corpus(range(10, 12)), corpus(range(20, 25)))
    other = Splits("b", corpus(range(30, 40)), test=corpus(range(40, 44)))
    elsewhere = Splits("c", corpus(range(20, 44)))  # another language
    corpora = {Cell("pos", "wol"): (splits,), Cell("ner", "wol"): (other,), Cell("ner", "yor"): (elsewhere,)}
    apart, crossings = separate_evaluation_text(corpora)
    assert apart[Cell("pos", "wol")][0] is splits
    assert apart[Cell("ner", "wol")][0] is other
    assert apart[Cell("ner", "yor")][0] is elsewhere
    assert not crossings


def test_text_is_the_same_however_it_is_cut_into_words():
    corpora = {
        Cell("pos", "heb"): (Splits("a", corpus(range(5)), test=corpus(range(5, 8))),),
        Cell("ner", "heb"): (Splits("b", corpus(range(3, 20), cut=2), test=corpus([1], cut=2)),),
    }
    apart, _ = separate_evaluation_text(corpora)
    assert texts([apart[Cell("pos", "heb")][0].train]) == {"000", "002", "003", "004"}
    assert len(apart[Cell("ner", "heb")][0].train) == 14


numbers = st.lists(st.integers(0, 12), max_size=6)
made = st.lists(
    st.tuples(st.sampled_from(["pos", "ner", "chunk"]), numbers, numbers, numbers, numbers), min_size=1, max_size=5
)


@settings(max_examples=150, deadline=None)
@given(made)
def test_the_rule_holds_for_any_corpora(parts: Sequence[tuple[str, list[int], list[int], list[int], list[int]]]):
    corpora: dict[Cell, tuple[Splits, ...]] = {}
    for i, (task, *splits) in enumerate(parts):
        cell = Cell(task, "wol")
        corpora[cell] = (*corpora.get(cell, ()), Splits(f"c{i}", *map(corpus, splits)))
    apart, crossings = separate_evaluation_text(corpora)
    grid = Grid(apart)
    for seen in partitions(grid, n=4):
        assert leaks(grid, seen) == []
    before = sum(len(c) for found in corpora.values() for s in found for c in s.parts.values())
    after = sum(len(c) for found in apart.values() for s in found for c in s.parts.values())
    assert before - after == sum(c.left_out.total() for c in crossings)
    again, more = separate_evaluation_text(apart)
    assert not more  # nothing is left to do
    assert again == apart
