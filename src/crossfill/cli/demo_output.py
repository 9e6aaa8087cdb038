"""What the demo prints: its grid, its scores, and sentences that it tagged in cells without data."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crossfill.data.codes import language_name
from crossfill.data.parallel_corpus import parallel_grid
from crossfill.data.synthetic import SyntheticGrid
from crossfill.evaluation.results import entropy_correlation, entropy_points, task_means
from crossfill.grid.cells import Cell, Grid
from crossfill.measures.metrics import score
from crossfill.prediction.tagging import Tagging
from crossfill.report.rendering import shown
from crossfill.studies.demo import telling_sentence
from crossfill.studies.run_folder import Results
from crossfill.tagger.tagger import Tagger

SAMPLES = 100
"""Posterior samples for the sentences that are shown."""
DOUBTFUL = 0.5
"""Words of real languages below this confidence are marked."""
SHOWN_PER_TASK = 4
_GAP = 2
"""Spaces between words."""


def show_artificial_grid(console: Console, artificial: SyntheticGrid, seen: Collection[Cell]) -> None:
    """Print which cells are seen, and which are left to fill, in families of languages."""
    grid, languages = artificial.grid, artificial.languages
    _show_sizes(console, grid, seen, "artificial languages")
    for task in grid.tasks:
        marks = ""
        for before, language in zip((None, *languages), languages, strict=False):
            gap = " " if before is not None and before.family != language.family else ""
            marks += gap + ("[green]■[/]" if Cell(task, language.code) in seen else "[dim]□[/]")
        console.print(f"  {task:>7} {marks}")
    families = len({language.family for language in languages})
    console.print(f"  {'':>7} {families} families, from {languages[0].code} to {languages[-1].code}\n", style="dim")


def show_real_grid(console: Console, grid: Grid, seen: Collection[Cell]) -> None:
    """Print which cells are seen, and which are left to fill, by language."""
    _show_sizes(console, grid, seen, "languages")
    table = Table.grid(padding=(0, 1))
    table.add_row("", *grid.languages, style="dim")
    for task in grid.tasks:
        marks = (Cell(task, language) in seen for language in grid.languages)
        table.add_row(f"  {task}", *(" [green]■[/]" if mark else " [dim]□[/]" for mark in marks))
    console.print(table)
    console.print()


def _show_sizes(console: Console, grid: Grid, seen: Collection[Cell], languages: str) -> None:
    n_words = sum(grid.training(cell).n_words for cell in seen)
    console.print(
        f"\n[bold]{len(grid.languages)} {languages} × {len(grid.tasks)} tasks[/], {len(grid.cells)} cells: "
        f"■ {len(seen)} seen, □ {len(grid.cells) - len(seen)} unseen; {n_words:,} training words\n"
    )


def score_table(results: Results, legend: str, floor: Mapping[str, float] | None = None) -> Table:
    """Mean scores of each method; `floor`, if given, has the scores of labels that need no method."""
    tasks = results.tasks
    found = {m: [r for entry in results.proper(m) for r in results.cells(entry)] for m in results.methods}
    unseen, seen = ({m: task_means(own, seen=which) for m, own in found.items()} for which in (False, True))
    table = Table(
        "method", *tasks, "mean", "seen cells", "seconds", title="Scores on unseen cells", title_justify="left"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for method in results.methods:
        scores = [(unseen[method][t], max(unseen[m][t] for m in results.methods)) for t in tasks]
        cells = [f"[bold]{100 * score:.1f}[/]" if score == best else f"{100 * score:.1f}" for score, best in scores]
        means = (100 * sum(part[method].values()) / len(tasks) for part in (unseen, seen))
        measured = results.jobs[results.proper(method)[0].job]["measured"]
        seconds = measured["train_seconds"] + measured["evaluate_seconds"]
        table.add_row(shown(method), *cells, *(f"{mean:.1f}" for mean in means), f"{seconds:.0f}")
    if floor is not None:
        mean = sum(floor.values()) / len(tasks)
        table.add_row("most frequent", *(f"{100 * floor[task]:.1f}" for task in tasks), f"{100 * mean:.1f}", "", "")
    table.caption = legend
    table.caption_justify = "left"
    return table


def correlation_table(results: Results) -> Table:
    """Make the table of correlations between entropy and score over unseen cells."""
    table = Table("method", *results.tasks, "pooled", title="Does uncertainty predict errors?", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for method in results.methods:
        found = results.unseen(results.proper(method))
        correlations = [entropy_correlation(entropy_points(found, task)).r for task in (*results.tasks, None)]
        table.add_row(shown(method), *(f"{r:.2f}" for r in correlations))
    table.caption = "Correlation of mean entropy and score over unseen cells; −1: entropy predicts the score perfectly."
    table.caption_justify = "left"
    return table


def show_examples(
    console: Console, tagger: Tagger, artificial: SyntheticGrid, unseen: Sequence[Cell], method: str
) -> None:
    """Print one test sentence of an unseen cell of each task, as tagged."""
    console.print(f"\n[bold]Tagged by {shown(method)} in cells it never saw[/]: ", end="")
    console.print("each word with its label and confidence; ✗ before the right label\n")
    for task in artificial.grid.tasks:
        cell = next(cell for cell in unseen if cell.task == task)
        tagging = tagger.tag(telling_sentence(artificial.grid[cell][0].test), cell, SAMPLES)
        console.print(f"  {cell}", style="bold")
        for line in word_lines(_with_confidence(tagging), console.width):
            console.print(line)


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
            for part in word_lines(_with_marks(tagging), console.width):
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


def _with_confidence(tagging: Tagging) -> list[tuple[Text, ...]]:
    """Each word with its label and its confidence."""
    sure: Sequence[float] = tagging.confidence.tolist()
    colours = ["green" if value > 0.9 else "yellow" if value > 0.6 else "red" for value in sure]
    pairs = zip(tagging.labels, tagging.sentence.labels, strict=True)
    labels = [label if label == gold else f"{label} ✗{gold}" for label, gold in pairs]
    rows = zip(tagging.sentence.words, labels, sure, colours, strict=True)
    return [(Text(word), Text(label, colour), Text(f"{value:.2f}", colour)) for word, label, value, colour in rows]


def _with_marks(tagging: Tagging) -> list[tuple[Text, ...]]:
    """Each word with its label."""
    columns = []
    rows = zip(tagging.sentence.words, tagging.labels, tagging.sentence.labels, tagging.confidence, strict=True)
    for word, label, gold, sure in rows:
        shown = label + ("?" if sure < DOUBTFUL else "") + ("" if label == gold else f" ✗{gold}")
        colour = "red" if label != gold else "yellow" if sure < DOUBTFUL else "green"
        columns.append((Text(word), Text(shown, colour)))
    return columns


def word_lines(words: Sequence[tuple[Text, ...]], width: int) -> Iterator[Table]:
    """The words of a sentence, each above what is said of it, in as many lines as the width asks for."""
    line: list[tuple[Text, ...]] = []
    for word in words:
        if line and sum(map(_word_width, (*line, word))) > width - 2 * _GAP:
            yield _word_line(line)
            line = []
        line.append(word)
    if line:
        yield _word_line(line)


def _word_line(words: Sequence[tuple[Text, ...]]) -> Table:
    table = Table.grid(padding=(0, _GAP, 0, 0))
    for row in zip(*words, strict=True):
        table.add_row("  ", *row)
    return table


def _word_width(word: tuple[Text, ...]) -> int:
    return max(text.cell_len for text in word) + _GAP
