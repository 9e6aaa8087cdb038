"""The grid as tables for a terminal of any width, with or without colours."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from crossfill.cli.terminal import visible
from crossfill.data.codes import language_name
from crossfill.grid.cells import Cell

Sizes = Mapping[str, int]
"""Sentences per split."""

_SHADES = (("■", "green", 1000, "≥ 1,000"), ("◧", "yellow", 100, "≥ 100"), ("▪", "red", 1, "fewer"))
"""Mark, colour, least number of training sentences, and what the legend says."""
_TEST_ONLY, _EMPTY = ("◇", "cyan"), ("□", "bright_black")
_MOST_LABELS = 60


def matrices(
    tasks: Sequence[str],
    languages: Sequence[str],
    sizes: Mapping[Cell, Sizes],
    n_corpora: Mapping[Cell, int],
    console: Console,
) -> Iterator[Table]:
    """The grid in as few tables as the terminal's width allows: with language names, without, or by a few tasks."""
    for named in (True, False):
        table = _matrix(tasks, languages, sizes, n_corpora, named)
        if console.measure(table, options=console.options.update(max_width=10_000)).maximum <= console.width:
            yield table
            return
    if len(tasks) == 1:
        yield _matrix(tasks, languages, sizes, n_corpora, named=False)
        return
    half = len(tasks) // 2
    for part in (tasks[:half], tasks[half:]):
        yield from matrices(part, languages, sizes, n_corpora, console)


def legend() -> Text:
    """What the marks mean."""
    amounts = [(mark, colour, told) for mark, colour, _, told in _SHADES]
    text = Text(" training sentences: ")
    for mark, colour, told in (*amounts, (*_TEST_ONLY, "test only"), (*_EMPTY, "empty")):
        text.append(f"{mark} ", style=colour).append(f"{told}  ", style="bright_black")
    text.rstrip()
    return text.append("\n")


def labels_table(counts: Mapping[str, Counter[str]]) -> Table:
    """Each task with its labels, most frequent first."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    table.add_column(" task", no_wrap=True, style="bold")
    table.add_column("labels", justify="right")
    table.add_column("by frequency", overflow="fold")
    for task, found in counts.items():
        shown = Text()
        total = found.total()
        for label, n in found.most_common(_MOST_LABELS):
            share = f"{n / total:.1%}" if n >= 0.001 * total else f"{n:,}×"
            shown.append(visible(label)).append(f"={share}  ", "bright_black")
        if len(found) > _MOST_LABELS:
            shown.append(f"and {len(found) - _MOST_LABELS:,} more", "bright_black")
        table.add_row(f" {escape(task)}", f"{len(found):,}", shown)
    return table


def _matrix(
    tasks: Sequence[str],
    languages: Sequence[str],
    sizes: Mapping[Cell, Sizes],
    n_corpora: Mapping[Cell, int],
    named: bool,
) -> Table:
    surplus = {task: any(found["surplus"] for cell, found in sizes.items() if cell.task == task) for task in tasks}
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1) if named else (0, 1, 0, 0))
    table.add_column("\n", no_wrap=True, style="bold")
    if named:
        table.add_column("\nlanguage", no_wrap=True)
    for task in tasks:
        table.add_column(f"[bold]{escape(task)}[/]\n   train", no_wrap=True)
        for split in _others(surplus[task]):
            table.add_column(f"\n{split}", justify="right", no_wrap=True)
    for language in languages:
        row: list[Text] = [Text(f" {language}")]
        if named:
            row.append(Text(language_name(language)))
        for task in tasks:
            cell = Cell(task, language)
            row += _cell(sizes.get(cell), surplus[task], n_corpora.get(cell, 0))
        table.add_row(*row)
    table.add_section()
    totals = [Text(" all"), *([Text("")] if named else [])]
    for task in tasks:
        found = [size for cell, size in sizes.items() if cell.task == task]
        totals.append(Text(f"{sum(size['train'] for size in found):8,}"))
        totals += [Text(f"{sum(size[split] for size in found):,}") for split in _others(surplus[task])]
    table.add_row(*totals)
    return table


def _others(surplus: bool) -> tuple[str, ...]:
    return ("dev", "test", "surplus") if surplus else ("dev", "test")


def _cell(found: Sizes | None, surplus: bool, n_corpora: int) -> list[Text]:
    """The columns of one cell: a coloured mark with the training sentences, then the other splits."""
    if found is None:
        return [Text(*_EMPTY), *(Text("") for _ in _others(surplus))]
    training = found["train"] or found["surplus"]
    shade = next(((mark, colour) for mark, colour, least, _ in _SHADES if training >= least), _TEST_ONLY)
    first = Text(*shade).append(
        f"{found['train']:7,}" if found["train"] else "      ·", "" if found["train"] else _EMPTY[1]
    )
    if n_corpora > 1:
        first.append(f" {n_corpora}×", "bright_black")
    return [first, *(Text(f"{found[split]:,}") if found[split] else Text("·", _EMPTY[1]) for split in _others(surplus))]
