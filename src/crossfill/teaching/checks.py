"""What a corrected sentence has to be like."""

from collections.abc import Sequence

from crossfill.errors import DataError, unknown
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import TaskKind, Unit
from crossfill.grid.unicode import on_one_line

MOST_NAME = 80
"""Most characters in the name of who accepts."""


def check_unit(cell: Cell, unit: Unit) -> None:
    """Refuse a task that does not label words, as the journal keeps words with their labels."""
    if unit is not Unit.WORD:
        raise DataError(
            f"{cell}: expected a task that labels words, got one that labels {unit}s; write them into a file, one a "
            "line with its label, and adapt the cell to it (crossfill adapt)"
        )


def check_sentence(cell: Cell, sentence: Sentence, labels: Sequence[str]) -> None:
    """Refuse a sentence that is not wholly labelled with the labels of the cell's task, or that no file can hold."""
    if not sentence.words:
        raise DataError(f"{cell}: expected a sentence with words, got none")
    if len(sentence.labels) != len(sentence):
        raise DataError(f"{cell}: expected {len(sentence)} labels, one per word, got {len(sentence.labels)}")
    for word in sentence.words:
        if not word.strip() or on_one_line(word) != word or not _is_whole(word):
            raise DataError(f"{cell}: expected words without tabs and line breaks, got {word[:40]!a}")
    for label in sentence.labels:
        if label not in labels:
            raise DataError(f"{cell}: " + unknown("label", label, labels))
    if TaskKind.of(labels) is TaskKind.SPANS:
        for before, label in zip(("O", *sentence.labels), sentence.labels, strict=False):
            if label.startswith("I-") and before[2:] != label[2:]:
                raise DataError(
                    f"{cell}: expected B-{label[2:]} at the start of a span (IOB2), got {label} after {before}"
                )


def check_name(who: str) -> None:
    """Refuse a name that does not fit on a line."""
    if len(who) > MOST_NAME or not who.isprintable() or not _is_whole(who):
        raise DataError(f"expected a name of at most {MOST_NAME} printable characters, got {who[:40]!a}")


def _is_whole(text: str) -> bool:
    """Whether no half of a surrogate pair is in a text."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
