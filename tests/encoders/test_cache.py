"""The feature cache: complete, shared, or built again."""

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from crossfill.encoders import cache as cache_module
from crossfill.encoders.cache import FeatureCache, Key
from crossfill.grid.sentence import Corpus, Sentence

ABOUT = {"encoder": "abc", "layer": 3}


class Filler:
    """Gives the numbers 0, 1, 2, …, three for each word, in two blocks, and counts how often it had to."""

    def __init__(self, n_words: int = 5) -> None:
        self.n_words, self.calls = n_words, 0

    def __call__(self) -> list[np.ndarray]:
        self.calls += 1
        numbers = np.arange(3 * self.n_words).reshape(-1, 3)
        return [numbers[:2], numbers[2:]]


def test_features_are_computed_once_and_mapped_into_memory(tmp_path: Path):
    fill = Filler()
    for label in ("one", "another"):
        found = FeatureCache(tmp_path).fetch(Key(ABOUT, 5, 3, "<f2"), fill, label)
        assert found.dtype == np.float16
        assert found.tolist() == np.arange(15.0).reshape(5, 3).tolist()
    assert fill.calls == 1
    (entry,) = FeatureCache(tmp_path).entries()
    assert entry.about == {"label": "one", **ABOUT, "rows": 5, "columns": 3, "dtype": "<f2"}
    assert load_file(entry.path)["features"].tolist() == found.tolist()
    for other in ({**ABOUT, "layer": 4}, {**ABOUT, "pooling": "last"}):
        FeatureCache(tmp_path).fetch(Key(other, 5, 3, "<f2"), fill)
    assert fill.calls == 3


def test_changing_what_was_opened_does_not_change_the_file(tmp_path: Path):
    cache = FeatureCache(tmp_path)
    cache.fetch(Key(ABOUT, 5, 3, "<f2"), Filler())[:] = 7
    assert cache.fetch(Key(ABOUT, 5, 3, "<f2"), Filler())[0, 1] == 1
    assert all(map(cache.is_whole, cache.entries()))


def test_every_damaged_entry_is_detected_on_request(tmp_path: Path):
    cache = FeatureCache(tmp_path)
    cache.fetch(Key(ABOUT, 50, 3, "<f2"), Filler(50))
    (entry,) = cache.entries()
    whole, rng = entry.path.read_bytes(), random.Random(0)
    assert cache.is_whole(entry)
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[-1 - rng.randrange(300)] ^= 1 << rng.randrange(8)
        entry.path.write_bytes(damaged)
        assert not cache.is_whole(entry)


def test_a_file_without_its_end_or_its_header_is_built_again(tmp_path: Path):
    cache = FeatureCache(tmp_path)
    wanted = np.array(cache.fetch(Key(ABOUT, 50, 3, "<f2"), Filler(50)))
    (entry,) = cache.entries()
    whole, rng = entry.path.read_bytes(), random.Random(0)
    for damaged in (b"", bytes(100), whole[8:], *(whole[: rng.randrange(len(whole))] for _ in range(20))):
        entry.path.write_bytes(damaged)
        assert not cache.is_whole(entry)
        assert not cache.holds(Key(ABOUT, 50, 3, "<f2"))
        assert cache.entries()[0].about in ({}, entry.about)
        fill = Filler(50)
        np.testing.assert_array_equal(cache.fetch(Key(ABOUT, 50, 3, "<f2"), fill), wanted)
        assert fill.calls == 1
        assert entry.path.read_bytes() == whole


def test_opening_reads_no_features(tmp_path: Path):
    """A file of a gigabyte, nearly all of it a hole, is opened at once."""
    cache = FeatureCache(tmp_path)
    cache.fetch(Key(ABOUT, 5, 3, "<f4"), Filler())
    (path,) = (entry.path for entry in cache.entries())
    rows, columns = 2**18, 2**10
    header = cache_module._header(Key({}, rows, columns, "<f4"), {"about": "{}", "label": ""})
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + 4 * rows * columns)
    started = time.process_time()
    assert cache.fetch(Key(ABOUT, 5, 3, "<f4"), Filler()).shape == (rows, columns)
    assert time.process_time() - started < 0.1


def test_a_killed_or_failed_writer_leaves_no_entry(tmp_path: Path):
    def fail() -> list[np.ndarray]:
        raise KeyboardInterrupt

    cache = FeatureCache(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cache.fetch(Key(ABOUT, 5, 3, "<f2"), fail)
    assert not list((tmp_path / "features").iterdir())
    (tmp_path / "features" / ".x.safetensors-0f").write_bytes(b"half")  # of a process that was killed
    assert cache.entries() == []
    cache.clear()
    assert not list((tmp_path / "features").iterdir())


WRITER = """
import sys, time
from pathlib import Path
import numpy as np
from crossfill.encoders.cache import FeatureCache, Key

def blocks():
    for i in range(300):
        time.sleep(0.001)
        yield np.full((1, 4), i)

found = FeatureCache(Path(sys.argv[1])).fetch(Key({"encoder": "abc"}, 300, 4, "<f2"), blocks)
print(int(found[:, 0].astype(int).sum()))
"""


def test_two_processes_at_once_both_get_all_of_it(tmp_path: Path):
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in started] == [str(299 * 300 // 2)] * 2
    assert len(list((tmp_path / "features").iterdir())) == 1


@pytest.mark.parametrize("cache", [False, "a file"])
def test_no_cache_only_costs_time(tmp_path: Path, cache: Any):
    if cache:
        cache = tmp_path / "file"
        cache.write_text("in the way")
    fill = Filler(2)
    for _ in range(2):
        assert FeatureCache(cache).fetch(Key(ABOUT, 2, 3, "<f4"), fill).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert fill.calls == 2


def test_tasks_with_the_same_text_share_features():
    words, spaced = ("a", "b"), Sentence(("a", "b"), ("NOUN", "VERB"), (True, True))
    plain, tagged = Sentence(words), Sentence(words, ("O", "O"))
    hashes = {Corpus.from_sentences([s]).text_hash for s in (plain, tagged, spaced)}
    assert len(hashes) == 1
    others = [[Sentence(words, (), (False, True))], [Sentence(("a",)), Sentence(("b",))], [Sentence(("ab",))]]
    assert len(hashes | {Corpus.from_sentences(other).text_hash for other in others}) == 4


FULL = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from crossfill.encoders.cache import FeatureCache, Key

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # what a full disk is like: writes beyond it fail
cache = FeatureCache(Path(sys.argv[1]))
for layer in (1, 2):
    found = cache.fetch(Key({"layer": layer}, 1000, 100, "<f4"), lambda: [np.full((1000, 100), layer)])
    assert (found == layer).all()
assert not cache.holds(Key({"layer": 1}, 1000, 100, "<f4"))
cache.fetch(Key({"layer": 3}, 10, 100, "<f4"), lambda: [np.full((10, 100), 3)])
assert cache.holds(Key({"layer": 3}, 10, 100, "<f4"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file sizes")
def test_a_full_disk_only_costs_time_and_is_told_once(tmp_path: Path):
    run = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("cannot keep features (File too large); going on without") == 1
    assert len(list((tmp_path / "features").iterdir())) == 1


def test_clearing_during_a_write_only_costs_time(tmp_path: Path):
    fill = Filler()

    def clear() -> list[np.ndarray]:
        if not fill.calls:
            FeatureCache(tmp_path).clear()
        return fill()

    assert FeatureCache(tmp_path).fetch(Key(ABOUT, 5, 3, "<f2"), clear)[4].tolist() == [12, 13, 14]
    assert FeatureCache(tmp_path).entries() == []
