"""The feature cache: whole, shared, or built anew."""

import errno
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossfill.encoders.cache import FeatureCache
from crossfill.grid.sentence import Corpus, Sentence

ABOUT = {"encoder": "abc", "layer": 3}


class Filler:
    """Writes the numbers 0, 1, 2, … and counts how often it had to."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, rows: np.ndarray) -> None:
        self.calls += 1
        rows[:] = np.arange(rows.size).reshape(rows.shape)


def test_features_are_computed_once_and_mapped_into_memory(tmp_path: Path):
    fill = Filler()
    for label in ("one", "another"):
        found = FeatureCache(tmp_path).fetch(ABOUT, (5, 3), "<f2", fill, label)
        assert isinstance(found, np.memmap)
        assert found.dtype == np.float16
        assert found.tolist() == np.arange(15.0).reshape(5, 3).tolist()
    assert fill.calls == 1
    (entry,) = FeatureCache(tmp_path).entries()
    assert entry.about == {"label": "one", **ABOUT, "rows": 5, "columns": 3, "dtype": "<f2"}
    for other in ({**ABOUT, "layer": 4}, {**ABOUT, "pooling": "last"}):
        FeatureCache(tmp_path).fetch(other, (5, 3), "<f2", fill)
    assert fill.calls == 3


def test_changing_what_was_opened_does_not_change_the_file(tmp_path: Path):
    cache = FeatureCache(tmp_path)
    cache.fetch(ABOUT, (5, 3), "<f2", Filler())[:] = 7
    assert cache.fetch(ABOUT, (5, 3), "<f2", Filler())[0, 1] == 1
    assert all(map(cache.is_whole, cache.entries()))


def test_every_damaged_entry_is_found_and_built_anew(tmp_path: Path):
    cache = FeatureCache(tmp_path)
    wanted = np.array(cache.fetch(ABOUT, (50, 3), "<f2", Filler()))
    (entry,) = cache.entries()
    whole, rng = entry.path.read_bytes(), random.Random(0)
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        entry.path.write_bytes(damaged if rng.random() < 0.5 else whole[: rng.randrange(len(whole))])
        assert not cache.is_whole(entry)
        fill = Filler()
        np.testing.assert_array_equal(cache.fetch(ABOUT, (50, 3), "<f2", fill), wanted)
        assert fill.calls == 1
        assert entry.path.read_bytes() == whole


def test_a_killed_or_failed_writer_leaves_no_entry(tmp_path: Path):
    def fail(_rows: np.ndarray) -> None:
        raise KeyboardInterrupt

    cache = FeatureCache(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cache.fetch(ABOUT, (5, 3), "<f2", fail)
    assert not list((tmp_path / "features").iterdir())
    (tmp_path / "features" / ".x.part").write_bytes(b"half")
    assert cache.entries() == []
    assert cache.remove_leftovers() == 1


WRITER = """
import sys, time
from pathlib import Path
import numpy as np
from crossfill.encoders.cache import FeatureCache

def fill(rows):
    for i in range(len(rows)):
        rows[i] = i
        time.sleep(0.001)

found = FeatureCache(Path(sys.argv[1])).fetch({"encoder": "abc"}, (300, 4), "<f2", fill)
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
    fill = Filler()
    for _ in range(2):
        assert FeatureCache(cache).fetch(ABOUT, (2, 2), "<f4", fill).tolist() == [[0, 1], [2, 3]]
    assert fill.calls == 2


def test_tasks_with_the_same_text_share_features():
    words, spaced = ("a", "b"), Sentence(("a", "b"), ("NOUN", "VERB"), (True, True))
    plain, tagged = Sentence(words), Sentence(words, ("O", "O"))
    hashes = {Corpus.from_sentences([s]).text_hash() for s in (plain, tagged, spaced)}
    assert len(hashes) == 1
    others = [[Sentence(words, (), (False, True))], [Sentence(("a",)), Sentence(("b",))], [Sentence(("ab",))]]
    assert len(hashes | {Corpus.from_sentences(other).text_hash() for other in others}) == 4


FULL = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from crossfill.encoders.cache import FeatureCache

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # what a full disk is like: writes beyond it fail
cache = FeatureCache(Path(sys.argv[1]))
for layer in (1, 2):
    found = cache.fetch({"layer": layer}, (1000, 100), "<f4", lambda rows: rows.fill(layer))
    assert (found == layer).all() and not isinstance(found, np.memmap)
small = cache.fetch({"layer": 3}, (10, 100), "<f4", lambda rows: rows.fill(3))
assert isinstance(small, np.memmap)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file sizes")
def test_a_full_disk_only_costs_time_and_is_told_once(tmp_path: Path):
    run = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("cannot keep features (File too large); going on without") == 1
    assert [entry.bytes for entry in FeatureCache(tmp_path).entries()] == [4096 + 4000]
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOSPC])
def test_where_space_cannot_be_reserved_it_is_written(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    found = FeatureCache(tmp_path).fetch(ABOUT, (5, 3), "<f2", Filler())
    assert found.tolist() == np.arange(15.0).reshape(5, 3).tolist()
    assert len(FeatureCache(tmp_path).entries()) == (number == errno.EOPNOTSUPP)
    assert ("No space left on device" in capsys.readouterr().err) == (number == errno.ENOSPC)


def test_clearing_during_a_write_harms_nobody(tmp_path: Path):
    def clear(rows: np.ndarray) -> None:
        cleaner = FeatureCache(tmp_path)
        assert cleaner.remove_leftovers() == 0
        cleaner.remove(cleaner.entries())
        rows[:] = 7

    found = FeatureCache(tmp_path).fetch(ABOUT, (5, 3), "<f2", clear)
    assert (found == 7).all()
    assert len(FeatureCache(tmp_path).entries()) == 1

    def remove_everything(rows: np.ndarray) -> None:
        shutil.rmtree(tmp_path / "features")
        rows[:] = 8

    found = FeatureCache(tmp_path).fetch({**ABOUT, "layer": 5}, (5, 3), "<f2", remove_everything)
    assert (found == 8).all()
    assert FeatureCache(tmp_path).entries() == []
