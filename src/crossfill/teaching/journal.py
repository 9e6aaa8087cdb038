r"""The journal of a cell: every sentence that was accepted for it, in a file that only grows; and what it amounts to.

One file per cell, such as `ner-wol.bio` (a word, a tab, a label), in blocks that a blank line ends. The first line of a
block is a comment: a word for what happened, a tab, a JSON object with its details, a tab, and a checksum:

    # accepted	{"id": "3f9a2c71", "who": "anna", "when": "2026-11-18T01:20:11Z", "words": 2, "glued": [0]}	8d1fe02b
    Dakar	B-LOC
    !	O

    # withdrawn	{"id": "3f9a2c71", "who": "anna", "when": "…"}	…
    # listed	{"id": "…", "who": "anna", "when": "…", "forms": {"bank": "NOUN,VERB"}}	…
    # learned	{"number": 1, "when": "…"}	…
    # estimated	{"number": 1, "score": {"value": …, "low": …, "high": …}}	…
    # returned	{"number": 1, "who": "anna", "when": "…"}	…

An entry of an annotation tool has its `source` there, too. `glued` are the words that no space follows. The checksum is
the CRC-32 of this entry and all before it. What was appended is on disk, and any number of processes may append to one
file: each holds a lock, and first reads what others have written.

A file whose end is damaged counts up to its last whole entry. Reading leaves it as it is; whoever appends first moves
the rest to a file of the same name that ends in `.damaged`.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args
from zlib import crc32

from crossfill.errors import CrossfillError, DataError, OutputError, unknown
from crossfill.files import locked, sync
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import UNLABELLED, Corpus, Sentence, on_one_line
from crossfill.grid.task import Task, TaskKind, Unit
from crossfill.grid.text_keys import text_key
from crossfill.teaching.estimate import Score


@dataclass(frozen=True)
class Accepted:
    """A sentence with its labels, as a person left it."""

    id: str
    who: str
    when: str
    """In UTC, as ISO 8601."""
    sentence: Sentence = field(default=Sentence(()), repr=False)
    replaces: str | None = None
    """The id of an entry that this one takes the place of."""
    source: str | None = None
    """What the sentence is from in an annotation tool, such as `label-studio/12`, annotation 12."""


@dataclass(frozen=True)
class Withdrawn:
    """An accepted sentence that no longer counts."""

    id: str
    who: str
    when: str


@dataclass(frozen=True)
class Listed:
    """The word list of the cell from here on; an empty one means none."""

    id: str
    who: str
    when: str
    forms: dict[str, str] = field(repr=False)
    """Labels, with commas between, by form."""


@dataclass(frozen=True)
class Learned:
    """The cell was adapted to the sentences that count: a state that one can return to."""

    number: int
    when: str


@dataclass(frozen=True)
class Estimated:
    """How good the cell was in a state."""

    number: int
    score: Score


@dataclass(frozen=True)
class Returned:
    """The sentences that count are again those of an earlier state."""

    number: int
    who: str
    when: str


Entry = Accepted | Withdrawn | Listed | Learned | Estimated | Returned
_KINDS = {kind.__name__.lower(): kind for kind in get_args(Entry)}
MOST_NAME = 80
"""Most characters in the name of who accepts."""


class Journal:
    """The entries of a cell, in a file in a folder."""

    def __init__(self, folder: Path, cell: Cell) -> None:
        self.path = folder / f"{cell.file_name}.bio"
        self.damage = ""
        """What is wrong with the file, and from where on it does not count; empty if all of it does."""
        self._end = 0  # of what was read
        self._sum = 0  # its checksum

    def append(self, *entries: Entry) -> list[Entry]:
        """Write entries, and return all that are new since the last call: those of other processes, then these."""
        before = self._end, self._sum
        try:
            with self._open() as file:
                others = self._read(file)
                file.seek(self._end)
                if rest := file.read():
                    append_on_disk(self.path.with_name(f"{self.path.name}.damaged"), rest)
                    file.truncate(self._end)
                content, total = b"" if self._ends_blank(file) else b"\n\n", self._sum
                for entry in entries:
                    block, total = _render(entry, total)
                    content += block
                append_on_disk(self.path, content)
                self._end, self._sum = file.seek(0, os.SEEK_END), total
        except CrossfillError:
            self._end, self._sum = before  # what others wrote will be read again
            raise
        return [*others, *entries]

    def read(self) -> list[Entry]:
        """Read the entries that are new since the last call."""
        if not self.path.exists() or self.path.stat().st_size == self._end:
            return []
        with self._open() as file:
            return self._read(file)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            with locked(lock, wait=True), self.path.open("a+b", buffering=0) as file:
                yield file
        except OSError as error:
            raise _not_written(self.path, error) from None

    def _read(self, file: Any) -> list[Entry]:
        """Read on from where reading ended, up to the last whole entry."""
        entries, self.damage, place = [], "", 0
        if file.seek(0, os.SEEK_END) < self._end:
            raise OutputError(f"{self.path}: expected the file that was read before, found a shorter one; start again")
        file.seek(self._end)
        content = file.read()
        for block in content.split(b"\n\n"):
            if block.strip(b"\n"):
                try:
                    entry, self._sum = _parse(block.strip(b"\n"), self._sum)
                except (KeyError, TypeError, ValueError, AttributeError, DataError) as error:
                    file.seek(0)
                    line = file.read(self._end + place).count(b"\n") + 1
                    self.damage = (
                        f"{self.path}:{line}: expected an entry of a journal; {type(error).__name__}: {error}; what is "
                        f"from here on does not count, and will be kept in {self.path.name}.damaged"
                    )
                    break
                entries.append(entry)
            place += len(block) + 2
        self._end += min(place, len(content))
        return entries

    def _ends_blank(self, file: Any) -> bool:
        file.seek(max(0, self._end - 2))
        return file.read() in (b"", b"\n\n")


def _parse(block: bytes, before: int) -> tuple[Entry, int]:
    """Read an entry, and the checksum of all up to it; an error if that is not the one written."""
    first, *rows = block.decode().split("\n")
    head, _, written = first.rpartition("\t")
    total = _checksum(head, rows, before)
    if written != f"{total:08x}":
        raise ValueError("its checksum is wrong")
    name, details = head.removeprefix("# ").split("\t")
    kind, values = _KINDS[name], json.loads(details)
    if kind is Accepted:
        n_words, glued = values.pop("words"), values.pop("glued")
        words, labels = zip(*(row.split("\t") for row in rows), strict=True)
        values["sentence"] = Sentence(words, labels, tuple(i not in glued for i in range(n_words)) if glued else ())
    if kind is Estimated:
        values["score"] = Score(**values["score"])
    return kind(**values), total


def _render(entry: Entry, before: int) -> tuple[bytes, int]:
    """Write an entry, and the checksum of all up to it."""
    values, rows = {name: value for name, value in asdict(entry).items() if value is not None}, []
    if isinstance(entry, Accepted):
        sentence = entry.sentence
        del values["sentence"]
        values |= {"words": len(sentence), "glued": [i for i, space in enumerate(sentence.spaces) if not space]}
        rows = [f"{word}\t{label}" for word, label in zip(sentence.words, sentence.labels, strict=True)]
    head = f"# {type(entry).__name__.lower()}\t{json.dumps(values, ensure_ascii=False)}"
    total = _checksum(head, rows, before)
    return "\n".join([f"{head}\t{total:08x}", *rows, "", ""]).encode(), total


def _checksum(head: str, rows: Sequence[str], before: int) -> int:
    return crc32("\n".join([head, *rows]).encode(), before)


@dataclass(frozen=True)
class CellState:
    """What a cell was adapted to at some time; number 0 is the cell as it was loaded."""

    number: int
    when: str
    ids: tuple[str, ...]
    """The entries that counted."""
    score: Score | None = None
    listed: Listed | None = None
    """The word list that counted; none as long as nobody has given one."""


class JournalState:
    """What the entries of a journal amount to: the active sentences are those that count.

    At most one entry is active for a text: a later one with the same characters, however they are cut into words,
    replaces an earlier one.
    """

    def __init__(self) -> None:
        self.accepted: dict[str, Accepted] = {}
        """All sentences that were ever accepted, by id."""
        self.by_text: dict[str, Accepted] = {}
        """The active ones by the key of their text, in order of acceptance."""
        self.versions: dict[tuple[str, str], Accepted] = {}
        """What each person last accepted of a text and nobody took back, by name and key: learned from or not."""
        self.listed: Listed | None = None
        """The word list that counts."""
        self.states = [CellState(0, "", ())]
        self.current = 0
        """The number of the state that later sentences are added to."""

    def apply(self, entries: Iterable[Entry]) -> None:
        """Take entries into account."""
        for entry in entries:
            match entry:
                case Accepted():
                    self.accepted[entry.id] = self.versions[entry.who, text_key(entry.sentence)] = entry
                    self._remove(entry.replaces)
                    self.by_text.pop(text_key(entry.sentence), None)
                    self.by_text[text_key(entry.sentence)] = entry
                case Listed():
                    self.listed = entry
                case Learned():
                    self.states.append(CellState(entry.number, entry.when, self.active_ids, listed=self.listed))
                    self.current = entry.number
                case Estimated():
                    place = self.states.index(self.at(entry.number))
                    self.states[place] = replace(self.states[place], score=entry.score)
                case Returned():
                    active = [self.accepted[name] for name in self.at(entry.number).ids]
                    self.by_text = {text_key(one.sentence): one for one in active}
                    self.current, self.listed = entry.number, self.at(entry.number).listed
                case Withdrawn():
                    self._remove(entry.id)
                    self.versions = {key: one for key, one in self.versions.items() if one.id != entry.id}

    @property
    def active_ids(self) -> tuple[str, ...]:
        """The ids of the sentences that count, in order of acceptance."""
        return tuple(entry.id for entry in self.by_text.values())

    @property
    def unlearned(self) -> int:
        """Active sentences that the current state does not know."""
        return len(set(self.active_ids) - set(self.at(self.current).ids))

    @property
    def changed(self) -> bool:
        """Whether the active sentences or the word list differ from those of the current state."""
        state = self.at(self.current)
        return set(self.active_ids) != set(state.ids) or self.listed != state.listed

    def done(self, who: str | None = None) -> dict[str, Accepted]:
        """Return the active sentences by the key of their text; of a name, those that it has accepted."""
        if who is None:
            return dict(self.by_text)
        return {key: entry for (name, key), entry in self.versions.items() if name == who}

    def at(self, number: int) -> CellState:
        """Find the state of this number."""
        for state in self.states:
            if state.number == number:
                return state
        raise DataError(f"expected a state from 0 to {len(self.states) - 1}, got {number}")

    def _remove(self, name: str | None) -> None:
        self.by_text = {key: entry for key, entry in self.by_text.items() if entry.id != name}


def corpus_of(entry: Accepted) -> Corpus:
    """Make a corpus of an entry's sentence, as encoders expect it."""
    return Corpus.from_sentences([entry.sentence]).composed()


