"""The teacher: takes corrected sentences, keeps them on disk, and adapts their cells while these are served.

Cells may be given as text (`ner/wol`). All calls are safe from any thread, and return at once but for `wait`; bad input
is a `DataError`. The encoder is used under the lock `encoding`, which whoever tags with the same tagger also holds.
"""

import secrets
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crossfill.adaptation.cell import AdaptedCell
from crossfill.adaptation.examples import Examples, joined
from crossfill.adaptation.heads import without_adapted
from crossfill.adaptation.lexicon import Lexicon
from crossfill.adaptation.storage import save_adapted
from crossfill.data.lexicons import read_lexicon
from crossfill.errors import CrossfillError, DataError
from crossfill.files import sync
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.text_keys import sentence_hashes
from crossfill.prediction.calibration import rule_for
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.estimate import Estimate, estimate
from crossfill.teaching.journal import (
    Accepted,
    Entry,
    Estimated,
    Journal,
    JournalState,
    Learned,
    Listed,
    Returned,
    Withdrawn,
    check_name,
    check_sentence,
    corpus_of,
)
from crossfill.teaching.sentence_queue import SentenceQueue


@dataclass
class TaughtCell:
    """A cell, its journal, and what goes on."""

    cell: Cell
    journal: Journal
    queue: SentenceQueue
    before: AdaptedCell | None
    """The cell as it was loaded, if it was adapted before."""
    state: JournalState = field(default_factory=JournalState)
    encoded: dict[str, Examples] = field(default_factory=dict)
    """Accepted sentences with their features, by id."""
    serving: int = 0
    """The number of the state that tags."""
    learning: Future[None] | None = None
    busy: bool = False
    again: bool = False
    """Whether it was asked to learn while it was learning."""
    estimating: Future[None] | None = None
    estimate: Estimate | None = None
    lexicons: dict[str, Lexicon] = field(default_factory=dict)
    """Word lists of the journal with their features, by id."""
    problem: str | None = None

    def write(self, *entries: Entry) -> None:
        """Append entries to the journal, and take them into account."""
        if entries:
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
            if others := [i for i, text in enumerate(old.hashes) if text not in mentioned]:
                parts.insert(0, old.take(others))
        return joined(parts) if parts else None


