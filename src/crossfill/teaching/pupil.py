"""A cell that is taught: its journal, what was encoded, and what goes on."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from crossfill.adaptation.cell import AdaptedCell
from crossfill.adaptation.examples import Examples, joined, sentence_hashes
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus
from crossfill.teaching.estimate import Estimate
from crossfill.teaching.journal import Accepted, Entry, Journal
from crossfill.teaching.lesson import Lesson


@dataclass
class Pupil:
    """A cell that is taught; everything here is guarded by `lock`."""

    cell: Cell
    journal: Journal
    before: AdaptedCell | None
    """The cell as it was loaded, if it was adapted before."""
    lesson: Lesson = field(default_factory=Lesson)
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
        self.lesson.apply(self.journal.append(*entries))

    def refresh(self) -> Lesson:
        """The lesson, with what other processes have appended."""
        self.lesson.apply(self.journal.read())
        return self.lesson

    def examples(self, names: Sequence[str]) -> Examples | None:
        """Encoded sentences: those the cell was loaded with but for any that the journal speaks of, then these."""
        own = joined(self.encoded[name] for name in names) if names else None
        if self.before is None:
            return own
        spoken_of = {text for entry in self.lesson.accepted.values() for text in sentence_hashes(corpus_of(entry))}
        old = self.before.examples
        kept = old.take([i for i, text in enumerate(old.hashes) if text not in spoken_of])
        parts = [part for part in (kept, own) if part is not None and len(part)]
        return joined(parts) if parts else None


def corpus_of(entry: Accepted) -> Corpus:
    """The sentence of an entry as encoders expect it."""
    return Corpus.from_sentences([entry.sentence]).composed()
