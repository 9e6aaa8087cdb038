"""Sentences and corpora: produced by `data`, read by `encoders`."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, overload
from unicodedata import is_normalized, normalize

import numpy as np

from crossfill.errors import DataError
from crossfill.grid.task import Unit

UNLABELLED = ""
"""The label of a word that nobody has labelled: it may be any. Nothing is learnt from it, and it is not scored."""
_LINE_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, or a pair as one: its words, labels in one task, spaces between words, and where they stood.

    Sentences with the same words, labels and spaces are equal, wherever they stood.
    """

    words: tuple[str, ...]
    labels: tuple[str, ...] = ()
    """One label per word, `UNLABELLED` where it is unknown, or one in all for other units; none at all for text."""
    spaces: tuple[bool, ...] = ()
    """Whether a space follows each word; empty when one follows every word."""
    source: str = field(default="", compare=False, repr=False)
    """The text that the words were cut from, with the sentences around them; empty if they came as words."""
    starts: tuple[int, ...] = field(default=(), compare=False)
    """Where each word starts in `source`, in characters (Unicode code points)."""
    surfaces: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The text of the token that begins with each word, empty at its other words; empty if all words are tokens."""
    unit: Unit = Unit.WORD
    second: int = 0
    """The number of the word with which the second sentence of a pair begins; 0 unless it is a pair."""
    lines: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """The line (or record) of each word in the file that it was read from; empty if it was read from none."""

    def __post_init__(self) -> None:
        columns = (self.spaces, "spaces"), (self.starts, "starts"), (self.surfaces, "surfaces")
        for values, name, unit in ((self.labels, "labels", self.unit), *((*column, "word") for column in columns)):
            n = len(self.words) if unit == Unit.WORD else 1
            if values and len(values) != n:
                raise DataError(f"expected {n} {name}, one per {unit}, got {len(values)}: {self.text[:60]}")
        if (self.unit is Unit.PAIR) != (0 < self.second < len(self.words)):
            raise DataError(
                f"expected two sentences with words in a pair, and one otherwise; got a {self.unit} of "
                f"{len(self.words)} words with a second sentence at {self.second}: {self.text[:60]}"
            )
        end = 0
        for word, start in zip(self.surfaces or self.words, self.starts, strict=False):
            if not word:
                continue
            if start < end:
                raise DataError(f"expected '{word[:60]}' at character {end} of the text or later, got {start}")
            if not self.source.startswith(word, start):
                there = self.source[start : start + len(word)]
                raise DataError(f"expected '{word[:60]}' at character {start} of the text, got '{there[:60]}'")
            end = start + len(word)

    @classmethod
    def pair(cls, first: "Sentence", second: "Sentence", label: str | None = None) -> "Sentence":
        before, after = (s.spaces or (True,) * len(s) for s in (first, second))
        spaces = (*before, *after) if first.spaces or second.spaces else ()
        labels = () if label is None else (label,)
        return cls((*first.words, *second.words), labels, spaces, unit=Unit.PAIR, second=len(first))

    @classmethod
    def cut(
        cls, source: str, bounds: Iterable[tuple[int, int]], contractions: Mapping[int, Sequence[str]] = {}
    ) -> "Sentence":
        """Make the sentence of the tokens in `source` from each start to each end; a gap between them is a space.

        A token is a word, or stands for those that `contractions` has for its start.
        """
        words, spaces, starts, surfaces = list[str](), list[bool](), list[int](), list[str]()
        places = tuple(bounds)
        for (start, end), (after, _) in pairwise((*places, (0, 0))):
            token = source[start:end]
            parts = contractions.get(start) or [token]
            is_whole = "".join(parts) != token
            starts += [start if is_whole else start + len("".join(parts[:i])) for i in range(len(parts))]
            surfaces += [token, *[""] * (len(parts) - 1)]
            spaces += [*[False] * (len(parts) - 1), after > end]
            words += parts
        kept = tuple(surfaces) if len(words) > len(places) else ()
        return cls(tuple(words), (), tuple(spaces), source, tuple(starts), kept)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def sentences(self) -> tuple["Sentence", ...]:
        """The two sentences of a pair, without labels; else the sentence itself."""
        parts = (slice(0, self.second), slice(self.second, None))
        return tuple(Sentence(self.words[part], (), self.spaces[part]) for part in parts) if self.second else (self,)

    @property
    def text(self) -> str:
        """The sentence with single spaces, rebuilt from words and spaces; the two of a pair with a tab between."""
        if self.unit is Unit.PAIR:
            return "\t".join(part.text for part in self.sentences)
        if len(self.spaces) != len(self.words):
            return " ".join(self.words)
        gaps = (*self.spaces[:-1], False)
        return "".join(word + " " * gap for word, gap in zip(self.words, gaps, strict=False))

    @property
    def tokens(self) -> list[tuple[int, int, str]]:
        """The first word, the last (exclusive) and the text of each token; several words are a contraction."""
        surfaces = self.surfaces or self.words
        firsts = [i for i, surface in enumerate(self.surfaces) if surface] or range(len(self))
        return [(i, after, surfaces[i]) for i, after in pairwise((*firsts, len(self)))]

    @property
    def original(self) -> str:
        """The text that `offsets` count in: `source` if the words were cut from it, else `text`."""
        return self.source if self.starts else self.text

    @property
    def offsets(self) -> tuple[tuple[int, int], ...]:
        """The start and the end (exclusive) of each word in `original`, in characters (Unicode code points)."""
        if self.starts:
            ends = [start + len(word) for start, word in zip(self.starts, self.words, strict=True)]
            for first, last, token in self.tokens if self.surfaces else ():
                if "".join(self.words[first:last]) != token:  # the words are not parts of it: all stand where it does
                    ends[first:last] = [self.starts[first] + len(token)] * (last - first)
            return tuple(zip(self.starts, ends, strict=True))
        places, start = [], 0
        for i, word in enumerate(self.words):
            places.append((start, start + len(word)))
            start += len(word) + (self.spaces[i] if self.spaces and i + 1 != self.second else True)
        return tuple(places)


class Column(Sequence[str]):
    """Many strings, each distinct one stored once: string i is `vocabulary[codes[i]]`."""

    __slots__ = ("codes", "vocabulary")

    def __init__(self, vocabulary: tuple[str, ...], codes: np.ndarray) -> None:
        self.vocabulary, self.codes = vocabulary, codes

    @classmethod
    def of(cls, values: Iterable[str]) -> "Column":
        ids: dict[str, int] = {}
        codes = np.fromiter((ids.setdefault(value, len(ids)) for value in values), dtype=np.int32)
        return cls(tuple(ids), codes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle no more of the vocabulary than occurs: the column may be a part of a large one."""
        return Column.of, (tuple(self),)

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
        ids: dict[str, int] = {}
        parts = [
            np.array([ids.setdefault(text, len(ids)) for text in column.vocabulary], dtype=np.int32)[column.codes]
            for column in columns
        ]
        return cls(tuple(ids), np.concatenate(parts))

    def take(self, positions: np.ndarray) -> "Column":
        return Column(self.vocabulary, self.codes[positions])

    def map(self, change: Callable[[str], str]) -> "Column":
        """Apply `change` to every string, once per distinct string."""
        changed = Column.of(change(text) for text in self.vocabulary)
        return Column(changed.vocabulary, changed.codes[self.codes])

    def positions_in(self, places: Mapping[str, int]) -> np.ndarray:
        """Find the position of every string in `places`; −1 for strings that are not there."""
        return np.array([places.get(text, -1) for text in self.vocabulary], dtype=np.int64)[self.codes]

    def counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for text, n in zip(self.vocabulary, np.bincount(self.codes, minlength=len(self.vocabulary)), strict=True):
            counts[text] += int(n)
        return +counts

    def distinct(self) -> set[str]:
        return set(self.counts())


