"""Sentences and corpora: produced by `data`, read by `encoders`."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import overload

import numpy as np

from crossfill.errors import DataError
from crossfill.grid.unicode import composed, is_composed


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its words, their labels in one task, where there are spaces between them, and where it stood.

    Sentences with the same words, labels and spaces are equal, wherever they stood.
    """

    words: tuple[str, ...]
    labels: tuple[str, ...] = ()
    """One label per word, or none at all for unlabelled text."""
    spaces: tuple[bool, ...] = ()
    """Whether a space follows each word; empty when one follows every word."""
    source: str = field(default="", compare=False, repr=False)
    """The text that the words were cut from, with the sentences around them; empty if they came as words."""
    starts: tuple[int, ...] = field(default=(), compare=False)
    """Where each word starts in `source`, in characters (Unicode code points)."""

    def __post_init__(self) -> None:
        for name, values in (("labels", self.labels), ("spaces", self.spaces), ("starts", self.starts)):
            if values and len(values) != len(self.words):
                raise DataError(f"expected {len(self.words)} {name}, one per word, got {len(values)}: {self.text[:60]}")
        end = 0
        for word, start in zip(self.words, self.starts, strict=False):
            if start < end:
                raise DataError(f"expected '{word[:60]}' at character {end} of the text or later, got {start}")
            if not self.source.startswith(word, start):
                found = self.source[start : start + len(word)]
                raise DataError(f"expected '{word[:60]}' at character {start} of the text, got '{found[:60]}'")
            end = start + len(word)

    @classmethod
    def cut(cls, source: str, bounds: Iterable[tuple[int, int]]) -> "Sentence":
        """The sentence whose words stand in `source` from each start to each end; a gap between words is a space."""
        kept = tuple(bounds)
        words = tuple(source[start:end] for start, end in kept)
        spaces = tuple(after > end for (_, end), (after, _) in pairwise(kept))
        return cls(words, (), (*spaces, False) if kept else (), source, tuple(start for start, _ in kept))

    def __len__(self) -> int:
        return len(self.words)

    @property
    def text(self) -> str:
        """The sentence with single spaces, rebuilt from words and spaces."""
        if len(self.spaces) != len(self.words):
            return " ".join(self.words)
        gaps = (*self.spaces[:-1], False)
        return "".join(word + " " * gap for word, gap in zip(self.words, gaps, strict=False))

    @property
    def original(self) -> str:
        """The text that `offsets` count in: `source` if the words were cut from it, else `text`."""
        return self.source if self.starts else self.text

    @property
    def offsets(self) -> tuple[tuple[int, int], ...]:
        """The start and the end (exclusive) of each word in `original`, in characters (Unicode code points)."""
        if self.starts:
            return tuple((start, start + len(word)) for start, word in zip(self.starts, self.words, strict=True))
        found, start = [], 0
        for i, word in enumerate(self.words):
            found.append((start, start + len(word)))
            start += len(word) + (self.spaces[i] if self.spaces else True)
        return tuple(found)


class Column(Sequence[str]):
    """Many strings, each distinct one stored once: string i is `vocabulary[codes[i]]`."""

    __slots__ = ("codes", "vocabulary")

    def __init__(self, vocabulary: tuple[str, ...], codes: np.ndarray) -> None:
        self.vocabulary, self.codes = vocabulary, codes

    @classmethod
    def of(cls, values: Iterable[str]) -> "Column":
        """The column of these strings, with its vocabulary in order of appearance."""
        ids: dict[str, int] = {}
        codes = np.fromiter((ids.setdefault(value, len(ids)) for value in values), dtype=np.int32)
        return cls(tuple(ids), codes)

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(map(self.vocabulary.__getitem__, self.codes[index].tolist()))
        return self.vocabulary[self.codes[index]]

    def __iter__(self) -> Iterator[str]:
        return map(self.vocabulary.__getitem__, self.codes.tolist())

    @classmethod
    def joined(cls, columns: Sequence["Column"]) -> "Column":
        """These columns, one after the other."""
        ids: dict[str, int] = {}
        parts = [
            np.array([ids.setdefault(text, len(ids)) for text in column.vocabulary], dtype=np.int32)[column.codes]
            for column in columns
        ]
        return cls(tuple(ids), np.concatenate(parts))

    def take(self, positions: np.ndarray) -> "Column":
        """The strings at these positions."""
        return Column(self.vocabulary, self.codes[positions])

    def map(self, change: Callable[[str], str]) -> "Column":
        """Apply `change` to every string, once per distinct string."""
        changed = Column.of(change(text) for text in self.vocabulary)
        return Column(changed.vocabulary, changed.codes[self.codes])

    def positions_in(self, places: Mapping[str, int]) -> np.ndarray:
        """The position of every string in `places`; −1 for strings that are not there."""
        return np.array([places.get(text, -1) for text in self.vocabulary], dtype=np.int64)[self.codes]

    def counts(self) -> Counter[str]:
        """How often each string occurs."""
        found = np.bincount(self.codes, minlength=len(self.vocabulary)).tolist()
        counts: Counter[str] = Counter()
        for text, n in zip(self.vocabulary, found, strict=True):
            if n:
                counts[text] += n
        return counts

    def distinct(self) -> set[str]:
        """The distinct strings that occur."""
        return set(self.counts())


