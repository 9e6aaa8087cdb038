"""CoNLL-U: ten columns per line, read and written back without loss."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from crossfill.data.labels import LabelColumn
from crossfill.data.reading import Block, OnBadLine, blocks, decode, unpacked
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence, on_one_line

N_COLUMNS = 10
_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY_NODE = re.compile(r"(0|[1-9][0-9]{0,8})\.[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class ConlluSentence:
    """A sentence with the full content of its lines."""

    comments: tuple[str, ...]
    rows: list[list[str]]
    """The columns of every line: words, multiword tokens (`1-2`) and empty nodes (`8.1`), as UD defines them."""
    first: int = field(default=1, compare=False)
    """The number of its first line in the file, that of a comment if it has any."""

    @property
    def words(self) -> list[list[str]]:
        """Lines of syntactic words, which are what UD annotates."""
        return [row for row in self.rows if row[0].isdigit()]

    @property
    def text(self) -> str:
        """Original text: surface tokens, with the spaces between them."""
        parts, end = [], 0
        for row in self.rows:
            first, dash, last = row[0].partition("-")
            if dash:
                end = int(last)
            if dash or ("." not in first and int(first) > end):
                parts.append(row[1] + (" " if _space_after(row) else ""))
        return "".join(parts).rstrip(" ")

    def sentence(self, label: LabelColumn) -> Sentence:
        """Take the syntactic words with their labels. There are no spaces within a multiword token."""
        spaces, surfaces = [], []
        end, space, token = 0, True, ""
        for row in self.rows:
            if row[0].isdigit():
                position = len(spaces) + 1
                spaces.append(_space_after(row) if position > end else position == end and space)
                surfaces.append(token if position <= end else row[1])
                token = ""
            elif "-" in row[0]:
                end, space, token = int(row[0].partition("-")[2]), _space_after(row), row[1]
        words = self.words
        labels = tuple(map(label, words))
        start = self.first + len(self.comments)
        lines = tuple(start + i for i, row in enumerate(self.rows) if row[0].isdigit())
        texts, tokens = tuple(row[1] for row in words), tuple(surfaces) if end else ()
        return Sentence(texts, labels, () if all(spaces) else tuple(spaces), surfaces=tokens, lines=lines)


def parse(data: bytes, where: str, on_bad_line: OnBadLine | None = None) -> Iterator[ConlluSentence]:
    """Parse a CoNLL-U file; `where` names it in errors."""
    return parse_blocks(blocks(decode(data, where)), where, on_bad_line)


def reread(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a CoNLL-U file that was read before, without labels; none of another or a lost one."""
    if path.name.removesuffix(".gz").endswith(".conllu") and path.is_file():
        for parsed in parse(unpacked(path.read_bytes(), str(path)), str(path), lambda _line, _problem: None):
            yield replace(parsed.sentence(LabelColumn("pos")), labels=())


def parse_blocks(parts: Iterable[Block], where: str, on_bad_line: OnBadLine | None = None) -> Iterator[ConlluSentence]:
    """Parse blocks of lines one at a time; a bad line is an error, or costs its sentence."""
    for start, lines in parts:
        n_comments = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        rows = [line.split("\t") for line in lines[n_comments:]]
        place, problem = _bad_line(rows)
        number = start + n_comments + place
        if problem and on_bad_line is None:
            raise DataError(f"{where}:{number}: {problem}")
        if problem and on_bad_line is not None:
            on_bad_line(number, problem)
        elif rows:
            yield ConlluSentence(tuple(lines[:n_comments]), rows, start)


def render(sentences: Iterable[ConlluSentence]) -> str:
    """Write these sentences as CoNLL-U."""
    return "".join(
        "\n".join([*sentence.comments, *("\t".join(row) for row in sentence.rows)]) + "\n\n" for sentence in sentences
    )


def blank_rows(sentence: Sentence) -> list[list[str]]:
    """Make the lines of a sentence that has nothing but words, and `SpaceAfter=No` where no space follows."""
    spaces = sentence.spaces or (True,) * len(sentence)
    rows = []
    for first, last, token in sentence.tokens:
        space = "_" if spaces[last - 1] else "SpaceAfter=No"
        of_token = [[str(i + 1), _form(sentence.words[i]), *"________"] for i in range(first, last)]
        if last - first > 1:
            of_token.insert(0, [f"{first + 1}-{last}", _form(token), *"________"])
        of_token[0][9] = space
        rows += of_token
    return rows


def _form(word: str) -> str:
    return on_one_line(word).strip() or "_"


def write_label(row: list[str], column: LabelColumn, label: str) -> None:
    """Write a label into its column of a line; `_` removes it from FEATS or MISC."""
    if not column.key:
        row[column.index] = label
    elif column.task.startswith("feats"):
        row[column.index] = with_feature(row[column.index], column.key, label)
    else:
        row[column.index] = with_keys(row[column.index], {column.key: label})


def with_feature(feats: str, key: str, value: str) -> str:
    """Change a feature in FEATS, in the order that UD asks for; `_` removes it."""
    changed = with_keys(feats, {key: value}).split("|")
    return "|".join(sorted(changed, key=lambda pair: pair.partition("=")[0].lower()))


def with_keys(column: str, changes: Mapping[str, str]) -> str:
    """Change some keys of a column of `Key=Value|…`; a value of `_` removes the key."""
    pairs = [pair for pair in column.split("|") if pair not in ("", "_") and pair.partition("=")[0] not in changes]
    pairs += [f"{key}={value.replace('|', '/')}" for key, value in changes.items() if value != "_"]
    return "|".join(pairs) or "_"


def _space_after(row: list[str]) -> bool:
    misc = row[9]
    return misc == "_" or "SpaceAfter=No" not in misc.split("|")


def _bad_line(rows: list[list[str]]) -> tuple[int, str]:
    """Find the first bad line of a sentence, counted from 0, and what is wrong with it; empty if there is none."""
    expected, covered = 1, 0
    for i, row in enumerate(rows):
        if len(row) == N_COLUMNS and row[0] == str(expected) and row[1]:
            expected += 1
        elif problem := _problem(row, expected, covered):
            return i, problem
        elif "-" in row[0]:
            covered = int(row[0].partition("-")[2])
    missing = max(covered, 1)
    if not rows or missing < expected:
        return 0, ""
    return len(rows) - 1, (
        f"expected word number {missing} before the sentence ends, got {expected - 1} words; restore the missing lines"
    )


def _problem(row: list[str], expected: int, covered: int) -> str:
    """Say what is wrong with a line that is not word number `expected`; nothing is with other tokens and nodes."""
    n, span = len(row), _RANGE.fullmatch(row[0])
    if n != N_COLUMNS and row[0].startswith("#"):
        return "expected comments before the words of a sentence, got one among them; move it up"
    if n == 1 and len(row[0].split()) == N_COLUMNS:
        return "expected columns separated by tabs, got spaces; replace the spaces"
    if n != N_COLUMNS:
        hint = "is this a BIO file? rename it to .bio" if n < N_COLUMNS else "remove the surplus tabs"
        return f"expected {N_COLUMNS} columns, got {n}; {hint}"
    if not row[1]:
        return "expected a form in column 2, got nothing; write _ for none"
    if span and (int(span[1]) != expected or not int(span[2]) > expected > covered):
        words = f"two or more words from {expected} on"
        return f"expected a multiword token of {words}, got {row[0]}; number it by its words"
    if span or _EMPTY_NODE.fullmatch(row[0]):
        return ""
    return f"expected word number {expected}, got '{row[0][:20]}'; number the words from 1 in each sentence"
