"""Sentences and pairs of sentences with labels, as tables with a header: TSV and CSV.

Columns are found by their names in the header, or by those in a file `columns.txt` beside the table
(`text=text label=category`; columns may be named or counted from 1).
"""

from collections.abc import Iterator, Sequence

from crossfill.data.beside import Beside
from crossfill.data.evidence import wanted_kind
from crossfill.data.items import LABEL_NAMES, PAIR_NAMES, TEXT_NAMES, ItemColumns, find_columns, read_item
from crossfill.data.lines import Lose
from crossfill.data.separated import Row, SeparatedTable
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence

_WORD_NAMES = frozenset({"token", "tokens", "word", "words", "form"})
_SPACED = 0.5


def holds_items(table: SeparatedTable, task: str, beside: Beside) -> bool:
    """Whether a table has sentences or pairs in its rows, and not words.

    A column `text` may also hold words. Those have a blank line after each sentence, or a task that labels words.
    """
    if beside.texts:
        return True
    found = find_columns(table.header, task)
    if found is None or beside.word or not _WORD_NAMES.isdisjoint(name.lower() for name in table.header):
        return False
    if len(found.texts) == 2:
        return True
    place = table.header.index(found.texts[0])
    texts = [row[place] for _, row in table.rows if len(row) > place]
    spaced = sum(" " in text.strip() for text in texts) > _SPACED * len(texts)
    return spaced or not (table.blanks or wanted_kind(task))


def parse(table: SeparatedTable, where: str, task: str, beside: Beside, lose: Lose) -> Iterator[Sentence]:
    """The sentences or pairs of a table; `lose` is told of rows that are left out."""
    columns = _columns(table, where, task, beside)
    places = [_place(name, table, where) for name in (*columns.texts, columns.label)]
    for number, row in table.rows:
        try:
            yield _item(row, table.header, places, beside)
        except DataError as error:
            lose(number, str(error))


def _columns(table: SeparatedTable, where: str, task: str, beside: Beside) -> ItemColumns:
    if beside.texts:
        return ItemColumns(beside.texts, beside.label)
    found = find_columns(table.header, task)
    if found is None:
        raise DataError(
            f"{where}:{table.first}: expected a header that names a column of text ({', '.join(TEXT_NAMES[:3])}) or "
            f"two ({' and '.join(PAIR_NAMES[0])}), and one of labels ({', '.join(LABEL_NAMES[:3])}); got "
            f"{', '.join(table.header)[:80] or 'nothing'}; rename them, or name them in columns.txt as text=1 label=2"
        )
    return found


def _place(name: str, table: SeparatedTable, where: str) -> int:
    """The place of a column that is named, or counted from 1."""
    if name in table.header:
        return table.header.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(table.header):
        return int(name) - 1
    raise DataError(
        f"{where}:{table.first}: expected a column '{name[:40]}', as columns.txt says; got "
        f"{', '.join(table.header)[:80]}; correct columns.txt"
    )


def _item(row: Row, header: Row, places: Sequence[int], beside: Beside) -> Sentence:
    if len(row) != len(header):
        raise DataError(
            f"expected {len(header)} columns, as the header has, got {len(row)}; put text with tabs in quotes"
        )
    *texts, label = (row[place] for place in places)
    return read_item(texts, label, beside.labels, beside.language)