class Teacher:
    """Teaches the cells of a tagger; see the top of this file."""

    def __init__(self, tagger: Tagger, folder: str | Path, every: int = 10, model: Path | None = None) -> None:
        """Continue from the journals in `folder`.

        `every`: how many new sentences make a cell learn by itself; 0 leaves that to `learn`.
        `model`: the folder of the tagger's model, which `save_model` writes to.
        """
        self.tagger, self.folder, self.every, self.model = tagger, Path(folder), every, model
        self.encoding = threading.Lock()
        self._lock = threading.RLock()  # of all that is known of cells; never held while `encoding` is waited for
        self._closed = False
        self._learner, self._estimator, self._encoder = (
            ThreadPoolExecutor(1, thread_name_prefix=name) for name in ("learning", "estimating", "encoding")
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        for above in self.folder.absolute().parents:  # a new folder is as safe as its name in the one above
            with suppress(PermissionError):
                sync(above)
        self._taught: dict[Cell, TaughtCell] = {}
        for cell in tagger.cells:
            queue = SentenceQueue(self.folder, cell, tagger, self.encoding, self._encoder)
            taught = TaughtCell(cell, Journal(self.folder, cell), queue, tagger.adapted.get(cell))
            self._taught[cell] = taught
            if number := taught.refresh().current:  # what was learned before is learned again
                self._begin(taught, number)

    @property
    def damage(self) -> list[str]:
        """What is wrong with the journals."""
        return [taught.journal.damage for taught in self._taught.values() if taught.journal.damage]

    def accept(
        self,
        cell: str | Cell,
        sentences: Sequence[Sentence],
        who: str = "",
        replaces: str | None = None,
        source: str | None = None,
    ) -> list[Accepted]:
        """Keep sentences with their labels; each replaces an entry with the same text, and the one `replaces` names.

        `source` names the annotation in another program that they are from.
        """
        taught = self._taught_cell(cell)
        task = self.tagger.model.inventory.task(taught.cell.task)
        check_name(who)
        for sentence in sentences:
            check_sentence(taught.cell, sentence, task)
        entries = [Accepted(secrets.token_hex(6), who, _now(), s, replaces, source) for s in sentences]
        with self._lock:
            if replaces is not None and replaces not in taught.refresh().accepted:
                raise DataError(f"{taught.cell}: expected the id of an accepted sentence, got '{replaces[:20]}'")
            taught.write(*entries)
            is_time = 0 < self.every <= taught.state.unlearned
        if is_time:
            self.learn(taught.cell)
        return entries

    def withdraw(self, cell: str | Cell, ids: Sequence[str], who: str = "") -> None:
        """Take accepted sentences back, but for those that do not count as it is; the next adaptation follows."""
        taught = self._taught_cell(cell)
        check_name(who)
        with self._lock:
            state = taught.refresh()
            if wrong := next((name for name in ids if name not in state.accepted), None):
                raise DataError(f"{taught.cell}: expected the id of an accepted sentence, got '{wrong[:20]}'")
            taught.write(*(Withdrawn(name, who, _now()) for name in ids if name in state.active_ids))

    def list_words(self, cell: str | Cell, words: str | Mapping[str, str], who: str = "") -> Listed:
        """Make this the word list of the cell, in place of any other; an empty one removes it."""
        taught = self._taught_cell(cell)
        check_name(who)
        forms = read_lexicon(words, self.tagger.model.inventory.task(taught.cell.task)) if words else []
        entry = Listed(secrets.token_hex(6), who, _now(), {" ".join(form.words): form.labels for form in forms})
        with self._lock:
            taught.write(entry)
        if self.every:
            self.learn(taught.cell)
        return entry

    def learn(self, cell: str | Cell) -> bool:
        """Adapt the cell to the active sentences and its word list, in the background.

        False if nothing is new, or if the cell is busy: then it will learn what is new when it is done.
        """
        taught = self._taught_cell(cell)
        with self._lock:
            return taught.refresh().changed and self._begin(taught, None)

    def busy(self, cell: str | Cell) -> bool:
        """Whether the cell is being adapted, or waits for another one."""
        return self._taught_cell(cell).busy

    def wait(self, cell: str | Cell, timeout: float | None = None) -> None:
        """Wait until the cell is adapted and its score estimated; TimeoutError after `timeout` seconds each."""
        taught = self._taught_cell(cell)
        if taught.learning is not None:
            taught.learning.result(timeout)
        if taught.estimating is not None:
            taught.estimating.result(timeout)

    def version(self, cell: str | Cell) -> str:
        """Return the number of the state that tags now; 0 for the model as it was loaded."""
        return str(self._taught_cell(cell).serving)

    def by_text(self, cell: str | Cell, who: str | None = None) -> dict[str, Accepted]:
        """Find the sentences that count, or those that a person did, by `text_key`, in order of acceptance."""
        with self._lock:
            return self._taught_cell(cell).refresh().done(who)

    def active(self, cell: str | Cell) -> list[Accepted]:
        """List the sentences that count, in order of acceptance."""
        return list(self.by_text(cell).values())

    def queue(self, cell: str | Cell) -> SentenceQueue:
        """Return the queue of sentences that wait to be corrected."""
        return self._taught_cell(cell).queue

    def go_back(self, cell: str | Cell, number: int, who: str = "") -> None:
        """Return to a state, earlier or later; sentences that it did not know stay in the journal, but do not count."""
        taught = self._taught_cell(cell)
        check_name(who)
        with self._lock:
            if self.busy(taught.cell):
                raise DataError(f"{taught.cell}: expected a cell that is not being adapted; wait a moment")
            taught.refresh().at(number)  # an error if there is none
            taught.write(Returned(number, who, _now()))
            self._begin(taught, number)

    def progress(self, cell: str | Cell, who: str | None = None) -> dict[str, Any]:
        """Report how far the teaching of the cell has come; with `who`, what waits for that person.

        `unlearned` sentences wait for the next adaptation, which would differ if the cell `changed`; `state` is the
        number of the state that tags now, `current` that of the state whose sentences, and later ones, are active. The
        `estimate` is of the last adaptation, and `problem` says why one failed.
        """
        taught, others = self._taught_cell(cell), () if who is None else self.by_text(cell)
        waiting = taught.queue.waiting(self.by_text(cell, who), others)
        with self._lock:
            state = taught.refresh()
            return {
                "metric": self.tagger.model.inventory.task(taught.cell.task).metric,
                "sentences": len(state.by_text),
                "unlearned": state.unlearned,
                "changed": state.changed,
                "waiting": waiting,
                "listed": len(state.listed.forms) if state.listed else None,
                "state": str(taught.serving),
                "current": state.current,
                "states": [
                    {"number": one.number, "when": one.when, "sentences": len(one.ids), "score": one.score}
                    for one in state.states
                ],
                "busy": self.busy(taught.cell),
                "every": self.every,
                "estimate": taught.estimate,
                "problem": taught.problem or taught.journal.damage or None,
            }

    def save_model(self, cell: str | Cell) -> Path:
        """Write the adapted cell into the model folder, as `crossfill adapt` does; returns the file."""
        taught = self._taught_cell(cell)
        if taught.learning is not None:
            taught.learning.result()
        adapted = self.tagger.adapted.get(taught.cell)
        if self.model is None or adapted is None:
            what = "a cell that has learned" if self.model else "a tagger from a model folder"
            raise DataError(f"{taught.cell}: expected {what} to save, got none")
        return save_adapted(self.model, adapted)

    def close(self) -> None:
        """End what is running, and start nothing more."""
        self._closed = True
        for worker in (self._learner, self._estimator, self._encoder):
            worker.shutdown(cancel_futures=True)

    def _taught_cell(self, cell: str | Cell) -> TaughtCell:
        return self._taught[self.tagger.cell(cell)]

    def _begin(self, taught: TaughtCell, number: int | None) -> bool:
        """Adapt in the background to the sentences of a state, or with no number to those that count, a new state."""
        with self._lock:
            taught.again = taught.busy
            if not taught.again:
                taught.learning = self._learner.submit(self._learn, taught, number)
                taught.busy = True
            return not taught.again

    def _learn(self, taught: TaughtCell, number: int | None) -> None:
        while True:
            try:
                self._adapt(taught, number)
            except CrossfillError as error:
                taught.problem = str(error)
            except BaseException:
                taught.busy = False
                raise
            with self._lock:
                taught.busy = taught.again and taught.state.changed
                if not taught.busy:
                    return
                taught.again, number = False, None

    def _adapt(self, taught: TaughtCell, number: int | None) -> None:
        """Adapt to the sentences of a state, serve what comes of it, and have its score estimated."""
        with self._lock:
            state = taught.refresh()
            if number is None:
                number = len(state.states)
                taught.write(Learned(number, _now()))  # from here on, new sentences are for the next state
            names, listed = state.at(number).ids, state.at(number).listed
        for name in names:
            if name not in taught.encoded:
                corpus = corpus_of(state.accepted[name])
                with self.encoding:
                    taught.encoded[name] = Examples.of(without_adapted(self.tagger.model), taught.cell, corpus)
        examples, task = taught.examples(names), self.tagger.model.inventory.task(taught.cell.task)
        adapted, lexicon = (taught.before, taught.before and taught.before.lexicon) if listed is None else (None, None)
        if listed is not None and listed.forms:
            if listed.id not in taught.lexicons:
                forms, base = read_lexicon(listed.forms, task), without_adapted(self.tagger.model)
                with self.encoding:
                    taught.lexicons[listed.id] = Lexicon.of(base, taught.cell, task, forms)
            lexicon = taught.lexicons[listed.id]
            examples = examples or Examples.none(self.tagger.model.width(task.name, task.unit))
        if examples is not None:
            adapted = self.tagger.adapted_to(examples, taught.cell, lexicon=lexicon)
        with self.encoding, self._lock:  # features and heads of a model belong together
            self.tagger.replace_adapted(taught.cell, adapted)
            taught.serving, taught.problem = number, None
            taught.estimating = self._estimator.submit(self._estimate, taught, number, examples, lexicon)

    def _estimate(self, taught: TaughtCell, number: int, examples: Examples | None, lexicon: Lexicon | None) -> None:
        def given_up() -> bool:
            return self._closed or taught.serving != number

        result = None
        if examples is not None and len(examples):
            calibration = self.tagger.calibration and self.tagger.calibration.of(taught.cell.task, 0)
            base, rule = without_adapted(self.tagger.model), rule_for(calibration, "metric")
            result = estimate(base, taught.cell, examples, rule, given_up, lexicon)
        with self._lock:
            if not given_up():
                taught.estimate = result
            if result is not None and taught.state.at(number).score is None:
                taught.write(Estimated(number, result.score))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
