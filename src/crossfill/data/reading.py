"""What all readers share: lines of text from bytes, hints from files next to a corpus, and notes on bad lines."""

import gzip
import io
import re
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import BufferedIOBase
from pathlib import Path
from typing import Literal

from crossfill.errors import DataError, unreadable
from crossfill.grid.sentence import Sentence

Block = tuple[int, list[str]]
"""The number of a block's first line, from 1, and its lines."""
Note = tuple[Literal["warning", "note"], int, str]
"""What to say of a file: how bad it is, of which line (0: of no single one), and the text."""
OnBadLine = Callable[[int, str], None]
"""Called with the number of a bad line and what is wrong with it; its sentence is then left out."""
GZIP = b"\x1f\x8b"  # the first bytes of a gzip file
LARGEST = 2 * 2**30  # most bytes that a gzip file may unpack to
LONGEST_LINE = 1_000_000  # most bytes in a line of text to be tagged
MOST_WORDS = 5000  # most words in a sentence; with more, sentence breaks are probably missing
MOST_LOST = 0.1  # largest share of sentences that may be left out of a file for a bad line
COLUMNS_FILE = "columns.txt"
_COLUMNS = (("word", "tag"), ("text", "label"), ("premise", "hypothesis", "label"))  # that it can name
_NOT_IN_COLUMNS = re.compile("[\t\n\r\ud800-\udfff]")  # would end a column or a line, or cannot be written
_MOST_NAMED = 3  # bad lines that are named one by one


@dataclass(frozen=True)
class ReadingHints:
    """What `columns.txt` and `labels.txt` next to a corpus, and the folder it is in, say about it."""

    word: int = 0
    """The column of the words, from 1; 0 where it is not named."""
    tag: int = 0
    labels: tuple[str, ...] = ()
    """Names of tags that are written as numbers from 0."""
    names: tuple[tuple[str, str], ...] = ()
    """Labels as they are written, and what they are called here."""
    language: str = ""
    """The language of its folder, where its text has to be cut into words."""
    texts: tuple[str, ...] = ()
    """The column of sentences, or the two of pairs, by name or counted from 1; none where they are not named."""
    label: str = ""
    """The column of the labels of sentences or pairs."""
    unlabelled: tuple[str, ...] = ()
    """Labels that mean that nobody has labelled the word; without any, those that are usual in the task."""
    partial: bool = False
    """Whether only some spans are marked, so that a word in none may be in one."""


NO_HINTS = ReadingHints()


def is_hint_file(name: str) -> bool:
    """Tell whether a file of this name is about the corpora in its folder and below."""
    return name == COLUMNS_FILE or re.fullmatch(r"(?:.+_)?(?:tags|labels)\.txt", name) is not None


def find_hints(path: Path, root: Path, task: str) -> ReadingHints:
    """Collect the hints for the corpus file at `path` from its folder, or else from a folder above it, up to `root`."""
    folders = [folder for folder in path.parents if folder == root or root in folder.parents]
    hints = NO_HINTS
    if columns := next((file for folder in folders if (file := folder / COLUMNS_FILE).is_file()), None):
        hints = _named_columns(columns, str(columns.relative_to(root)))
    names = [
        folder / name
        for folder in folders
        for name in ("labels.txt", "tags.txt", f"{task}_tags.txt", f"{task}_labels.txt")
    ]
    if file := next((file for file in names if file.is_file()), None):
        where = str(file.relative_to(root))
        rows = [line.strip() for line in decode(file.read_bytes(), where)]
        if any("\t" in row for row in rows):
            return replace(hints, names=_renamings(rows, where))
        hints = replace(hints, labels=tuple(filter(None, rows)))
    return hints


def _renamings(rows: Sequence[str], where: str) -> tuple[tuple[str, str], ...]:
    """Read a table of labels: what is written in a corpus, a tab, and what it is called here."""
    names: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        written, *called = (part.strip() for part in row.split("\t"))
        if row and (len(called) != 1 or not called[0] or written in names):
            got = f"'{written[:40]}' twice" if written in names else f"'{row[:40]}'"
            raise DataError(f"{where}:{number}: expected a label, a tab and its name here, each label once; got {got}")
        if row:
            names[written] = called[0]
    return tuple(names.items())


def _named_columns(path: Path, where: str) -> ReadingHints:
    text = " ".join(line for line in decode(path.read_bytes(), where) if not line.startswith("#")).strip()
    pairs = dict(re.findall(r"(\w+)\s*=\s*([^\s,;=]+)", text))
    marks, spans = pairs.pop("unlabelled", None), pairs.pop("spans", None)
    hints = ReadingHints(unlabelled=(marks,) if marks else (), partial=spans == "partial")
    if not pairs and (marks or hints.partial):
        return hints
    columns = [pairs[name] for names in _COLUMNS if {*names} == pairs.keys() for name in names]
    if columns and len({*columns}) == len(columns) and spans in (None, "partial"):
        *texts, last = columns
        if "word" not in pairs:
            return replace(hints, texts=tuple(texts), label=last)
        if all(re.fullmatch("[1-9][0-9]?", column) for column in columns):
            return replace(hints, word=int(texts[0]), tag=int(last))
    raise DataError(
        f"{where}: expected two columns, counted from 1, as word=1 tag=2; or those of sentences or pairs, as "
        "text=1 label=2 or premise=1 hypothesis=2 label=3; with unlabelled=_ or spans=partial where words have no "
        f"label; got '{text[:40]}'"
    )


