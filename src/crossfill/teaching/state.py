"""A cell that is taught: the sentences of its journal that count, the states one can return to, and what goes on."""

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from crossfill.adaptation.cell import AdaptedCell
from crossfill.adaptation.examples import Examples, joined, sentence_hashes
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.teaching.estimate import Estimate, Score
from crossfill.teaching.journal import Accepted, Entry, Estimated, Journal, Learned, Returned


@dataclass(frozen=True)
class CellState:
    """What a cell was adapted to at some time; number 0 is the cell as it was loaded."""

    number: int
    when: str
    ids: tuple[str, ...]
    """The entries that counted."""
    estimate: Estimated | None = None

    @property
    def sentences(self) -> int:
        """Number of entries that counted."""
        return len(self.ids)

    @property
    def score(self) -> Score | None:
        """The score that was estimated, if any was."""
        return self.estimate and Score(self.estimate.score, self.estimate.low, self.estimate.high)


class JournalState:
    """What the entries of a journal amount to: the active sentences are those that count.

    At most one entry is active for a text: a later one with the same characters, however they are cut into words,
    replaces an earlier one.
    """

    def __init__(self) -> None:
        self.accepted: dict[str, Accepted] = {}
        """All sentences that were ever accepted, by id."""
        self.states = [CellState(0, "", ())]
        self.current = 0
        """The number of the state that later sentences are added to."""
        self._active: dict[str, str] = {}  # the text's key → id, in order of acceptance

    def apply(self, entries: Iterable[Entry]) -> None:
        """Take entries into account."""
        for entry in entries:
            self._apply(entry)

    @property
    def active(self) -> list[Accepted]:
        """The sentences that count, in order of acceptance."""
        return [self.accepted[name] for name in self._active.values()]

    @property
    def unlearned(self) -> int:
        """Active sentences that the current state does not know."""
        known = set(self.at(self.current).ids)
        return sum(name not in known for name in self._active.values())

    @property
    def changed(self) -> bool:
        """Whether the active sentences differ from those of the current state."""
        return set(self._active.values()) != set(self.at(self.current).ids)

    @property
    def by_text(self) -> dict[str, Accepted]:
        """The sentences that count, by the key of their text."""
        return {key: self.accepted[name] for key, name in self._active.items()}

    def at(self, number: int) -> CellState:
        """Find the state of this number."""
        return next(state for state in self.states if state.number == number)

    def _apply(self, entry: Entry) -> None:
        match entry:
            case Accepted():
                self.accepted[entry.id] = entry
                if entry.replaces in self.accepted:
                    self._remove(entry.replaces)
                self._active.pop(text_key(entry.sentence), None)
                self._active[text_key(entry.sentence)] = entry.id
            case Learned():
                self.states.append(CellState(entry.number, entry.when, tuple(self._active.values())))
                self.current = entry.number
            case Estimated():
                self.states = [
                    replace(state, estimate=entry) if state.number == entry.number else state for state in self.states
                ]
            case Returned():
                names = self.at(entry.number).ids
                self._active = {text_key(self.accepted[name].sentence): name for name in names}
                self.current = entry.number
            case _:
                self._remove(entry.id)

    def _remove(self, name: str | None) -> None:
        self._active = {key: other for key, other in self._active.items() if other != name}


def text_key(sentence: Sentence) -> str:
    """Hash a sentence's characters without white space: it does not matter what words they are cut into."""
    text = "".join("".join(sentence.words).split())
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


@dataclass
class TaughtCell:
    """A cell, its journal, and what goes on; everything here is guarded by `lock`."""

    cell: Cell
    journal: Journal
    before: AdaptedCell | None
    """The cell as it was loaded, if it was adapted before."""
    state: JournalState = field(default_factory=JournalState)
    lock: threading.RLock = field(default_factory=threading.RLock)
    encoded: dict[str, Examples] = field(default_factory=dict)
    """Accepted sentences with their features, by id."""
    serving: int = 0
    """The number of the state that tags."""
    learning: Future[None] | None = None
    again: bool = False
    """Whether it was asked to learn while it was learning."""
    estimating: Future[None] | None = None
    estimate: Estimate | None = None
    problem: str | None = None

    def write(self, *entries: Entry) -> None:
        """Append entries to the journal, and take them into account."""
        self.state.apply(self.journal.append(*entries))

    def refresh(self) -> JournalState:
        """Read what other processes have appended."""
        self.state.apply(self.journal.read())
        return self.state

    def examples(self, names: Sequence[str]) -> Examples | None:
        """Join examples the cell was loaded with and that the journal does not mention, then the named ones."""
        parts = [self.encoded[name] for name in names]
        if self.before is not None:
            mentioned = {text for entry in self.state.accepted.values() for text in sentence_hashes(corpus_of(entry))}
            old = self.before.examples
            rest = old.take([i for i, text in enumerate(old.hashes) if text not in mentioned])
            parts = [rest, *parts] if len(rest) else parts
        return joined(parts) if parts else None


def corpus_of(entry: Accepted) -> Corpus:
    """Make a corpus of an entry's sentence, as encoders expect it."""
    return Corpus.from_sentences([entry.sentence]).composed()