class Corpus(Sequence[Sentence]):
    """A sequence of sentences in flat columns, so that a whole corpus can be mapped into memory at once.

    Sentence i has the words `words[offsets[i]:offsets[i + 1]]`, and likewise for `labels` and `spaces`.
    """

    def __init__(self, words: Column, labels: Column, spaces: np.ndarray, offsets: np.ndarray) -> None:
        """`labels` and `spaces` are as long as `words`, or empty (unlabelled; a space after every word)."""
        self.words, self.labels, self.spaces, self.offsets = words, labels, spaces, offsets

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence]) -> "Corpus":
        """The corpus of these sentences: all of them labelled, or none."""
        kept = tuple(sentences)
        offsets = np.zeros(len(kept) + 1, dtype=np.int64)
        np.cumsum([len(s) for s in kept], out=offsets[1:])
        labelled = [s for s in kept if s.labels]
        if labelled and any(len(s) for s in kept if not s.labels):
            raise DataError(f"expected labels in every sentence, got them in {len(labelled)} of {len(kept)}")
        spaced = any(s.spaces for s in kept)
        spaces = [space for s in kept for space in (s.spaces or (True,) * len(s))] if spaced else []
        return cls(
            words=Column.of(word for s in kept for word in s.words),
            labels=Column.of(label for s in kept for label in s.labels),
            spaces=np.array(spaces, dtype=np.bool_),
            offsets=offsets,
        )

    @classmethod
    def from_text(cls, sentences: Iterable[Sentence]) -> "Corpus":
        """The text of these sentences as encoders expect it: without labels, in Unicode's composed form (NFC)."""
        return cls.from_sentences(Sentence(s.words, (), s.spaces) for s in sentences).composed()

    @classmethod
    def joined(cls, parts: Iterable["Corpus"]) -> "Corpus":
        """These corpora as one: all of them labelled, or none."""
        corpora = [part for part in parts if len(part)]
        if len(corpora) <= 1:
            return corpora[0] if corpora else EMPTY
        labelled = [corpus for corpus in corpora if len(corpus.labels)]
        if labelled and any(corpus.n_words for corpus in corpora if not len(corpus.labels)):
            raise DataError(f"expected labels in every corpus, got them in {len(labelled)} of {len(corpora)}")
        lengths = np.concatenate([corpus.lengths for corpus in corpora])
        spaced = any(len(corpus.spaces) for corpus in corpora)
        return cls(
            words=Column.joined([corpus.words for corpus in corpora]),
            labels=Column.joined([corpus.labels for corpus in corpora]),
            spaces=np.concatenate([corpus.all_spaces() for corpus in corpora]) if spaced else EMPTY.spaces,
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
        )

    def __repr__(self) -> str:
        shown = f": {' '.join(self.words[: min(8, int(self.offsets[1]))])}" if len(self) else ""
        labelled = "" if len(self.labels) or not self.n_words else ", unlabelled"
        return f"<Corpus of {len(self):,} sentences, {self.n_words:,} words{labelled}{shown}{' …' * bool(shown)}>"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Sentence: ...
    @overload
    def __getitem__(self, index: slice) -> "Corpus": ...
    def __getitem__(self, index: int | slice) -> "Sentence | Corpus":
        if isinstance(index, slice):
            return self.take(range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of a corpus of {len(self)}")
        position = index % len(self)
        start, end = int(self.offsets[position]), int(self.offsets[position + 1])
        return Sentence(self.words[start:end], self.labels[start:end], tuple(self.spaces[start:end].tolist()))

    def __iter__(self) -> Iterator[Sentence]:
        return (self[i] for i in range(len(self)))

    def take(self, indices: Iterable[int]) -> "Corpus":
        """The sentences at these positions, in this order."""
        chosen = np.fromiter(indices, dtype=np.int64)
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        # every word keeps its distance from the start of its sentence
        positions = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        labels = self.labels.take(positions) if len(self.labels) else self.labels
        spaces = self.spaces[positions] if len(self.spaces) else self.spaces
        return Corpus(self.words.take(positions), labels, spaces, offsets)

    @property
    def n_words(self) -> int:
        return len(self.words)

    @property
    def lengths(self) -> np.ndarray:
        """Words per sentence."""
        return np.diff(self.offsets)

    def all_spaces(self) -> np.ndarray:
        """Whether a space follows each word."""
        return self.spaces if len(self.spaces) else np.ones(self.n_words, dtype=np.bool_)

    def composed(self) -> "Corpus":
        """The corpus with its words in Unicode's composed form (NFC), as vocabularies expect them."""
        if all(map(is_composed, self.words.vocabulary)):
            return self
        return Corpus(self.words.map(composed), self.labels, self.spaces, self.offsets)

    def text_hash(self) -> str:
        """A hash of words, spaces and sentence boundaries, not of labels: tasks that label the same text share it."""
        digest = hashlib.sha256(np.ascontiguousarray(self.offsets, dtype="<i8").tobytes())
        digest.update("\x1f".join(self.words).encode("utf-8", "surrogatepass") + b"\x1e")
        digest.update(np.ascontiguousarray(self.all_spaces(), dtype=np.uint8).tobytes())
        return digest.hexdigest()


EMPTY = Corpus.from_sentences(())
