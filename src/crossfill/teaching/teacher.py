"""The teacher: takes corrected sentences, keeps them on disk, and adapts their cells while these are served.

    accept(cell, sentences, who)     sentences with labels, on disk when it returns; the cell learns by itself every n
    withdraw(cell, ids, who)         take accepted sentences back
    learn(cell)                      adapt in the background; false if the cell is busy, or nothing is new
    busy(cell), wait(cell)           whether that goes on; wait until it ends
    version(cell)                    the number of the state that tags now, as text: new with every adaptation
    go_back(cell, number)            return to an earlier or later state, and to the sentences of that time
    progress(cell)                   sentences, estimated score, learning curve, what the next 20 are worth, states
    save_model(cell)                 write the adapted cell into the model folder, which nothing else changes

Cells may be given as text (`ner/wol`). All calls are safe from any thread, and return at once but for `wait`; bad input
is a `DataError`. The encoder is used under the lock `encoding`, which whoever tags with the same tagger also holds.
"""

import os
import secrets
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.heads import without_adapted
from crossfill.adaptation.own import Own
from crossfill.adaptation.storage import save_adapted
from crossfill.errors import CrossfillError, DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Metric
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.checks import check_name, check_sentence, check_unit
from crossfill.teaching.estimate import Estimate, estimate
from crossfill.teaching.journal import Accepted, Estimated, Journal, Learned, Returned, Withdrawn
from crossfill.teaching.lesson import State
from crossfill.teaching.pool import Pool
from crossfill.teaching.pupil import Pupil, corpus_of

EVERY = 10
"""New sentences after which a cell learns by itself."""
_NICENESS = 5


@dataclass(frozen=True)
class Progress:
    """How far the teaching of a cell has come."""

    sentences: int
    words: int
    unlearned: int
    """Sentences that wait for the next adaptation."""
    changed: bool
    """Whether there is anything to learn: new sentences, or some that were taken back."""
    version: str
    busy: bool
    metric: Metric
    estimate: Estimate | None
    """Of the last adaptation; none before the first."""
    states: tuple[State, ...]
    """All states that the cell was in, oldest first."""
    current: int
    """The number of the state whose sentences, and later ones, are in force."""
    problem: str | None
    """Why the last adaptation failed."""


