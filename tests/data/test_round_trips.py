"""Every pair of formats, through whole data folders: words, labels, splits, and offsets where the formats have them."""

import tempfile
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossfill.data.labels import iob2
from crossfill.data.layout import find_sources
from crossfill.data.readers import read_corpus
from crossfill.data.reading import ReadingHints
from crossfill.data.writers import WRITERS, convert_folder
from crossfill.grid.sentence import UNLABELLED, Corpus, Sentence

pytest.importorskip("spacy")

WITH_OFFSETS = set(WRITERS) - {".bio"}
PAIRS = list(product(WRITERS, WRITERS))
LABELS = {
    "ner": ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", UNLABELLED],
    "chunk": ["O", "B-NP", "I-NP"],
    "pos": ["NOUN", "VERB", "PROPN", UNLABELLED],
    "feats:Case": ["Nom", "Acc", "_"],
    "deprel": ["nsubj", "root", UNLABELLED],
    "senses": ["per-1", "loc|2", "a=b"],
}
SURE = {"ner": "B-PER", "chunk": "B-NP", "pos": "NOUN", "feats:Case": "Nom", "deprel": "root", "senses": "per-1"}
"""A label that every corpus has, so that its kind is plain."""
Parts = list[list[tuple[str, int, bool]]]
Grids = dict[tuple[str, str], Parts]

letters = st.characters(categories=("L", "N", "P", "S", "M"), codec="utf-8")
words = st.text(letters, min_size=1, max_size=6)
parts = st.lists(st.lists(st.tuples(words, st.integers(0, 4), st.booleans()), min_size=1, max_size=5), max_size=3)
grids = st.dictionaries(
    st.tuples(st.sampled_from(sorted(LABELS)), st.sampled_from(["train", "dev", "test", "surplus"])),
    parts,
    min_size=1,
    max_size=4,
)


def corpus(task: str, drawn: Parts) -> Corpus:
    """Sentences of a task, the last of them plain; in composed words and strict IOB2."""
    made = []
    for part in [*drawn, [("mooy", 0, False), ("Dakar", -1, True)]]:
        labels = [SURE[task] if i < 0 else LABELS[task][i % len(LABELS[task])] for _, i, _ in part]
        if task in ("pos", "ner") and set(labels) == {UNLABELLED}:
            labels[0] = SURE[task]  # spaCy has no difference between words without a label and documents without
        strict = iob2(labels) if task in ("ner", "chunk") else labels
        made.append(Sentence(tuple(w for w, _, _ in part), tuple(strict), tuple(space for *_, space in part)))
    return Corpus.from_sentences(made).composed()


def write(folder: Path, grid: Grids, suffix: str) -> dict[tuple[str, str], Corpus]:
    """A data folder in this format, and what it holds."""
    made = {}
    for (task, split), drawn in grid.items():
        if suffix == ".conllu" and task == "senses":
            continue  # | stands between values of CoNLL-U
        made[task, split] = corpus(task, drawn)
        path = folder / task.replace(":", "_") / "wol" / f"{split}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(WRITERS[suffix](made[task, split], task, [label for label in LABELS[task] if label]))
    return made


def read(folder: Path) -> dict[tuple[str, str], Corpus]:
    sources, problems = find_sources(folder)
    assert not problems
    return {
        (s.task, s.split): read_corpus(s.path.read_bytes(), "x", s.task, ReadingHints(language="wol"), s.suffix).corpus
        for s in sources
    }


def check(grid: Grids, first: str, second: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        if second == ".conllu":
            grid = {(task, split): drawn for (task, split), drawn in grid.items() if task != "senses"}
        expected = write(root / "a", grid, first)
        if not expected:
            return
        convert_folder(root / "a", root / "b", second)
        found = read(root / "b")
        assert found.keys() == expected.keys()
        for key, own in expected.items():
            got = found[key]
            assert [s.words for s in got] == [s.words for s in own]
            assert [s.labels for s in got] == [s.labels for s in own]
            if {first, second} <= WITH_OFFSETS:
                assert [s.offsets for s in got] == [s.offsets for s in own]
                assert [s.text for s in got] == [s.text for s in own]


@pytest.mark.parametrize(("first", "second"), PAIRS)
@settings(max_examples=3)
@given(grids)
def test_every_pair_of_formats(first: str, second: str, grid: Grids):
    check(grid, first, second)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("first", "second"), PAIRS)
@settings(max_examples=60)
@given(grids)
def test_every_pair_of_formats_at_length(first: str, second: str, grid: Grids):
    check(grid, first, second)
