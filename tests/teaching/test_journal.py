"""The journal on disk: nothing acknowledged is lost, whoever is killed and however many write."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from crossfill.data.readers import read_corpus
from crossfill.data.reading import NO_HINTS
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.teaching.estimate import Score
from crossfill.teaching.journal import Accepted, Estimated, Journal, Learned, Returned, Withdrawn

NER, POS = Cell("ner", "wol"), Cell("pos", "wol")
SENTENCES = {
    NER: Sentence(("#", "Ndar Géej", "!", "𞤀𞤣"), ("O", "B-LOC", "O", "B-LOC"), (True, False, True, True)),
    POS: Sentence(("#", "Ndar Géej", "!", "𞤀𞤣"), ("", "NOUN", "PUNCT", "NOUN"), (True, False, True, True)),
}


def entries(cell: Cell) -> list:
    first = Accepted("a1", "Anna \"O\" 'ö' B-LOC", "2026-11-18T01:20:11Z", SENTENCES[cell])
    return [
        first,
        replace(first, id="a2", replaces="a1"),
        Withdrawn("a2", "", "2026-11-18T01:20:12Z"),
        Learned(1, "2026-11-18T01:20:13Z"),
        Estimated(1, Score(0.5, None, None)),
        Estimated(1, Score(0.5, 0.25, 0.75)),
        Returned(0, "", "2026-11-18T01:20:14Z"),
    ]


@pytest.mark.parametrize("cell", [NER, POS])
def test_what_is_written_is_read(tmp_path: Path, cell: Cell):
    journal = Journal(tmp_path, cell)
    assert journal.read() == []
    for entry in entries(cell):
        assert journal.append(entry) == [entry]
    assert journal.read() == []
    assert Journal(tmp_path, cell).read() == entries(cell)
    assert journal.path.name == {NER: "ner-wol.bio", POS: "pos-wol.bio"}[cell]


@pytest.mark.parametrize("cell", [NER, POS])
def test_it_is_a_corpus_as_any_other(tmp_path: Path, cell: Cell):
    journal = Journal(tmp_path, cell)
    journal.append(*entries(cell))
    read = read_corpus(journal.path.read_bytes(), "x", cell.task, NO_HINTS, journal.path.suffix, False).corpus
    assert [(s.words, s.labels) for s in read] == [(SENTENCES[cell].words, SENTENCES[cell].labels)] * 2


@pytest.mark.parametrize("cell", [NER, POS])
def test_wherever_it_is_cut_off_what_was_whole_stays_and_what_comes_is_added(tmp_path: Path, cell: Cell):
    journal = Journal(tmp_path, cell)
    journal.append(*entries(cell)[:2])
    whole = journal.path.read_bytes()
    journal.append(replace(entries(cell)[0], id="a3"))
    content = journal.path.read_bytes()
    for end in range(len(whole), len(content) + 1):
        journal.path.write_bytes(content[:end])
        again = Journal(tmp_path, cell)
        found = again.read()
        assert [entry.id for entry in found] == ["a1", "a2", "a3"][: 3 if end >= len(content) - 1 else 2]
        again.append(entries(cell)[3])
        assert Journal(tmp_path, cell).read() == [*found, entries(cell)[3]]


def test_a_damaged_file_is_named_with_its_line_and_left_alone(tmp_path: Path):
    journal = Journal(tmp_path, NER)
    journal.append(*entries(NER))
    damaged = journal.path.read_text().replace("Ndar Géej\tB-LOC\n", "", 1)
    journal.path.write_text(damaged)
    with pytest.raises(DataError, match=r"ner-wol.bio:1: expected an entry of a journal; .* expected 4 words, got 3"):
        Journal(tmp_path, NER).read()
    assert journal.path.read_text() == damaged


def test_a_full_disk_leaves_no_half_of_a_sentence(tmp_path: Path, monkeypatch):
    journal = Journal(tmp_path, NER)
    journal.append(entries(NER)[0])
    before = journal.path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="No space left on device; nothing was saved"):
        journal.append(replace(entries(NER)[0], id="a9"))
    monkeypatch.undo()
    assert journal.path.read_bytes() == before
    assert journal.append(entries(NER)[3]) == [entries(NER)[3]]


def _write(folder: Path, name: str, n: int) -> None:
    journal = Journal(folder, NER)
    for i in range(n):
        journal.append(replace(entries(NER)[0], id=f"{name}{i}"))


def test_two_processes_write_into_one_file(tmp_path: Path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(tmp_path, name, 40)) for name in "xy"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    found = [entry.id for entry in Journal(tmp_path, NER).read()]
    assert sorted(found) == sorted(f"{name}{i}" for name in "xy" for i in range(40))
    for name in "xy":  # each in its own order
        assert [own for own in found if own[0] == name] == [f"{name}{i}" for i in range(40)]


KILLED = """
import sys
from pathlib import Path
from tests.teaching.test_journal import NER, SENTENCES, Accepted, Journal
journal = Journal(Path(sys.argv[1]), NER)
for i in range(10**6):
    journal.append(Accepted(str(i), "", "", SENTENCES[NER]))
    print(i, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path):
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, cwd=root) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGKILL)
        told = [0, *map(int, process.stdout.read().split())]
    found = [int(entry.id) for entry in Journal(tmp_path, NER).read()]
    assert len(told) > 5
    assert found[: len(told)] == told
    assert len(found) <= len(told) + 1


def test_the_first_line_of_an_entry_is_json_for_people(tmp_path: Path):
    journal = Journal(tmp_path, NER)
    journal.append(entries(NER)[0])
    line = journal.path.read_text().split("\n")[0]
    assert line.startswith("# accepted\t")
    assert json.loads(line.removeprefix("# accepted\t"))["who"].startswith("Anna")
