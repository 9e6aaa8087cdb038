"""The cache of parsed corpora: whole, fresh, or not there."""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crossfill.data import folder, storage
from crossfill.data.readers import READERS
from crossfill.data.storage import Reading
from crossfill.grid.sentence import EMPTY, Corpus, Sentence
from tests.data.folders import bio, numbered, write

CORPUS = Corpus.from_sentences(
    [
        Sentence(("Dakar", "mooy", "我"), ("B-LOC", "O", "O"), (True, False, True)),
        Sentence(("", "\u2028x"), ("O", "B-PER")),
    ]
)
READING = Reading(CORPUS, scheme="IOB1", normalised=2, prefix="wo:")


def test_an_entry_gives_back_what_was_saved(tmp_path: Path):
    for reading in (READING, Reading(EMPTY), Reading(Corpus.from_sentences([Sentence(("a", "b"))]))):
        storage.save(tmp_path / "x.corpus", reading)
        found = storage.load(tmp_path / "x.corpus")
        assert found is not None
        assert list(found.corpus) == list(reading.corpus)
        assert list(found.corpus) == list(reading.corpus)
        assert (found.scheme, found.normalised, found.prefix) == (reading.scheme, reading.normalised, reading.prefix)


def test_no_damaged_entry_is_ever_taken_for_whole(tmp_path: Path):
    path = tmp_path / "x.corpus"
    storage.save(path, READING)
    whole = path.read_bytes()
    rng = random.Random(0)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged if rng.random() < 0.5 else whole[: rng.randrange(len(whole))])
        assert storage.load(path) is None
    assert storage.load(tmp_path / "missing") is None


def test_a_damaged_entry_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data = write(tmp_path / "data", {"ner/wol/train.bio": bio(*numbered(4, "B-PER"))})
    cache = tmp_path / "cache"
    first = folder.load_grid(data, cache=cache)
    (entry,) = (cache / "corpora").iterdir()
    entry.write_bytes(entry.read_bytes()[:-3])
    again = folder.load_grid(data, cache=cache)
    assert storage.load(entry) is not None
    assert [list(first.training(c)) for c in first.cells] == [list(again.training(c)) for c in again.cells]

    def read_columns(*_: object) -> None:
        raise AssertionError("from here on only the cache can answer")

    monkeypatch.setitem(READERS, ".bio", read_columns)
    assert folder.load_grid(data, cache=cache).cells == first.cells


def test_a_changed_file_is_read_anew(tmp_path: Path):
    data = write(tmp_path / "data", {"ner/wol/train.bio": bio(*numbered(4, "B-PER"))})
    folder.load_grid(data)
    write(data, {"ner/wol/train.bio": bio(*numbered(4, "B-LOC"))})
    assert folder.load_grid(data).inventory.labels["ner"] == ("B-LOC", "O")


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path):
    data = write(tmp_path / "data", {"ner/wol/train.bio": bio(*numbered(4, "B-PER"))})
    (tmp_path / "file").write_text("not a folder")
    assert len(folder.load_grid(data, cache=tmp_path / "file").cells) == 1
    assert len(folder.load_grid(data, cache=False).cells) == 1


def test_many_may_write_and_read_at_once(tmp_path: Path):
    path = tmp_path / "x.corpus"

    def work(i: int) -> bool:
        if i % 2:
            storage.save(path, READING)
        found = storage.load(path)
        return found is None or list(found.corpus) == list(CORPUS)

    storage.save(path, READING)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(100)))
    assert [p.name for p in tmp_path.iterdir()] == ["x.corpus"]
