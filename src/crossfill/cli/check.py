"""`crossfill check DATA`: the labels that are most likely wrong, and what corpora of a task label differently."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from crossfill.cli.grid import read_showing_progress, show_problems, showing_progress
from crossfill.cli.options import DataFolder, Tasks, check_writable
from crossfill.cli.output import print_table, visible
from crossfill.errors import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crossfill.data.messages import Message
    from crossfill.grid.cells import Cell
    from crossfill.grid.sentence import Sentence
    from crossfill.tagger.check import Check

_CONTEXT = 4
"""Words that are shown before and after a word."""
_MOST_USES = 20


def check(
    data: DataFolder,
    task: Tasks = None,
    encoder: Annotated[
        str | None,
        Option(help="A pretrained encoder whose features help to tell errors. [default: cues of words only]"),
    ] = None,
    most: Annotated[int, Option(min=1, max=2000, help="How many labels to list.")] = 100,
    teach: Annotated[
        Path | None,
        Option(help="Also let their sentences wait, worst first, in this folder of the Teach page (serve --teach)."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON lines: one for each label, corpus and form.")] = False,
) -> None:
    """Find labels that are probably wrong, and what corpora of a task label differently."""
    from crossfill.data.folder import ReadOptions
    from crossfill.data.messages import tag_sets
    from crossfill.tagger.check import check as check_labels

    if teach is not None:
        check_writable(teach)
    grid = read_showing_progress(data, ReadOptions(task or ())).checked()

    result = check_labels(grid, encoder, most=most, watch=showing_progress("Checking labels", "corpora"))
    if as_json:
        _print_lines(result, tag_sets(grid))
    else:
        _show(data, result, tag_sets(grid))
    if teach is not None:
        let_sentences_wait(((error.cell, error.sentence) for error in result.errors), teach)


def let_sentences_wait(sentences: "Iterable[tuple[Cell, Sentence]]", folder: Path) -> None:
    """Let sentences with labels of words wait in a folder of the Teach page, each once."""
    from crossfill.grid.task import Unit
    from crossfill.teaching.sentence_queue import let_wait

    of_cells: dict[Cell, dict[Sentence, None]] = {}
    for cell, sentence in sentences:
        if sentence.unit is Unit.WORD:
            of_cells.setdefault(cell, {})[sentence] = None
    for cell, waiting in of_cells.items():
        typer.echo(f"{let_wait(folder, cell, waiting)}: {len(waiting):,} sentences wait", err=True)


def _print_lines(result: "Check", problems: "Sequence[Message]") -> None:
    errors = [vars(error) | {"cell": str(error.cell), "sentence": error.sentence.text} for error in result.errors]
    corpora = [vars(corpus) | {"cell": str(corpus.cell)} for corpus in result.corpora]
    kinds = {"label": errors, "corpus": corpora, "form": map(vars, result.uses), "tag set": map(vars, problems)}
    for kind, rows in kinds.items():
        for row in rows:
            typer.echo(json.dumps({"kind": kind, **row}, ensure_ascii=False))


def _show(data: Path, result: "Check", problems: "Sequence[Message]") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table("where", "given", "expected", "wrong", "in", title="Labels that are least likely")
    for error in result.errors:
        place = Text(visible(error.where.removeprefix(f"{data}{os.sep}") or error.corpus))
        labels = (Text(visible(label)) for label in (error.given, error.expected))
        table.add_row(place, *labels, f"{error.wrong:.0%}", in_context(error.sentence, error.word))
    print_table(console, table)
    table = Table("corpus", "labels", "wrong", "", title="Estimated share of wrong labels")
    for corpus in result.corpora:
        share = "–" if corpus.share is None else f"{corpus.share:.1%}"
        table.add_row(Text(visible(corpus.name)), f"{corpus.labels:,}", share, corpus.problem)
    table.columns[1].justify = table.columns[2].justify = "right"
    print_table(console, table)
    if result.uses:
        more = f", {_MOST_USES} of {len(result.uses):,}" if result.uses[_MOST_USES:] else ""
        title = f"Forms that corpora label differently{more}"
        table = Table("form", "labels, and the corpora that use them", title=title)
        for use in result.uses[:_MOST_USES]:
            each = "; ".join(f"{label} in {listed(names, 3)}" for label, names in use.corpora.items())
            table.add_row(Text(visible(use.form)), Text(visible(each)))
        print_table(console, table)
    show_problems(console, problems)


def in_context(sentence: "Sentence", place: int) -> Any:
    """Show a word with those around it; a sentence or a pair with one label from its beginning."""
    from rich.text import Text

    words = sentence.words
    if len(sentence.labels) != len(words):
        return Text(visible(sentence.text[:80]))
    before, after = words[max(0, place - _CONTEXT) : place], words[place + 1 : place + 1 + _CONTEXT]
    text = Text(visible(" ".join([*before, ""])))
    return text.append(f"[{visible(words[place])}]", style="bold").append(visible(" ".join(["", *after])))
