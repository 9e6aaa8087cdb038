"""What the journal of a cell amounts to: the sentences in force, and the states one can return to."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b

from crossfill.grid.sentence import Sentence
from crossfill.teaching.journal import Accepted, Entry, Estimated, Learned, Returned


@dataclass(frozen=True)
class State:
    """What a cell was adapted to at some time; number 0 is the cell as it was loaded."""

    number: int
    when: str
    ids: tuple[str, ...]
    """The entries that were in force."""
    estimate: Estimated | None = None


class Lesson:
    """A journal's entries, one after the other.

    At most one entry is in force for a text: a later one with the same characters, however they are cut into words,
    replaces an earlier one.
    """

    def __init__(self) -> None:
        self.accepted: dict[str, Accepted] = {}
        """All sentences that were ever accepted, by id."""
        self.states = [State(0, "", ())]
        self.current = 0
        """The number of the state that the cell is in, but for later sentences."""
        self._in_force: dict[str, str] = {}  # the text's key → id, in order of acceptance

    def apply(self, entries: Iterable[Entry]) -> None:
        """Take entries into account."""
        for entry in entries:
            self._apply(entry)

    @property
    def in_force(self) -> list[Accepted]:
        """The sentences that count, in order of acceptance."""
        return [self.accepted[name] for name in self._in_force.values()]

    @property
    def unlearned(self) -> int:
        """Sentences in force that the current state does not know."""
        known = set(self.state(self.current).ids)
        return sum(name not in known for name in self._in_force.values())

    @property
    def changed(self) -> bool:
        """Whether the sentences in force differ from those of the current state."""
        return set(self._in_force.values()) != set(self.state(self.current).ids)

    @property
    def by_text(self) -> dict[str, Accepted]:
        """The sentences that count, by the key of their text."""
        return {key: self.accepted[name] for key, name in self._in_force.items()}

    def state(self, number: int) -> State:
        """The state of this number."""
        return next(state for state in self.states if state.number == number)

    def _apply(self, entry: Entry) -> None:
        match entry:
            case Accepted():
                self.accepted[entry.id] = entry
                if entry.replaces in self.accepted:
                    self._remove(entry.replaces)
                self._in_force.pop(text_key(entry.sentence), None)
                self._in_force[text_key(entry.sentence)] = entry.id
            case Learned():
                self.states.append(State(entry.number, entry.when, tuple(self._in_force.values())))
                self.current = entry.number
            case Estimated():
                self.states = [
                    replace(state, estimate=entry) if state.number == entry.number else state for state in self.states
                ]
            case Returned():
                names = self.state(entry.number).ids
                self._in_force = {text_key(self.accepted[name].sentence): name for name in names}
                self.current = entry.number
            case _:
                self._remove(entry.id)

    def _remove(self, name: str | None) -> None:
        self._in_force = {key: other for key, other in self._in_force.items() if other != name}


def text_key(sentence: Sentence) -> str:
    """A hash of a sentence's characters but for white space, whatever words they are cut into."""
    text = "".join("".join(sentence.words).split())
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