class Teacher:
    """Teaches the cells of a tagger; see the top of this file."""

    def __init__(self, tagger: Tagger, folder: str | Path, every: int = EVERY, model: Path | None = None) -> None:
        """Take up what the journals in `folder` say; `every` 0 leaves learning to `learn`; `model` is the tagger's."""
        self.tagger, self.folder, self.every, self.model = tagger, Path(folder), every, model
        self.encoding = threading.Lock()
        self._lock = threading.Lock()
        self._pupils: dict[Cell, Pupil] = {}
        self._pools: dict[Cell, Pool] = {}
        self._closed = False
        self._learner = ThreadPoolExecutor(1, thread_name_prefix="learning")
        self._estimator = ThreadPoolExecutor(1, thread_name_prefix="estimating", initializer=_step_back)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{folder}: expected a folder for corrected sentences; {error.strerror}") from None
        for pupil in map(self._pupil, tagger.cells):
            if pupil.lesson.current:  # what was learned before is learned again
                self._begin(pupil, pupil.lesson.current)

    def accept(
        self, cell: str | Cell, sentences: Sequence[Sentence], who: str = "", replaces: str | None = None
    ) -> list[Accepted]:
        """Keep sentences with their labels; each takes the place of an entry with the same text, or of `replaces`."""
        pupil = self._pupil(cell)
        check_unit(pupil.cell, self.tagger.model.inventory.unit(pupil.cell.task))
        check_name(who)
        for sentence in sentences:
            check_sentence(pupil.cell, sentence, self._labels(pupil.cell))
        made = [Accepted(secrets.token_hex(6), who, _now(), sentence, replaces) for sentence in sentences]
        with pupil.lock:
            if replaces is not None and replaces not in pupil.refresh().accepted:
                raise DataError(f"{pupil.cell}: expected the id of an accepted sentence, got '{replaces[:20]}'")
            if made:
                pupil.write(*made)
            wanted = 0 < self.every <= pupil.lesson.unlearned
        if wanted:
            self.learn(pupil.cell)
        return made

    def withdraw(self, cell: str | Cell, ids: Sequence[str], who: str = "") -> None:
        """Take accepted sentences back; the next adaptation does without them."""
        pupil = self._pupil(cell)
        check_name(who)
        with pupil.lock:
            in_force = {entry.id for entry in pupil.refresh().in_force}
            if wrong := next((name for name in ids if name not in in_force), None):
                raise DataError(f"{pupil.cell}: expected the id of a sentence in force, got '{wrong[:20]}'")
            if ids:
                pupil.write(*(Withdrawn(name, who, _now()) for name in ids))

    def learn(self, cell: str | Cell) -> bool:
        """Adapt the cell to the sentences in force, in the background.

        False if nothing is new, or if the cell is busy: then it will learn what is new when it is done.
        """
        pupil = self._pupil(cell)
        with pupil.lock:
            return pupil.refresh().changed and self._begin(pupil, None)

    def busy(self, cell: str | Cell) -> bool:
        """Whether the cell is being adapted, or waits for another one."""
        learning = self._pupil(cell).learning
        return learning is not None and not learning.done()

    def wait(self, cell: str | Cell, timeout: float | None = None) -> None:
        """Wait until the cell is adapted and its score estimated; TimeoutError after `timeout` seconds each."""
        pupil = self._pupil(cell)
        if pupil.learning is not None:
            pupil.learning.result(timeout)
        if pupil.estimating is not None:
            pupil.estimating.result(timeout)

    def version(self, cell: str | Cell) -> str:
        """The number of the state that tags now; 0 for the model as it was loaded."""
        return str(self._pupil(cell).serving)

    def in_force(self, cell: str | Cell) -> list[Accepted]:
        """The sentences that count, in order of acceptance."""
        pupil = self._pupil(cell)
        with pupil.lock:
            return pupil.refresh().in_force

    def by_text(self, cell: str | Cell) -> dict[str, Accepted]:
        """The sentences that count, by `lesson.text_key` of their words."""
        pupil = self._pupil(cell)
        with pupil.lock:
            return pupil.refresh().by_text

    def pool(self, cell: str | Cell) -> Pool:
        """The sentences that wait to be corrected."""
        found = self.tagger.cell(cell)
        with self._lock:
            if found not in self._pools:
                self._pools[found] = Pool(self.folder, found, self.tagger, self.encoding)
            return self._pools[found]

    def go_back(self, cell: str | Cell, number: int, who: str = "") -> None:
        """Return to a state, earlier or later; sentences that it did not know stay in the journal, out of force."""
        pupil = self._pupil(cell)
        check_name(who)
        with pupil.lock:
            if self.busy(pupil.cell):
                raise DataError(f"{pupil.cell}: expected a cell that is not being adapted; wait a moment")
            if number not in [state.number for state in pupil.refresh().states]:
                last = len(pupil.lesson.states) - 1
                raise DataError(f"{pupil.cell}: expected a state from 0 to {last}, got {number}")
            pupil.write(Returned(number, who, _now()))
            self._begin(pupil, number)

    def progress(self, cell: str | Cell) -> Progress:
        """How far the teaching of the cell has come."""
        pupil = self._pupil(cell)
        with pupil.lock:
            lesson = pupil.refresh()
            in_force = lesson.in_force
            return Progress(
                sentences=len(in_force),
                words=sum(len(entry.sentence) for entry in in_force),
                unlearned=lesson.unlearned,
                changed=lesson.changed,
                version=str(pupil.serving),
                busy=self.busy(pupil.cell),
                metric=self.tagger.model.inventory.task(pupil.cell.task).metric,
                estimate=pupil.estimate,
                states=tuple(lesson.states),
                current=lesson.current,
                problem=pupil.problem,
            )

    def save_model(self, cell: str | Cell) -> Path:
        """Write the adapted cell into the model folder, as `crossfill adapt` does; returns the file."""
        found = self.tagger.cell(cell)
        if (learning := self._pupil(found).learning) is not None:
            learning.result()
        made = self.tagger.adapted.get(found)
        if self.model is None or made is None:
            what = "a cell that has learned" if self.model else "a tagger from a model folder"
            raise DataError(f"{found}: expected {what} to save, got none")
        return save_adapted(self.model, made)

    def close(self) -> None:
        """End what is under way, and begin nothing more."""
        self._closed = True
        for worker in (self._learner, self._estimator):
            worker.shutdown(cancel_futures=True)
        for pool in self._pools.values():
            pool.close()

    def _pupil(self, cell: str | Cell) -> Pupil:
        found = self.tagger.cell(cell)
        with self._lock:
            if found not in self._pupils:
                journal = Journal(self.folder, found, self._labels(found))
                self._pupils[found] = Pupil(found, journal, self.tagger.adapted.get(found))
                self._pupils[found].refresh()
            return self._pupils[found]

    def _labels(self, cell: Cell) -> tuple[str, ...]:
        return self.tagger.model.inventory.labels[cell.task]

    def _begin(self, pupil: Pupil, number: int | None) -> bool:
        """Adapt in the background, to the sentences of a state, or with none to those in force as a new state."""
        with pupil.lock:
            pupil.again = self.busy(pupil.cell)
            if not pupil.again:
                pupil.learning = self._learner.submit(self._learn, pupil, number)
            return not pupil.again

    def _learn(self, pupil: Pupil, number: int | None) -> None:
        while True:
            examples = None
            try:
                examples = self._adapt(pupil, number)
            except CrossfillError as error:
                pupil.problem = str(error)
            if examples is not None and not pupil.again:
                made = self.tagger.adapted_to(examples, pupil.cell)
                with self.encoding:  # features and heads of a model belong together
                    self.tagger.replace_adapted(pupil.cell, made)
            with pupil.lock:
                if not (pupil.again and pupil.lesson.changed):
                    return
                pupil.again, number = False, None

    def _adapt(self, pupil: Pupil, number: int | None) -> Examples | None:
        """Adapt at once, but for what takes longest to find, which stays as it was; what it was adapted to."""
        with pupil.lock:
            lesson = pupil.refresh()
            if number is None:
                number = len(lesson.states)
                pupil.write(Learned(number, _now()))  # from here on, new sentences are for the next state
            names = lesson.state(number).ids
        for name in names:
            if name not in pupil.encoded:
                corpus = corpus_of(lesson.accepted[name])
                with self.encoding:
                    pupil.encoded[name] = Examples.of(without_adapted(self.tagger.model), pupil.cell, corpus)
        examples, before = pupil.examples(names), self.tagger.adapted.get(pupil.cell)
        made = None
        if examples is not None:
            made = self.tagger.adapted_to(examples, pupil.cell, own=before.own if before is not None else Own())
        with pupil.lock, self.encoding:
            self.tagger.replace_adapted(pupil.cell, made)
            pupil.serving, pupil.problem = number, None
            pupil.estimating = self._estimator.submit(self._estimate, pupil, number, examples)
        return examples

    def _estimate(self, pupil: Pupil, number: int, examples: Examples | None) -> None:
        def given_up() -> bool:
            return self._closed or pupil.serving != number

        base = without_adapted(self.tagger.model)
        found = estimate(base, pupil.cell, examples, given_up) if examples is not None else None
        with pupil.lock:
            if not given_up():
                pupil.estimate = found
            if found is not None and pupil.lesson.state(number).estimate is None:
                score = found.score
                pupil.write(Estimated(number, score.value, score.low, score.high))


def _step_back() -> None:
    """Leave the processor to the threads that tag and learn, where the system can."""
    with suppress(AttributeError, OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
