"""The cache of parsed corpora: whole, fresh, or not there."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crossfill.data import corpus_cache, folder
from crossfill.data.readers import READERS, Reading
from crossfill.grid.sentence import EMPTY, Corpus, Sentence
from tests.data.folders import bio, numbered, write

CORPUS = Corpus.from_sentences(
    [
        Sentence(("Dakar", "mooy", "我"), ("B-LOC", "O", "O"), (True, False, True)),
        Sentence(("", "\u2028x"), ("O", "B-PER")),
    ]
)
READING = Reading(CORPUS, (("note", "IOB1 tags rewritten as IOB2"),), (("warning", 3, "x"),), "word in column 1")


def test_an_entry_gives_back_what_was_saved(tmp_path: Path):
    for reading in (READING, Reading(EMPTY), Reading(Corpus.from_sentences([Sentence(("a", "b"))]))):
        corpus_cache.save_reading(tmp_path / "x.safetensors", "state", reading)
        found = corpus_cache.load_reading(tmp_path / "x.safetensors", "state")
        assert found is not None
        assert list(found.corpus) == list(reading.corpus)
        assert (found.changes, found.notes, found.columns) == (reading.changes, reading.notes, reading.columns)


def test_an_entry_that_is_cut_off_is_never_taken_for_whole(tmp_path: Path):
    path = tmp_path / "x.safetensors"
    corpus_cache.save_reading(path, "state", READING)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert corpus_cache.load_reading(path, "state") is None, size
    path.write_bytes(whole)
    assert corpus_cache.load_reading(path, "state") is not None
    assert corpus_cache.load_reading(path, "another") is None
    assert corpus_cache.load_reading(tmp_path / "missing", "state") is None


def test_an_entry_that_is_cut_off_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data = write(tmp_path / "data", {"ner/wol/train.bio": bio(*numbered(4, "B-PER"))})
    store = tmp_path / "cache"
    first = folder.load_grid(data, cache=store)
    (entry,) = (store / "corpora").iterdir()
    entry.write_bytes(entry.read_bytes()[:-3])
    again = folder.load_grid(data, cache=store)
    assert [list(first.training(c)) for c in first.cells] == [list(again.training(c)) for c in again.cells]

    def read_columns(*_: object) -> None:
        raise AssertionError("from here on only the cache can answer")

    monkeypatch.setitem(READERS, ".bio", read_columns)
    assert folder.load_grid(data, cache=store).cells == first.cells


def test_a_changed_file_is_read_again(tmp_path: Path):
    data = write(tmp_path / "data", {"ner/wol/train.bio": bio(*numbered(4, "B-PER"))})
    folder.load_grid(data, cache=tmp_path / "cache")
    write(data, {"ner/wol/train.bio": bio(*numbered(4, "B-LOC"))})
    assert folder.load_grid(data, cache=tmp_path / "cache").inventory.task("ner").labels == ("B-LOC", "O")
    assert len(list((tmp_path / "cache" / "corpora").iterdir())) == 1  # the old entry is replaced


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path):
    data = write(tmp_path / "data", {"ner/wol/train.bio": bio(*numbered(4, "B-PER"))})
    (tmp_path / "file").write_text("not a folder")
    assert len(folder.load_grid(data, cache=tmp_path / "file").cells) == 1
    assert len(folder.load_grid(data, cache=False).cells) == 1


def test_many_may_write_and_read_at_once(tmp_path: Path):
    path = tmp_path / "x.safetensors"

    def work(i: int) -> bool:
        if i % 2:
            corpus_cache.save_reading(path, "state", READING)
        found = corpus_cache.load_reading(path, "state")
        return found is None or list(found.corpus) == list(CORPUS)

    corpus_cache.save_reading(path, "state", READING)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(100)))
    assert [p.name for p in tmp_path.iterdir()] == ["x.safetensors"]
