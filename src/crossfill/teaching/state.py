"""What a journal amounts to: the sentences that count, and the states one can return to."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b

from crossfill.grid.sentence import Corpus, Sentence
from crossfill.teaching.estimate import Score
from crossfill.teaching.journal import Accepted, Entry, Estimated, Learned, Returned


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
                    self.states = [replace(s, estimate=entry) if s.number == entry.number else s for s in self.states]
                case Returned():
                    names = self.at(entry.number).ids
                    self._active = {text_key(self.accepted[name].sentence): name for name in names}
                    self.current = entry.number
                case _:
                    self._remove(entry.id)

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

    def _remove(self, name: str | None) -> None:
        self._active = {key: other for key, other in self._active.items() if other != name}


def text_key(sentence: Sentence) -> str:
    """Hash a sentence's characters without white space: it does not matter what words they are cut into."""
    text = "".join("".join(sentence.words).split())
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def corpus_of(entry: Accepted) -> Corpus:
    """Make a corpus of an entry's sentence, as encoders expect it."""
    return Corpus.from_sentences([entry.sentence]).composed()