@dataclass
class FileNotes:
    """The bad lines of a file, for each of which a sentence is left out, and lines whose words were split."""

    where: str
    bad: list[tuple[int, str]] = field(default_factory=list)
    split: list[tuple[int, str]] = field(default_factory=list)
    columns: str = ""
    """Which columns are words and tags; empty if there are no others and no header."""

    def __call__(self, line: int, problem: str) -> None:
        """Leave out the sentence of a bad line."""
        self.bad.append((line, problem))

    def checked(self, n_read: int) -> tuple[Note, ...]:
        """Return what to say, of the first few lines one by one.

        A file of which more than one sentence in ten is bad, and more than one, or that has no other, is refused.
        """
        n_bad, total = len(self.bad), n_read + len(self.bad)
        if n_bad and (not n_read or n_bad > max(1, MOST_LOST * total)):
            line, problem = self.bad[0]
            counted = f" ({n_bad:,} of {total:,} sentences are bad)" if n_bad > 1 else ""
            raise DataError(f"{self.where}:{line}: {problem}{counted}")
        notes: list[Note] = [("warning", line, f"sentence left out: {why}") for line, why in self.bad[:_MOST_NAMED]]
        why = "split where spans begin or end within words"
        notes.extend(("note", line, f"{why}: {words}") for line, words in self.split[:_MOST_NAMED])
        if n_bad > _MOST_NAMED:
            notes.append(("warning", 0, f"{n_bad - _MOST_NAMED:,} more left out, each for a bad line"))
        if len(self.split) > _MOST_NAMED:
            notes.append(("note", 0, f"words split on {len(self.split) - _MOST_NAMED:,} more lines"))
        return tuple(notes)


def check_printable(sentence: Sentence) -> Sentence:
    """Return the sentence if its words and labels can be written in columns of text; else raise an error."""
    for name, values in (("word", sentence.words), ("label", sentence.labels)):
        for value in values:
            if (not value and name == "word") or _NOT_IN_COLUMNS.search(value):
                raise DataError(f"expected every {name} as text without tabs and line ends, got {value[:40]!r}")
    return sentence


def read_bytes(path: Path, where: str = "") -> bytes:
    """Read a file whole; `where` names it in errors."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(where or path, error) from None


def unpacked(data: bytes, where: str, packed: bool = False) -> bytes:
    """Return the content of a gzip file, or of one that is not `packed` as it is; `where` names it in errors."""
    if not data.startswith(GZIP):
        if packed:
            raise DataError(f"{where}: expected gzip, as its name ends in .gz, got other bytes; rename it")
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(LARGEST + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{where}: expected gzip, got damaged bytes ({error}); fetch it again") from None
    if len(content) > LARGEST:
        raise DataError(f"{where}: expected at most {LARGEST:,} bytes when unpacked, got more; unpack it yourself")
    return content


def decode(data: bytes, where: str) -> list[str]:
    """Return the lines of UTF-8 text without byte order mark and line ends (LF or CRLF)."""
    with suppress(UnicodeDecodeError):
        text = data.removeprefix(BOM_UTF8).decode("utf-8").replace("\r\n", "\n")
        if "\r" not in text:
            return text.split("\n")
    return list(stream(io.BytesIO(data), where, len(data)))  # says which line is wrong


def stream(
    file: BufferedIOBase, where: str, longest: int = LONGEST_LINE, keep_ends: bool = False, first: int = 1
) -> Iterator[str]:
    """Read the lines of UTF-8 text one at a time, without byte order mark; without line ends, or with `keep_ends`.

    `first` is the number of the first line, if what is read is a part of a file.
    """
    number = first - 1
    while data := file.readline(longest + 1):
        number += 1
        place = f"{where}:{number}"
        if number == 1:
            if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                raise DataError(f"{place}: expected UTF-8, got UTF-16; save the file as UTF-8")
            data = data.removeprefix(BOM_UTF8)
        if b"\0" in data:
            raise DataError(f"{place}: expected text, got a zero byte; is this a binary file?")
        if len(data) > longest:
            raise DataError(f"{place}: expected lines of at most {longest:,} bytes, got more; break the line up")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = data[error.start]
            raise DataError(f"{place}: expected UTF-8, got byte 0x{byte:02x}; save the file as UTF-8") from None
        line = text.removesuffix("\n").removesuffix("\r")
        if "\r" in line:
            raise DataError(f"{place}: expected lines that end in LF or CRLF, got CR alone; convert the line ends")
        yield text if keep_ends else line


def blocks(lines: Iterable[str], longest: int | None = None, where: str = "", first: int = 1) -> Iterator[Block]:
    """Group lines between blank lines; lines of white space are blank, and the last blank line may be missing."""
    start, block = 0, []
    for number, line in enumerate(lines, start=first):
        if line and not line.isspace():
            if not block:
                start = number
            block.append(line)
            if longest is not None and len(block) > longest:
                raise DataError(f"{where}:{start}: expected at most {longest:,} lines up to a blank line, got more")
        elif block:
            yield start, block
            block = []
    if block:
        yield start, block
