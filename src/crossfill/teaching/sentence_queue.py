"""Sentences of a cell that wait to be corrected, in the order in which `annotate` would have them annotated."""

import json
import threading
import time
from collections.abc import Container, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.task import Unit
from crossfill.grid.text_keys import text_key
from crossfill.prediction.predict import encode, predict_features
from crossfill.tagger.annotation import Candidates, Cost, Strategy, choose
from crossfill.tagger.tagger import Tagger
from crossfill.teaching.journal import append_on_disk

MOST_SENTENCES, MOST_WORDS = 2_000, 30_000
"""Sentences that may wait, and their words: their features are kept in memory."""
HELD = 600.0
"""Seconds for which a sentence that one tab of a browser shows is not offered to another."""
PATIENCE = 0.4
"""Seconds to wait for more sentences to be encoded before one is chosen among those that are."""
_AT_ONCE = 16


def waiting_file(folder: Path, cell: Cell) -> Path:
    """Name the file of the sentences of a cell that wait."""
    return folder / f"{cell.file_name}.waiting.jsonl"


def let_wait(folder: Path, cell: Cell, sentences: Iterable[Sentence]) -> Path:
    """Let sentences wait with the labels that they have, which are to be looked at in this order; returns the file.

    A server that teaches the cell finds them when it starts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    append_on_disk(path := waiting_file(folder, cell), "".join(map(_line, sentences)).encode())
    return path


def _line(sentence: Sentence) -> str:
    values = {"words": sentence.words, "spaces": sentence.spaces} | (
        {"labels": sentence.labels} if sentence.labels else {}
    )
    return json.dumps(values, ensure_ascii=False) + "\n"


class SentenceQueue:
    """The waiting sentences of a cell; on disk as JSON lines next to the cell's journal."""

    def __init__(self, folder: Path, cell: Cell, tagger: Tagger, encoding: threading.Lock, encoder: Executor) -> None:
        """`encoder` is where sentences are encoded, `encoding` the lock of whoever uses the model's encoder."""
        self.cell, self._tagger, self._encoding, self._encoder = cell, tagger, encoding, encoder
        self.path = waiting_file(folder, cell)
        self._sentences: dict[str, Sentence] = {}
        self._features: dict[str, Float[Tensor, "words features"]] = {}
        self._skipped: dict[str, None] = {}
        self._held: dict[str, tuple[str, float]] = {}  # the tab that shows it, until when
        self._order: list[str] = []  # keys, most worth annotating first
        self._order_of: tuple[str, Strategy, Cost, int] | None = None  # what that was computed from
        self._changed = threading.Condition()
        for line in self.path.read_bytes().split(b"\n") if self.path.exists() else ():
            # half a line, of a process that was killed, was never acknowledged
            with suppress(ValueError, KeyError, TypeError, RecursionError, DataError):
                values = json.loads(line)
                words, labels = tuple(map(str, values["words"])), tuple(map(str, values.get("labels", ())))
                sentence = Sentence(words, labels, tuple(map(bool, values["spaces"])))
                self._sentences[text_key(sentence)] = sentence

    def waiting(self, done: Container[str], others: Iterable[str] = ()) -> int:
        """Number of sentences, and of others with these keys, that are not done."""
        with self._changed:
            return sum(key not in done for key in {*self._sentences, *others})

    def add(self, sentences: Iterable[Sentence], done: Container[str]) -> int:
        """Let sentences wait that do not yet and are not done; returns how many are new."""
        with self._changed:
            self._drop([key for key in self._sentences if key in done])
            new = {text_key(s): Sentence(s.words, (), s.spaces) for s in sentences if len(s)}
            new = {key: s for key, s in new.items() if key not in self._sentences and key not in done}
            n_words = sum(map(len, self._sentences.values())) + sum(map(len, new.values()))
            if len(self._sentences) + len(new) > MOST_SENTENCES or n_words > MOST_WORDS:
                raise DataError(
                    f"{self.cell}: expected at most {MOST_SENTENCES:,} sentences and {MOST_WORDS:,} words to wait, got "
                    f"{len(self._sentences) + len(new):,} and {n_words:,}; correct some, or clear what waits"
                )
            if new:
                append_on_disk(self.path, "".join(map(_line, new.values())).encode())
            self._sentences |= new
        self._encoder.submit(self._encode)
        return len(new)

    def clear(self) -> None:
        """Let nothing wait any more."""
        with self._changed:
            self.path.unlink(missing_ok=True)
            self._drop(list(self._sentences))

    def skip(self, key: str) -> None:
        """Offer a sentence again only when no other is left."""
        with self._changed:
            self._skipped.pop(key, None)
            self._skipped[key] = None
            self._held.pop(key, None)

    def take(
        self, strategy: Strategy, cost: Cost, version: str, tab: str, done: Container[str]
    ) -> tuple[str, Sentence] | None:
        """Choose the sentence most worth annotating that is not done; one that another tab shows comes last."""
        with self._changed:
            if all(key in done for key in self._sentences):
                return None
            self._encoder.submit(self._encode)
            self._changed.wait_for(lambda: len(self._features) == len(self._sentences), PATIENCE)
            self._changed.wait_for(lambda: self._features, 60)
            keys, now = self._ranked(strategy, cost, version), time.monotonic()
            taken = {key for key, (other, until) in self._held.items() if other != tab and until > now}
            late = {key: place for place, key in enumerate(self._skipped)}
            left = [key for key in keys if key in self._sentences and key not in done]
            if not left:
                return None
            # what another tab shows comes after what was skipped, and that after all others
            best = min(left, key=lambda key: (key in taken, late.get(key, -1)))
            self._held[best] = (tab, now + HELD)
            return best, self._sentences[best]

    def _drop(self, keys: Iterable[str]) -> None:
        self._order_of = None
        for key in keys:
            for by_key in (self._sentences, self._features, self._skipped, self._held):
                by_key.pop(key, None)

    def _ranked(self, strategy: Strategy, cost: Cost, version: str) -> list[str]:
        """Rank all encoded sentences; the order stays until the cell has learned, or more are encoded.

        Those that wait with labels come first, in the order in which they were given.
        """
        n = len(self._features)
        if self._order_of != (version, strategy, cost, n):
            keys = [key for key in self._sentences if key in self._features]
            features = torch.cat([self._features[key] for key in keys])
            model, settings = self._tagger.model, self._tagger.config.prediction  # another model may take its place
            sentences = [self._sentences[key] for key in keys]
            cues = model.cues(self.cell, Corpus.from_text(sentences))
            prediction = predict_features(model, features, self.cell, settings.samples, settings.seed, cues)
            chosen = choose(Candidates.of(sentences, prediction), len(keys), strategy, cost)
            labelled = [key for key in self._sentences if key in self._features and self._sentences[key].labels]
            self._order = list(dict.fromkeys([*labelled, *(keys[i] for i in chosen)]))
            self._order_of = (version, strategy, cost, n)
        return self._order

    def _encode(self) -> None:
        """Encode what waits, a few sentences at a time, so that nobody who tags waits long."""
        while True:
            with self._changed:
                keys = [key for key in self._sentences if key not in self._features][:_AT_ONCE]
                sentences = [self._sentences[key] for key in keys]
            if not keys:
                return
            model = self._tagger.model
            with self._encoding:
                inputs = model.encoder.prepare(Corpus.from_text(sentences), self.cell.language)
                features = encode(model, inputs, self.cell.task).float().cpu()
            words = model.inventory.task(self.cell.task).unit is Unit.WORD
            parts = features.split([len(sentence) if words else 1 for sentence in sentences])
            with self._changed:
                self._features |= {key: part for key, part in zip(keys, parts, strict=True) if key in self._sentences}
                self._changed.notify_all()
