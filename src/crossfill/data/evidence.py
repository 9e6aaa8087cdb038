"""What the columns of a table hold, by a sample of its rows."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from crossfill.data.labels import UPOS, is_ner, split_tag
from crossfill.data.table import Row
from crossfill.errors import DataError

Kind = Literal["blank", "integers", "numbers", "spans", "upos", "words", "labels"]
"""What a column holds; `words`: the words themselves, or about as many different values."""
MOST = 0.9
"""Share of a sample that decides."""

_PLACEHOLDERS = frozenset({"", "_", "-", "*", "-X-"})
_INTEGER = re.compile(r"[0-9]{1,6}")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)?(?:[eE][-+]?[0-9]+)?")


class Evidence:
    """A sample of sentences whose rows all have the same number of columns, read for a task."""

    def __init__(self, sentences: Sequence[Sequence[Row]], task: str, place: str) -> None:
        self.sentences, self.task, self.place = sentences, task, place
        self.columns = list(zip(*(row for rows in sentences for row in rows), strict=True))
        self.width, self.n_rows = len(self.columns), len(self.columns[0])
        self.wanted = wanted_kind(task)

    def kind(self, column: int, word: int | None = None) -> Kind:
        """What a column holds, compared with the column `word` if it is given."""
        return kind_of(self.columns[column], None if word is None else self.columns[word])

    def counts_words(self, column: int) -> bool:
        """Whether a column has consecutive numbers in every sentence."""
        values = [[row[column] for row in rows] for rows in self.sentences]
        if max(map(len, values)) < 2 or not all(map(_INTEGER.fullmatch, self.columns[column])):
            return False
        return all(int(after) == int(before) + 1 for part in values for before, after in pairwise(part))

    def is_constant(self, column: int) -> bool:
        """Whether a column has the same value throughout every sentence, as the name of a document has."""
        lengths = sorted(map(len, self.sentences))
        enough = lengths[-1] > 2 or (len(lengths) > 1 and lengths[-2] > 1)
        return enough and all(len({row[column] for row in rows}) == 1 for rows in self.sentences)

    def n_distinct(self, column: int) -> int:
        return len(set(self.columns[column]))

    def types(self, column: int) -> set[str]:
        """The types of the spans that are tagged in a column: PER, LOC."""
        return {found[1] for tag in set(self.columns[column]) if (found := split_tag(tag.upper()))}

    def refusal(self, message: str, word: int = 0) -> DataError:
        """An error that shows the first row, and says how to name the columns."""
        shown = " | ".join(column[0][:20] for column in self.columns[:10])
        tag = self.width if word + 1 < self.width else 1
        return DataError(
            f"{self.place}: {message} ({shown}); name the columns in a file columns.txt beside it, as "
            f"word={word + 1} tag={tag}"
        )


def wanted_kind(task: str) -> Literal["spans", "upos"] | None:
    """What a column with a task's tags holds, where the task's name says so."""
    return "spans" if is_ner(task) else "upos" if task == "pos" else None


def kind_of(values: Sequence[str], words: Sequence[str] | None = None) -> Kind:
    """What a column holds; `words`, if they are known, are what it might repeat."""
    counts, n = Counter(values), len(values)
    if counts.keys() <= _PLACEHOLDERS:
        return "blank"
    if all(map(_INTEGER.fullmatch, counts)) and len(counts) <= 100:
        return "integers"
    if sum(k for value, k in counts.items() if _NUMBER.fullmatch(value)) >= MOST * n:
        return "numbers"
    if sum(k for value, k in counts.items() if _is_span(value)) >= MOST * n:
        return "spans"
    if sum(k for value, k in counts.items() if value.upper() in UPOS or value == "_") >= MOST * n:
        return "upos"
    return "words" if words is not None and _resembles(values, words) else "labels"


def _resembles(values: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a column repeats the words, as lemmas do, or has a value of its own in nearly every row."""
    n_values = len(set(values))
    if n_values > max(50, 0.8 * len(set(words))) or n_values == len(values) > 9:
        return True
    same = [a.lower() == b.lower() for a, b in zip(values, words, strict=True) if any(map(str.isalpha, b))]
    return len(same) > 2 and sum(same) > 0.3 * len(same)


def _is_span(tag: str) -> bool:
    return tag in ("O", "o") or split_tag(tag.upper()) is not None