@dataclass(frozen=True, eq=False, repr=False)
class Corpus(Sequence[Sentence]):
    """A sequence of sentences in flat columns, so that a whole corpus can be mapped into memory at once.

    Sentence i has the words `words[offsets[i]:offsets[i + 1]]`, and likewise for `labels` and `spaces`. In tasks of
    other units it has the label `labels[i]`, and a pair is one sentence here.
    """

    words: Column
    labels: Column
    """Empty in unlabelled text."""
    spaces: np.ndarray
    """Whether a space follows each word; empty when one follows every word."""
    offsets: np.ndarray
    unit: Unit = Unit.WORD
    seconds: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The number of the word with which the second half of each pair begins."""
    lines: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    """The line of each word in its file; empty, or 0, where it is not known."""
    files: Column = field(default_factory=lambda: Column((), np.empty(0, dtype=np.int32)))
    """The file that each sentence was read from; empty where it is not known."""

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence]) -> "Corpus":
        """Make the corpus of these sentences: all of them labelled, or none."""
        every = tuple(sentences)
        labelled = [s for s in every if s.labels]
        if labelled and any(len(s) for s in every if not s.labels):
            raise DataError(f"expected labels in every sentence, got them in {len(labelled)} of {len(every)}")
        unit, spaced = _one_unit(s.unit for s in every), any(s.spaces for s in every)
        spaces = [space for s in every for space in (s.spaces or (True,) * len(s))] if spaced else []
        placed = any(s.lines for s in every)
        lines = [line for s in every for line in (s.lines or (0,) * len(s))] if placed else []
        return cls(
            words=Column.of(word for s in every for word in s.words),
            labels=Column.of(label for s in every for label in s.labels),
            spaces=np.array(spaces, dtype=np.bool_),
            offsets=np.cumsum([0, *map(len, every)], dtype=np.int64),
            unit=unit,
            seconds=np.array([s.second for s in every] if unit is Unit.PAIR else [], dtype=np.int64),
            lines=np.array(lines, dtype=np.int32),
        )

    @classmethod
    def from_text(cls, sentences: Iterable[Sentence]) -> "Corpus":
        """Take the text of these sentences, pairs one by one, without labels and in Unicode's composed form (NFC)."""
        parts = (part for s in sentences for part in s.sentences)
        return cls.from_sentences(Sentence(s.words, (), s.spaces) for s in parts).composed()

    @classmethod
    def joined(cls, parts: Iterable["Corpus"]) -> "Corpus":
        """Join these corpora into one: all of them labelled, or none."""
        corpora = [part for part in parts if len(part)]
        if len(corpora) <= 1:
            return corpora[0] if corpora else EMPTY
        labelled = [corpus for corpus in corpora if len(corpus.labels)]
        if labelled and any(corpus.n_words for corpus in corpora if not len(corpus.labels)):
            raise DataError(f"expected labels in every corpus, got them in {len(labelled)} of {len(corpora)}")
        spaced, placed = any(len(corpus.spaces) for corpus in corpora), any(len(corpus.files) for corpus in corpora)
        return cls(
            words=Column.joined([corpus.words for corpus in corpora]),
            labels=Column.joined([corpus.labels for corpus in corpora]),
            spaces=np.concatenate([corpus.all_spaces() for corpus in corpora]) if spaced else EMPTY.spaces,
            offsets=np.cumsum(np.concatenate([[0], *(corpus.lengths for corpus in corpora)])),
            unit=_one_unit(corpus.unit for corpus in corpora),
            seconds=np.concatenate([corpus.seconds for corpus in corpora]),
            lines=np.concatenate([corpus.all_lines() for corpus in corpora]) if placed else EMPTY.lines,
            files=Column.joined([corpus.all_files() for corpus in corpora]) if placed else EMPTY.files,
        )

    def __repr__(self) -> str:
        shown = f": {' '.join(self.words[: min(8, int(self.offsets[1]))])} …" if len(self) else ""
        labelled = "" if len(self.labels) or not self.n_words else ", unlabelled"
        return f"<Corpus of {len(self):,} {self.items}, {self.n_words:,} words{labelled}{shown}>"

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Sentence: ...
    @overload
    def __getitem__(self, index: slice) -> "Corpus": ...
    def __getitem__(self, index: int | slice) -> "Sentence | Corpus":
        if isinstance(index, slice):
            return self.take(range(*index.indices(len(self))))
        position = range(len(self))[index]
        start, end = int(self.offsets[position]), int(self.offsets[position + 1])
        labels = self.labels[start:end] if self.unit is Unit.WORD else self.labels[position : position + 1]
        spaces = tuple(self.spaces[start:end].tolist())
        second = int(self.seconds[position]) if self.unit is Unit.PAIR else 0
        return Sentence(self.words[start:end], labels, spaces, unit=self.unit, second=second)

    def take(self, indices: Iterable[int]) -> "Corpus":
        chosen = np.fromiter(indices, dtype=np.int64)
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        # every word keeps its distance from the start of its sentence
        positions = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        labelled = positions if self.unit is Unit.WORD else chosen
        labels = self.labels.take(labelled) if len(self.labels) else self.labels
        spaces = self.spaces[positions] if len(self.spaces) else self.spaces
        seconds = self.seconds[chosen] if self.unit is Unit.PAIR else self.seconds
        lines = self.lines[positions] if len(self.lines) else self.lines
        files = self.files.take(chosen) if len(self.files) else self.files
        return Corpus(self.words.take(positions), labels, spaces, offsets, self.unit, seconds, lines, files)

    @property
    def n_words(self) -> int:
        return len(self.words)

    @property
    def items(self) -> str:
        return "pairs" if self.unit is Unit.PAIR else "sentences"

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    @property
    def n_labels(self) -> int:
        """Labels that it has, or would have: one for each word, sentence or pair."""
        return self.n_words if self.unit is Unit.WORD else len(self)

    def label_counts(self) -> Counter[str]:
        """How often each label occurs, without words that have none."""
        counts = self.labels.counts()
        del counts[UNLABELLED]
        return counts

    def text(self) -> "Corpus":
        """Take the sentences as encoders read them: no labels, those of pairs one by one, first and second in turn."""
        offsets = self.offsets
        if self.unit is Unit.PAIR:
            starts = np.stack([offsets[:-1], offsets[:-1] + self.seconds], axis=1).ravel()
            offsets = np.append(starts, offsets[-1])
        return Corpus(self.words, Column((), np.empty(0, dtype=np.int32)), self.spaces, offsets)

    def all_spaces(self) -> np.ndarray:
        return self.spaces if len(self.spaces) else np.ones(self.n_words, dtype=np.bool_)

    def read_from(self, file: str) -> "Corpus":
        """The corpus with the file that all of its sentences were read from."""
        return replace(self, files=Column((file,), np.zeros(len(self), dtype=np.int32)))

    def all_lines(self) -> np.ndarray:
        return self.lines if len(self.lines) else np.zeros(self.n_words, dtype=np.int32)

    def all_files(self) -> Column:
        return self.files if len(self.files) else Column(("",), np.zeros(len(self), dtype=np.int32))

    def place(self, sentence: int, word: int = 0) -> str:
        """Say where a word was read from, as `file:line`; empty if it was read from no file."""
        line = int(self.all_lines()[self.offsets[sentence] + word])
        return ":".join(filter(None, (self.all_files()[sentence], f"{line or ''}")))

    def composed(self) -> "Corpus":
        """Return the corpus with its words in Unicode's composed form (NFC), as vocabularies expect them."""
        if all(is_normalized("NFC", word) for word in self.words.vocabulary):
            return self
        return replace(self, words=self.words.map(lambda word: normalize("NFC", word)))

    @cached_property
    def text_hash(self) -> str:
        """A hash of words, spaces and sentence boundaries, not of labels: tasks that label the same text share it."""
        digest = hashlib.sha256(np.ascontiguousarray(self.text().offsets, dtype="<i8").tobytes())
        digest.update("\x1f".join(self.words).encode("utf-8", "surrogatepass") + b"\x1e")
        digest.update(np.ascontiguousarray(self.all_spaces(), dtype=np.uint8).tobytes())
        return digest.hexdigest()


def on_one_line(text: str) -> str:
    """Put a space in place of tabs and line breaks, which would end a column or a line."""
    return _LINE_BREAKS.sub(" ", text)


def _one_unit(units: Iterable[Unit]) -> Unit:
    distinct = sorted(set(units))
    if len(distinct) > 1:
        raise DataError(f"expected labels of one unit, got some of {' and some of '.join(distinct)}s")
    return distinct[0] if distinct else Unit.WORD


EMPTY = Corpus.from_sentences(())