def append_on_disk(path: Path, content: bytes) -> None:
    """Append to a file, which may be new; all of it is on disk when this returns, or nothing is."""
    try:
        with path.open("ab", buffering=0) as file:
            start = file.seek(0, os.SEEK_END)
            try:
                while content:
                    content = content[file.write(content) :]  # a disk that gets full takes only a part
                os.fsync(file.fileno())
                if not start:
                    sync(path.parent)  # the name of a new file has to be on disk, too
            except OSError:
                file.truncate(start)
                raise
    except OSError as error:
        raise _not_written(path, error) from None


def _not_written(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"{path}: expected a file that can be written; {error.strerror or error}; nothing was saved: make room, or "
        "correct the permissions, and try again"
    )


def check_sentence(cell: Cell, sentence: Sentence, task: Task) -> None:
    """Refuse a sentence with other labels than the task's, or with none at all, or that no file can hold.

    Words may be left open (`UNLABELLED`).
    """
    if task.unit is not Unit.WORD:
        raise DataError(
            f"{cell}: expected a task that labels words, got one that labels {task.unit}s; write them into a file, one "
            "a line with its label, and adapt the cell to it (crossfill adapt)"
        )
    if not sentence.words:
        raise DataError(f"{cell}: expected a sentence with words, got none")
    if len(sentence.labels) != len(sentence):
        raise DataError(f"{cell}: expected {len(sentence)} labels, one per word, got {len(sentence.labels)}")
    if not any(sentence.labels):
        raise DataError(f"{cell}: expected a label of one word at least, got none")
    for word in sentence.words:
        if not word.strip() or on_one_line(word) != word or any("\ud800" <= letter <= "\udfff" for letter in word):
            raise DataError(f"{cell}: expected words without tabs and line breaks, got {word[:40]!a}")
    for before, label in zip(("O", *sentence.labels), sentence.labels, strict=False):
        if label not in (*task.labels, UNLABELLED):
            raise DataError(f"{cell}: " + unknown("label", label, task.labels))
        if (
            task.kind is TaskKind.SPANS
            and label.startswith("I-")
            and before not in (UNLABELLED, f"B-{label[2:]}", label)
        ):
            raise DataError(f"{cell}: expected B-{label[2:]} at the start of a span (IOB2), got {label} after {before}")


def check_name(who: str) -> None:
    """Refuse a name that does not fit on a line."""
    if len(who) > MOST_NAME or not who.isprintable():
        raise DataError(f"expected a name of at most {MOST_NAME} printable characters, got {who[:40]!a}")
