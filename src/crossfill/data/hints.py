"""Small files next to a corpus that say how to read it: `columns.txt` names its columns, `labels.txt` its labels."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from crossfill.data.lines import decode
from crossfill.errors import DataError, unreadable

COLUMNS_FILE = "columns.txt"
_COLUMNS = re.compile(r"word\s*=\s*([1-9][0-9]?)[\s,;]+tag\s*=\s*([1-9][0-9]?)")
_ITEMS = re.compile(
    r"(?:text\s*=\s*(?P<text>[^\s,;=]+)|premise\s*=\s*(?P<premise>[^\s,;=]+)[\s,;]+hypothesis\s*=\s*(?P<hypothesis>[^\s,;=]+))"
    r"[\s,;]+label\s*=\s*(?P<label>[^\s,;=]+)"
)


@dataclass(frozen=True)
class ReadingHints:
    """What the files next to a corpus, and the folder it is in, say about it."""

    word: int = 0
    """The column of the words, from 1; 0 where it is not named."""
    tag: int = 0
    labels: tuple[str, ...] = ()
    """Names of tags that are written as numbers from 0."""
    language: str = ""
    """The language of its folder, where its text has to be cut into words."""
    texts: tuple[str, ...] = ()
    """The column of sentences, or the two of pairs, by name or counted from 1; none where they are not named."""
    label: str = ""
    """The column of the labels of sentences or pairs."""


NO_HINTS = ReadingHints()


def label_files(task: str) -> tuple[str, ...]:
    """List the names that files with the labels of a task, one a line, may have."""
    return "labels.txt", "tags.txt", f"{task}_tags.txt", f"{task}_labels.txt"


def is_hint_file(name: str) -> bool:
    """Tell whether a file of this name is about the corpora in its folder and below."""
    return name == COLUMNS_FILE or re.fullmatch(r"(?:.+_)?(?:tags|labels)\.txt", name) is not None


def find_hints(path: Path, root: Path, task: str) -> ReadingHints:
    """Collect the hints for the corpus file at `path` from its folder, or else from a folder above it, up to `root`."""
    folders = [folder for folder in path.parents if folder == root or root in folder.parents]
    columns = next((file for folder in folders if (file := folder / COLUMNS_FILE).is_file()), None)
    names = [folder / name for folder in folders for name in label_files(task)]
    labels = next((file for file in names if file.is_file()), None)
    named = _columns(columns, str(columns.relative_to(root))) if columns else NO_HINTS
    return replace(named, labels=_labels(labels, str(labels.relative_to(root)))) if labels else named


def _columns(path: Path, where: str) -> ReadingHints:
    text = " ".join(line for line in _lines(path, where) if not line.startswith("#")).strip()
    if items := _ITEMS.fullmatch(text):
        texts = (items["text"],) if items["text"] else (items["premise"], items["hypothesis"])
        if len({*texts, items["label"]}) == len(texts) + 1:
            return ReadingHints(texts=texts, label=items["label"])
    match = _COLUMNS.fullmatch(text)
    if match is None or match[1] == match[2]:
        raise DataError(
            f"{where}: expected two columns, counted from 1, as word=1 tag=2; or those of sentences or pairs, as "
            f"text=1 label=2 or premise=1 hypothesis=2 label=3; got '{text[:40]}'"
        )
    return ReadingHints(int(match[1]), int(match[2]))


def _labels(path: Path, where: str) -> tuple[str, ...]:
    labels = tuple(line.strip() for line in _lines(path, where) if line.strip())
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise DataError(f"{where}: expected each label once, in the order of their numbers; got '{twice}' twice")
    return labels


def _lines(path: Path, where: str) -> list[str]:
    try:
        return decode(path.read_bytes(), where)
    except OSError as error:
        raise unreadable(where, error) from None
