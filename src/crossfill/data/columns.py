"""Which column of a table holds the words and which their tags, recognised by what is in them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from crossfill.data.beside import NOTHING, Beside
from crossfill.data.evidence import MOST, Evidence, kind_of, wanted_kind
from crossfill.data.table import Row, Table
from crossfill.errors import DataError

_WORD_NAMES = frozenset({"token", "tokens", "word", "words", "form", "text"})
_TAG_NAMES = ("tag", "tags", "label", "labels")
_NAMES_OF = {
    "spans": ("ner", "ner_tag", "ner_tags", "ner_label", "ne", "iob", "iob2", "bio", "entity"),
    "upos": ("pos", "upos", "pos_tag", "pos_tags", "upos_tags"),
}
_SENTENCE_NAMES = frozenset({"sentence #", "sentence", "sentence_id", "sent_id", "sent"})


@dataclass(frozen=True)
class Columns:
    """Which column holds the words and which their tags, counted from 0, and how that was found."""

    word: int = 0
    tag: int = -1
    width: int | None = 2
    """Columns in every row; none where that varies."""
    tabs: bool = True
    header: bool = False
    tags: frozenset[str] = frozenset()
    """Tags of the sample: a line before a sentence that begins with # and has none of them is a comment."""
    names: tuple[str, ...] = ()
    """Names of tags that are numbers."""
    how: str = ""
    """What had to be recognised; empty if the word is first, the tag last, and nothing else is odd."""
    doubtful: bool = False

    def is_comment(self, row: Row) -> bool:
        """Whether a line that begins with #, before the first word of a sentence, is a comment or a header."""
        if self.word or _is_header(row) or not self.fewest <= len(row) <= (self.width or len(row)):
            return True
        return row[self.tag] not in self.tags and not (self.tabs and " " not in row[0])

    @property
    def fewest(self) -> int:
        """Columns that a row needs."""
        return self.width or max(self.word, self.tag, 1) + 1


def recognise(table: Table, task: str = "", beside: Beside = NOTHING, where: str = "") -> Columns:
    """The columns of a table that hold words and the tags of `task`; an error where that is not plain to see."""
    sample = table.sample()
    if not sample:
        return Columns(tabs=table.tabs)
    (start, first), place = sample[0], f"{where}:{sample[0][0]}"
    header = first[0] if _is_header(first[0], task) else None
    if header:
        sample = [(start + 1, first[1:]), *sample[1:]] if first[1:] else sample[1:]
    rows = [row for _, part in sample for row in part if len(row) > 1]  # lines of one column are bad
    width, n_rows = max(Counter(map(len, rows)).items(), key=lambda item: item[1], default=(2, 0))
    plain = Columns(width=width, tabs=table.tabs, header=header is not None)
    if not n_rows:
        return plain
    if len(rows) - n_rows > max(1, (1 - MOST) * len(rows)) and not beside.word:
        return _ragged(plain, rows, task, place)
    regular = [[row for row in part if len(row) == width] for _, part in sample]
    evidence = Evidence([part for part in regular if part], task, place)
    if beside.word:
        found = _named(plain, beside, evidence)
    elif header and len(header) == width and (named := _by_header(header, evidence)):
        found = replace(plain, word=named[0], tag=named[1])
    else:
        found = _by_content(plain, evidence)
    return _described(found, header, beside, evidence)


def _is_header(row: Row, task: str = "") -> bool:
    names = {name.lower().strip("# ") for name in row}
    known = {*_TAG_NAMES, *_NAMES_OF["spans"], *_NAMES_OF["upos"], task.lower()} - _WORD_NAMES
    return not names.isdisjoint(_WORD_NAMES) and not names.isdisjoint(known)


def _ragged(plain: Columns, rows: Sequence[Row], task: str, place: str) -> Columns:
    """The first and last column of rows with varying numbers of columns, if the last holds the tags of the task."""
    kind, wanted = kind_of([row[-1] for row in rows]), wanted_kind(task)
    widths = sorted({len(row) for row in rows})
    spaced = not plain.tabs and plain.width == 2  # a word with a space looks like two columns
    if spaced or kind not in ("spans", "upos") or (wanted and kind != wanted):
        raise DataError(
            f"{place}: expected the same number of columns in every line, got {widths[0]} to {widths[-1]}; separate "
            "columns by tabs, and write _ for an empty one"
        )
    how = f"lines have {widths[0]} to {widths[-1]} columns: read the first and the last"
    return replace(plain, width=None, tags=frozenset(row[-1] for row in rows), how=how, doubtful=True)


def _named(plain: Columns, beside: Beside, evidence: Evidence) -> Columns:
    last = max(beside.word, beside.tag)
    if last > evidence.width:
        raise DataError(
            f"{evidence.place}: expected {last} columns or more, as columns.txt names column {last}, got "
            f"{evidence.width}; correct columns.txt"
        )
    return replace(plain, word=beside.word - 1, tag=beside.tag - 1, width=None, how="as columns.txt says")


def _by_header(header: Row, evidence: Evidence) -> tuple[int, int] | None:
    """The columns of word and tag that a header names; none if it has no name for the tags of the task."""
    names = [name.lower().strip("# ") for name in header]
    numbered = next((name for name in names if name in _SENTENCE_NAMES), None)
    if numbered and len(evidence.sentences) == 1 < evidence.n_distinct(names.index(numbered)):
        raise DataError(
            f"{evidence.place}: expected a blank line after each sentence, got a column '{numbered}' that tells them "
            "apart; put a blank line wherever it changes"
        )
    fitting = (evidence.task.lower(), *_NAMES_OF.get(evidence.wanted or "", ()), *_TAG_NAMES)
    word = next(i for i, name in enumerate(names) if name in _WORD_NAMES)
    tag = next((names.index(name) for name in fitting if name in names), None)
    if tag is None:
        return None
    _check_tag(tag, word, evidence)
    return word, tag


