r"""Lexicons: forms with the labels that they may have, from a list, a dictionary of FLEx, or Python.

A row of a list is a form, a tab, and its labels with commas between (`bank<TAB>NOUN,VERB`); in tasks with spans it is a
name of one or several words, and its type (`Dakar<TAB>LOC`; `O` says that it is none). FLEx exports a lexicon as LIFT
(`.lift`, XML) or as Standard Format, in which `\lx` begins an entry and `\ps` is its part of speech.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from crossfill.data.field_files import parse_elements
from crossfill.data.labels import split_tag
from crossfill.data.reading import decode, find_hints, read_bytes, unpacked
from crossfill.errors import DataError, unknown
from crossfill.grid.task import Task, TaskKind, Unit

MOST_FORMS = 20_000
"""More than any dictionary needs, and few enough for a head to know them all."""
_BETWEEN_LABELS = re.compile(r"\s*[,;|/]\s*|\s+")


class ListedForm(NamedTuple):
    """A form of a lexicon, and the labels that each of its words may have."""

    words: tuple[str, ...]
    allowed: tuple[frozenset[str], ...]

    @property
    def labels(self) -> str:
        """The labels, or the types of spans, with commas between."""
        return ",".join(sorted({tag[1] if (tag := split_tag(label)) else label for label in self.allowed[0]}))


class _Row(NamedTuple):
    where: str
    form: str
    labels: str


def read_lexicon(source: Path | str | Mapping[str, str | Iterable[str]], task: Task) -> list[ListedForm]:
    """Read the forms of a file, of a text, or of a mapping from forms to labels; labels of a form twice are joined."""
    if task.unit is not Unit.WORD:
        raise DataError(f"{task.name}: expected a task that labels words for a lexicon, got one of {task.unit}s")
    if isinstance(source, Mapping):
        place, names = "the lexicon", {}
        rows = [_Row(f"'{form}'", form, v if isinstance(v, str) else ",".join(v)) for form, v in source.items()]
    else:
        place, names = "the word list", {}
        if isinstance(source, Path):
            place, names = str(source), dict(find_hints(source.absolute(), source.absolute().parent, task.name).names)
        data = source.encode() if isinstance(source, str) else unpacked(read_bytes(source), place)
        is_lift = data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")
        rows = list(_lift(data, place) if is_lift else _lines(decode(data, place), place))
    if not 0 < len(rows) <= MOST_FORMS:
        raise DataError(f"{place}: expected from 1 to {MOST_FORMS:,} forms with their labels, got {len(rows):,}")
    forms: dict[tuple[str, ...], ListedForm] = {}
    for row in rows:
        parts = normalize("NFC", row.form).split()
        words = tuple(parts) if task.kind is TaskKind.SPANS else (" ".join(parts),)  # words may have spaces in them
        allowed = _allowed(row, len(words), task, names)
        before = forms.get(words)
        joined = allowed if before is None else tuple(a | b for a, b in zip(allowed, before.allowed, strict=True))
        forms[words] = ListedForm(words, joined)
    return list(forms.values())


def _lines(lines: Iterable[str], where: str) -> Iterator[_Row]:
    """Read a list, or Standard Format, whose lines begin with a backslash."""
    form, lexeme = "", False
    for number, line in enumerate(lines, start=1):
        place, text = f"{where}:{number}", line.strip()
        if text.startswith("\\"):
            lexeme = True
            marker, _, value = text.partition(" ")
            form = value.strip() if marker == "\\lx" else form
            if marker == "\\ps" and form and value.strip():
                yield _Row(place, form, value)
        elif text and not text.startswith("#") and not lexeme:
            form, tab, labels = text.partition("\t")
            if not tab or not form.strip() or not labels.strip():
                got = f"'{text[:40]}'"
                raise DataError(f"{place}: expected a form, a tab and its labels, as bank<TAB>NOUN,VERB; got {got}")
            yield _Row(place, form, labels)


def _lift(data: bytes, where: str) -> Iterator[_Row]:
    for entry in parse_elements(data, where, "lift").every("entry"):
        forms = [text.text for text in entry.every("lexical-unit", "form", "text") if text.text]
        labels = dict.fromkeys(info["value"] for info in entry.every("sense", "grammatical-info") if info["value"])
        for form in forms:
            for label in labels:
                yield _Row(f"{where}:{entry.line}", form, label)


def _allowed(row: _Row, n_words: int, task: Task, names: Mapping[str, str]) -> tuple[frozenset[str], ...]:
    """Find the labels that each word of a form may have; an error if the task does not have one."""
    is_spans = task.kind is TaskKind.SPANS
    types = [tag[1] if (tag := split_tag(label)) else label for label in task.labels] if is_spans else task.labels
    known = {kind.casefold(): kind for kind in types} | {written.casefold(): name for written, name in names.items()}
    whole = row.labels.strip()
    given = [whole] if whole.casefold() in known else [label for label in _BETWEEN_LABELS.split(whole) if label]
    kinds = [known.get(label.casefold(), label) for label in given]
    if wrong := next((kind for kind in kinds if kind not in types), None):
        raise DataError(f"{row.where}: " + unknown("label", wrong, dict.fromkeys(types)))
    if not is_spans:
        return (frozenset(kinds),)
    tags = [frozenset(kind if kind == "O" else f"{'I' if i else 'B'}-{kind}" for kind in kinds) for i in range(n_words)]
    if any(tag not in task.labels for of_word in tags for tag in of_word):
        raise DataError(f"{row.where}: expected a name of one word, as all of {task.name}, got '{row.form[:40]}'")
    return tuple(tags)
