r"""The journal of a cell: every sentence that was accepted for it, in a file that only grows; and what it amounts to.

One file per cell, such as `ner-wol.bio` (a word, a tab, a label), in blocks that a blank line ends. The first line of a
block is a comment: a word for what happened, a tab, and a JSON object with its details:

    # accepted	{"id": "3f9a2c71", "who": "anna", "when": "2026-11-18T01:20:11Z", "words": 2, "glued": [0]}
    Dakar	B-LOC
    !	O

    # withdrawn	{"id": "3f9a2c71", "who": "anna", "when": "…"}
    # learned	{"number": 1, "when": "…"}
    # estimated	{"number": 1, "score": {"value": …, "low": …, "high": …}}
    # returned	{"number": 1, "who": "anna", "when": "…"}

An entry of an annotation tool has its `source` there, too. `glued` are the words that no space follows. What was
appended is on disk, and any number of processes may append to one file: each holds a lock, and first reads what others
have written.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from crossfill.errors import DataError, unknown
from crossfill.files import locked
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


Entry = Accepted | Withdrawn | Learned | Estimated | Returned
_KINDS = {kind.__name__.lower(): kind for kind in (Accepted, Withdrawn, Learned, Estimated, Returned)}
MOST_NAME = 80
"""Most characters in the name of who accepts."""


class Journal:
    """The entries of a cell, in a file in a folder."""

    def __init__(self, folder: Path, cell: Cell) -> None:
        self.path = folder / f"{cell.task.replace(':', '=')}-{cell.language}.bio"
        self._end = 0  # of what was read

    def append(self, *entries: Entry) -> list[Entry]:
        """Write entries, and return all that are new since the last call: those of other processes, then these."""
        before = self._end
        try:
            with self._open() as file:
                others = self._read(file)
                append_on_disk(self.path, "".join(map(_render, entries)).encode())
                self._end = file.seek(0, os.SEEK_END)
        except DataError:
            self._end = before  # what others wrote will be read again
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
            raise DataError(f"{self.path}: expected a file that can be written; {error.strerror}") from None

    def _read(self, file: Any) -> list[Entry]:
        """Read on from where reading ended; remove a block that a process left unfinished when it was killed."""
        file.seek(self._end)
        blocks, blank, rest = file.read().rpartition(b"\n\n")
        whole = (blocks + blank).decode()
        entries = [
            self._parse(match[0], whole.count("\n", 0, match.start()) + 1) for match in re.finditer(r"(?:.+\n)+", whole)
        ]
        if rest.strip():
            try:
                if not rest.endswith(b"\n"):
                    raise ValueError
                entries.append(self._parse(rest.decode(), 1))
                os.write(file.fileno(), b"\n")  # someone's editor has removed the last blank line
            except (DataError, ValueError):
                os.ftruncate(file.fileno(), self._end + len(blocks + blank))
        self._end = file.seek(0, os.SEEK_END)
        return entries

    def _parse(self, block: str, line: int) -> Entry:
        first, *rows = block.strip("\n").split("\n")
        try:
            name, details = first.removeprefix("# ").split("\t", 1)
            kind, values = _KINDS[name], json.loads(details)
            if kind is Accepted:
                n_words, glued = values.pop("words"), values.pop("glued")
                words, labels = zip(*(row.split("\t") for row in rows), strict=True)
                if len(words) != n_words:
                    raise ValueError(f"expected {n_words} words, got {len(words)}")
                values["sentence"] = Sentence(
                    words, labels, tuple(i not in glued for i in range(n_words)) if glued else ()
                )
            if kind is Estimated:
                values["score"] = Score(**values["score"])
            return kind(**values)
        except (KeyError, TypeError, ValueError, AttributeError, DataError) as error:
            raise DataError(
                f"{self.path}:{line}: expected an entry of a journal; {type(error).__name__}: {error}; restore "
                "the file, or move it out of the folder"
            ) from None


def _render(entry: Entry) -> str:
    values, rows = {name: value for name, value in asdict(entry).items() if value is not None}, ""
    if isinstance(entry, Accepted):
        sentence = entry.sentence
        del values["sentence"]
        values |= {"words": len(sentence), "glued": [i for i, space in enumerate(sentence.spaces) if not space]}
        rows = "".join(f"{word}\t{label}\n" for word, label in zip(sentence.words, sentence.labels, strict=True))
    return f"# {type(entry).__name__.lower()}\t{json.dumps(values, ensure_ascii=False)}\n{rows}\n"


@dataclass(frozen=True)
class CellState:
    """What a cell was adapted to at some time; number 0 is the cell as it was loaded."""

    number: int
    when: str
    ids: tuple[str, ...]
    """The entries that counted."""
    score: Score | None = None


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
        self.states = [CellState(0, "", ())]
        self.current = 0
        """The number of the state that later sentences are added to."""

    def apply(self, entries: Iterable[Entry]) -> None:
        """Take entries into account."""
        for entry in entries:
            match entry:
                case Accepted():
                    self.accepted[entry.id] = entry
                    self._remove(entry.replaces)
                    self.by_text.pop(text_key(entry.sentence), None)
                    self.by_text[text_key(entry.sentence)] = entry
                case Learned():
                    self.states.append(CellState(entry.number, entry.when, self.active_ids))
                    self.current = entry.number
                case Estimated():
                    place = self.states.index(self.at(entry.number))
                    self.states[place] = replace(self.states[place], score=entry.score)
                case Returned():
                    active = [self.accepted[name] for name in self.at(entry.number).ids]
                    self.by_text = {text_key(one.sentence): one for one in active}
                    self.current = entry.number
                case Withdrawn():
                    self._remove(entry.id)

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
        """Whether the active sentences differ from those of the current state."""
        return set(self.active_ids) != set(self.at(self.current).ids)

    def at(self, number: int) -> CellState:
        """Find the state of this number."""
        return next(state for state in self.states if state.number == number)

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
                file.write(content)
                os.fsync(file.fileno())
            except OSError:
                file.truncate(start)
                raise
        if not start and os.name == "posix":  # the name of a new file has to be on disk, too
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise DataError(f"{path}: expected a file that can be written; {error.strerror}; nothing was saved") from None


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
