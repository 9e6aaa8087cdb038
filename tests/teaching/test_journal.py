"""The journal on disk: nothing acknowledged is lost, whoever is killed and however many write."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crossfill.data.readers import read_corpus
from crossfill.data.reading import NO_HINTS
from crossfill.errors import OutputError
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
        assert [entry.id for entry in found] == ["a1", "a2", "a3"][: 3 if end >= len(content) - 2 else 2]
        again.append(entries(cell)[3])
        assert Journal(tmp_path, cell).read() == [*found, entries(cell)[3]]


def damaged(content: bytes) -> Iterator[bytes]:
    for i in range(len(content)):
        yield content[:i] + bytes([content[i] ^ 0x80]) + content[i + 1 :]  # mostly no UTF-8
        yield content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :]
        yield content[:i] + content[i + 1 :]
    blocks = content.split(b"\n\n")
    for i in range(len(blocks) - 2):
        yield b"\n\n".join(blocks[:i] + blocks[i + 1 :])
        yield b"\n\n".join([*blocks[:i], blocks[i], *blocks[i:]])


def test_a_damaged_file_counts_up_to_its_last_whole_entry_and_no_byte_of_it_is_lost(tmp_path: Path):
    cell = NER
    journal, whole = Journal(tmp_path, cell), entries(cell)
    journal.append(*whole)
    rest = journal.path.with_name(f"{journal.path.name}.damaged")
    for number, content in enumerate(damaged(journal.path.read_bytes())):
        journal.path.write_bytes(content)
        reader = Journal(tmp_path, cell)
        read = reader.read()
        assert read == whole[: len(read)]
        assert len(read) == len(whole) or reader.damage
        assert not reader.damage or f"{journal.path.name}:" in reader.damage
        assert journal.path.read_bytes() == content  # reading changes nothing
        if number % 101:
            continue  # as it takes a while to be sure that something is on disk
        n_before = rest.stat().st_size if rest.exists() else 0
        reader.append(whole[0])
        again = Journal(tmp_path, cell)
        assert (again.read(), again.damage) == ([*read, whole[0]], "")
        aside = rest.read_bytes()[n_before:] if rest.exists() else b""
        assert journal.path.read_bytes().startswith(content.removesuffix(aside))
        assert bool(aside) == bool(reader.damage)


def test_what_is_damaged_is_said_with_its_line(tmp_path: Path):
    journal = Journal(tmp_path, NER)
    journal.append(*entries(NER))
    journal.path.write_text(journal.path.read_text().replace("Ndar Géej\tB-LOC\n", "", 1))
    reader = Journal(tmp_path, NER)
    assert reader.read() == []
    assert re.search(
        r"ner-wol.bio:1: expected an entry of a journal; .* checksum is wrong; .*bio.damaged", reader.damage
    )


@pytest.mark.skipif(os.name != "posix", reason="a limit of the size of files stands for the full disk")
def test_a_full_disk_leaves_no_half_of_a_sentence(tmp_path: Path):
    import resource

    journal, more = Journal(tmp_path, NER), replace(entries(NER)[0], id="a9")
    journal.append(entries(NER)[0])
    before = journal.path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in range(len(before) - 1):  # what fits is written, as on a disk that gets full
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, limits[1]))
        try:
            with pytest.raises(OutputError, match="File too large; nothing was saved: make room"):
                journal.append(more)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert journal.path.read_bytes() == before
    assert journal.append(more) == [more]
    assert Journal(tmp_path, NER).read() == [entries(NER)[0], more]


def test_a_disk_that_fails_when_it_writes_leaves_no_half_of_a_sentence(tmp_path: Path, monkeypatch):
    journal = Journal(tmp_path, NER)
    journal.append(entries(NER)[0])
    before = journal.path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left on device; nothing was saved"):
        journal.append(replace(entries(NER)[0], id="a9"))
    monkeypatch.undo()
    assert journal.path.read_bytes() == before
    assert journal.append(entries(NER)[3]) == [entries(NER)[3]]


class Disk:
    """What is on a disk that drops whatever nobody has waited for: of each file its content at its last fsync."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.content, self.names = folder, {}, set()
        self.wait = os.fsync
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, handle: int) -> None:
        self.wait(handle)
        place = os.fstat(handle)
        if place.st_ino == self.folder.stat().st_ino:
            self.names = {path.name for path in self.folder.iterdir()}
        for path in self.folder.iterdir():
            if path.stat().st_ino == place.st_ino:
                self.content[path.name] = path.read_bytes()

    def after_the_power_went(self, out: Path) -> Path:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        for name in self.names:
            (out / name).write_bytes(self.content.get(name, b""))
        return out


@pytest.mark.skipif(os.name != "posix", reason="elsewhere nobody can wait for the names in a folder")
def test_what_was_acknowledged_survives_a_loss_of_power(tmp_path: Path, monkeypatch):
    (tmp_path / "taught").mkdir()
    disk, accepted = Disk(tmp_path / "taught", monkeypatch), []
    for i in range(6):
        journal = Journal(disk.folder, NER)
        if i == 3:  # what is damaged is put aside, and is not lost either
            with journal.path.open("ab") as file:
                file.write(b"# accepted\thalf of an ent")
        entry = replace(entries(NER)[0], id=f"b{i}")
        journal.append(entry)
        accepted.append(entry)
        left = disk.after_the_power_went(tmp_path / "left")
        assert Journal(left, NER).read() == accepted
        assert (i >= 3) == (left / "ner-wol.bio.damaged").exists()
    assert (left / "ner-wol.bio.damaged").read_bytes() == b"# accepted\thalf of an ent"


def test_a_file_that_was_replaced_is_not_written_to(tmp_path: Path):
    journal = Journal(tmp_path, NER)
    journal.append(*entries(NER))
    journal.path.write_bytes(b"")
    with pytest.raises(OutputError, match="expected the file that was read before, found a shorter one"):
        journal.append(entries(NER)[0])
    assert journal.path.read_bytes() == b""


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
    name, details, checksum = journal.path.read_text().split("\n")[0].split("\t")
    assert (name, len(checksum)) == ("# accepted", 8)
    assert json.loads(details)["who"].startswith("Anna")