def _by_content(plain: Columns, evidence: Evidence) -> Columns:
    """The columns by what they hold: the first that can be words, and the last of the others if it can be tags."""
    last, wanted = evidence.width - 1, evidence.wanted
    if last == 9 and evidence.kind(0) in ("integers", "numbers") and "_" in [c[0] for c in evidence.columns[2:]]:
        raise DataError(
            f"{evidence.place}: expected a word and its tag, got ten columns after a number; is this CoNLL-U? rename "
            "it to .conllu"
        )
    leading = _leading(evidence)
    word = len(leading)
    found = replace(plain, word=word, tag=last, how="; ".join(leading), doubtful=any(leading.values()))
    if evidence.n_rows > 2 and evidence.counts_words(word):
        raise evidence.refusal("expected words and tags, got nothing but a count beside one of them", word)
    fitting = [column for column in range(word + 1, last + 1) if wanted and evidence.kind(column) == wanted]
    if wanted and not fitting and evidence.kind(word) == wanted and last == word + 1:
        return replace(found, word=last, tag=word, doubtful=True)
    if len(fitting) == 1 and last not in fitting:
        return replace(found, tag=fitting[0], doubtful=True)
    if fitting and last not in fitting:
        told = ", ".join(str(column + 1) for column in fitting)
        raise evidence.refusal(f"expected one column of tags, got {told}, any of which may be", word)
    _check_tag(last, word, evidence)
    _check_others(last, word, evidence)
    return found


def _leading(evidence: Evidence) -> dict[str, bool]:
    """What each column before the words holds (counts, names, nothing, other numbers), and whether that is odd."""
    told: dict[str, bool] = {}
    for column in range(evidence.width - 2):
        kind, at = evidence.kind(column), f"column {column + 1}"
        if evidence.counts_words(column):
            told[f"{at} counts the words"] = False
        elif kind == "blank":
            told[f"{at} is empty"] = False
        elif kind not in ("spans", "upos") and evidence.is_constant(column):
            told[f"{at} is the same throughout each sentence"] = False
        elif kind in ("integers", "numbers") and evidence.n_rows > 4:
            if len(evidence.sentences) == 1:
                raise DataError(
                    f"{evidence.place}: expected a blank line after each sentence, got one sentence of "
                    f"{evidence.n_rows:,} words and a column of numbers; put in blank lines, and name the columns in "
                    f"a file columns.txt beside it, as word={column + 2} tag={evidence.width}"
                )
            told[f"{at} has numbers"] = True
        else:
            break
    return told


def _check_tag(tag: int, word: int, evidence: Evidence) -> None:
    """Refuse a column that plainly holds no tags of the task."""
    kind, wanted = evidence.kind(tag, word), evidence.wanted
    what = {"blank": "nothing", "numbers": "numbers", "words": "what looks like words"}.get(kind)
    if kind in ("spans", "upos") and wanted and kind != wanted:
        what = "parts of speech" if kind == "upos" else "tags of spans"
    if kind == "labels" and evidence.n_distinct(tag) > evidence.n_distinct(word) and evidence.n_rows > 4:
        what = "more different values than words"
    if what:
        raise evidence.refusal(f"expected the tags of {evidence.task or 'words'} in column {tag + 1}, got {what}", word)


def _check_others(tag: int, word: int, evidence: Evidence) -> None:
    """Refuse the last column as that of the tags where another may be meant as well."""
    kind, kinds = evidence.kind(tag), {column: evidence.kind(column) for column in range(word + 1, evidence.width)}
    alike = [column for column, other in kinds.items() if other == kind and column != tag]
    nested = [column for column in alike if evidence.types(column) & evidence.types(tag)]
    rivals = alike if kind == "integers" or evidence.wanted != "spans" else nested
    if kind in ("integers", "spans") and rivals and evidence.task:
        told = ", ".join(str(column + 1) for column in rivals)
        raise evidence.refusal(f"expected one column of tags, got {told} and {tag + 1}, either of which may be", word)
    if evidence.wanted == "spans" and kind == "labels" and len(kinds) > 1:
        raise evidence.refusal("expected IOB tags (B-PER, I-PER, O) in the last column, got other labels", word)


def _described(found: Columns, header: Row | None, beside: Beside, evidence: Evidence) -> Columns:
    """The columns with the names of tags that are numbers, and with how they were found."""
    tags, told = evidence.columns[found.tag], []
    if found.word or found.tag != evidence.width - 1:
        told.append(f"word in column {found.word + 1}, tag in column {found.tag + 1} of {evidence.width}")
    told += [found.how] * bool(found.how)
    if header:
        told.append(f"first line is a header ({', '.join(header)[:60]})")
    numbers = evidence.kind(found.tag) == "integers"
    if numbers and not beside.labels:
        shown = ", ".join(sorted(set(tags), key=int)[:4])
        raise DataError(
            f"{evidence.place}: expected names of tags in column {found.tag + 1}, got numbers ({shown}); write the "
            "names in the order of their numbers, one a line, into labels.txt beside it; or name the columns in "
            "columns.txt, as word=1 tag=2"
        )
    if numbers and (most := max(map(int, set(tags)))) >= len(beside.labels):
        raise DataError(
            f"{evidence.place}: expected numbers from 0 to {len(beside.labels) - 1} in column {found.tag + 1}, as "
            f"{len(beside.labels)} labels are listed beside it, got {most}; complete the list"
        )
    told += ["tags are numbers, named by the list beside them"] * numbers
    return replace(found, tags=frozenset(tags), names=beside.labels if numbers else (), how="; ".join(told))
