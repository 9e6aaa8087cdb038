"""Columns of strings: many words or labels, each distinct one stored once."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np


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
