"""The demo in real languages: its grid, and the cells that were filled in, in words that people can read."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crossfill.cli.tables import word_lines
from crossfill.data.codes import language_name
from crossfill.data.parallel_corpus import parallel_grid
from crossfill.grid.cells import Cell, Grid
from crossfill.measures.metrics import score
from crossfill.prediction.tagging import Tagging
from crossfill.studies.demo import telling_sentence
from crossfill.tagger.tagger import Tagger

DOUBTFUL = 0.5
"""Words below this confidence are marked."""
SHOWN_PER_TASK = 4


def show_real_grid(console: Console, grid: Grid, seen: Collection[Cell]) -> None:
    """Print which cells are seen, and which are left to fill in."""
    n_words = sum(grid.training(cell).n_words for cell in seen)
    console.print(
        f"\n[bold]{len(grid.languages)} languages × {len(grid.tasks)} tasks[/], {len(grid.cells)} cells: "
        f"■ {len(seen)} seen, □ {len(grid.cells) - len(seen)} unseen; {n_words:,} training words\n"
    )
    table = Table.grid(padding=(0, 1))
    table.add_row("", *grid.languages, style="dim")
    for task in grid.tasks:
        marks = (Cell(task, language) in seen for language in grid.languages)
        table.add_row(f"  {task}", *(" [green]■[/]" if mark else " [dim]□[/]" for mark in marks))
    console.print(table)
    console.print()


def frequent_label_scores(grid: Grid, seen: Collection[Cell], unseen: Collection[Cell]) -> dict[str, float]:
    """The mean score over unseen cells, by task, of giving every word the task's most frequent training label."""
    found = {}
    for name in grid.inventory.tasks:
        task = grid.inventory.task(name)
        counts = sum((grid.training(cell).labels.counts() for cell in seen if cell.task == name), start=Counter())
        frequent = task.labels.index(max(task.labels, key=lambda label: counts[label]))
        tests = [grid[cell][0].test for cell in unseen if cell.task == name]
        golds = [grid.inventory.label_ids(name, test.labels) for test in tests]
        scores = [
            score(gold, np.full_like(gold, frequent), task, test.lengths)
            for gold, test in zip(golds, tests, strict=True)
        ]
        found[name] = sum(scores) / len(scores)
    return found


def show_filled(console: Console, tagger: Tagger, grid: Grid, unseen: Sequence[Cell], samples: int) -> None:
    """Print one test sentence, the same in each language, as tagged in a few cells of each task without data."""
    english = parallel_grid()[Cell("ner", "eng")][0].test
    number = list(english).index(telling_sentence(english))
    console.print(f"\n[bold]“{english[number].text}” as tagged in cells without data[/]")
    console.print(f"? marks a label that is doubtful (below {100 * DOUBTFUL:.0f} %), ✗ stands before the right one\n")
    for task in grid.tasks:
        cells = [cell for cell in unseen if cell.task == task]
        for cell in cells[:: -(-len(cells) // SHOWN_PER_TASK)]:
            tagging = tagger.tag(grid[cell][0].test[number], cell, samples)
            console.print(f"  [bold]{cell}[/] {language_name(cell.language)}")
            for part in word_lines(_tagged(tagging), console.width):
                console.print(part)
            console.print()


def show_doubt(console: Console, tagger: Tagger, grid: Grid, unseen: Sequence[Cell], samples: int) -> None:
    """Print how often doubtful words are wrong in the cells that were filled in, and how often the others are."""
    console.print("[bold]Doubtful and other words in all unseen cells[/]")
    for task in grid.tasks:
        cells = [cell for cell in unseen if cell.task == task]
        tagged = chain.from_iterable(tagger.tag_many(grid[cell][0].test, cell, samples) for cell in cells)
        wrong: Mapping[bool, list[bool]] = {True: [], False: []}
        for tagging in tagged:
            for label, gold, sure in zip(tagging.labels, tagging.sentence.labels, tagging.confidence, strict=True):
                wrong[bool(sure < DOUBTFUL)].append(label != gold)
        told = (
            f"{len(found):,} {name}, {100 * sum(found) / len(found):.0f} % wrong"
            for name, found in (("doubtful", wrong[True]), ("others", wrong[False]))
            if found
        )
        console.print(f"  {task}: {'; '.join(told)}")


def _tagged(tagging: Tagging) -> list[tuple[Text, ...]]:
    """Each word with its label."""
    columns = []
    rows = zip(tagging.sentence.words, tagging.labels, tagging.sentence.labels, tagging.confidence, strict=True)
    for word, label, gold, sure in rows:
        shown = label + ("?" if sure < DOUBTFUL else "") + ("" if label == gold else f" ✗{gold}")
        colour = "red" if label != gold else "yellow" if sure < DOUBTFUL else "green"
        columns.append((Text(word), Text(shown, colour)))
    return columns
