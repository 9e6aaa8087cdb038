"""`crossfill demo`: train and compare methods on an artificial grid, or on one of real languages, in about a minute."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from crossfill.cli.options import QUIET
from crossfill.cli.output import say_what_found_nothing
from crossfill.cli.serve import announce, web

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from crossfill.grid.cells import Cell, Grid
    from crossfill.prediction.tagging import Tagging
    from crossfill.studies.run_folder import StudyResults
    from crossfill.tagger.tagger import Tagger

LEGEND = (
    "PF-lr and PF-d: factorised, with low-rank and diagonal covariance. JM: one head per task for all languages.\n"
    "Accuracy for deprel and pos, span F1 for chunk and ner; posterior means plugged in."
)
REAL_LEGEND = (
    "pos: accuracy; ner: span F1. Sentences are divided by number, alike in all languages:\n"
    "no translation of a test sentence was trained on."
)
SAMPLES = 100
"""Posterior samples for the sentences that are shown."""


def demo(
    real: Annotated[bool, Option("--real", help="Real languages instead: everyday sentences in sixteen.")] = False,
    encoder: Annotated[
        str | None, Option(help="With --real: a pretrained encoder, frozen. [default: the small built-in one]")
    ] = None,
    out: Annotated[
        Path | None, Option(help="Folder for the models and the results. [default: demo, or demo-real]")
    ] = None,
    change: Annotated[
        list[str] | None, Option("--set", help="A setting of its study, as config.training.steps=500.")
    ] = None,
    serve: Annotated[bool, Option("--serve", help="Then serve the PF-lr model and open its page.")] = False,
) -> None:
    """Hold out half the cells of a grid, train methods on the rest, and show how they fill it."""
    from rich.console import Console

    from crossfill.settings import parse_assignments
    from crossfill.studies.demo import demo_cells, demo_study, run_demo
    from crossfill.studies.run_folder import open_results
    from crossfill.tagger.tagger import load

    if encoder is not None and not real:
        raise typer.BadParameter("--encoder needs --real: artificial languages mean nothing to a pretrained encoder")
    server = web() if serve else None  # report a missing package now, not after the training
    console = Console(highlight=False)
    out = out or Path("demo-real" if real else "demo")
    checked = demo_study(real, encoder or "compact", parse_assignments(change or ()))
    grid, (seen, unseen) = checked.grid.grid, demo_cells(checked)
    n_words = sum(grid.training(cell).n_words for cell in seen)
    console.print(
        f"\n[bold]{len(grid.languages)} {'' if real else 'artificial '}languages × {len(grid.tasks)} tasks[/], "
        f"{len(grid.cells)} cells: ■ {len(seen)} seen, □ {len(unseen)} unseen; {n_words:,} training words\n"
    )
    synthetic = checked.study.data.synthetic
    _show_cells(console, grid, seen, synthetic.languages_per_family if synthetic else None)
    run_demo(checked, out, QUIET.get())
    results = open_results(out)
    tagger = load(out / results.focus)
    console.print(score_table(results, REAL_LEGEND if real else LEGEND))
    say_what_found_nothing(results)
    show_examples(console, tagger, grid, unseen)
    if real and encoder in (None, "compact"):
        console.print(
            "\nThe built-in encoder has read nothing but these sentences. To see what a pretrained one adds:\n"
            "crossfill demo --real --encoder NAME_OR_FOLDER"
        )
    console.print(f"\nWritten to {out}/: results and a model folder for each method; figures: crossfill report {out}")
    if server is not None:
        run, settings = server
        run(out / results.focus, settings(port=0), None, True, lambda place: announce(place, open_page=True))


def _show_cells(console: "Console", grid: "Grid", seen: "Collection[Cell]", per_family: int | None) -> None:
    """Print which cells are seen, and which are left to fill: in families of languages, or by language."""
    from rich.table import Table

    from crossfill.grid.cells import Cell

    languages = list(grid.languages)
    size = per_family or 1
    groups = [languages[i : i + size] for i in range(0, len(languages), size)]
    table = Table.grid(padding=(0, 1))
    if per_family is None:
        table.add_row("", *languages, style="dim")
    for task in grid.tasks:
        marks = ["".join("[green]■[/]" if Cell(task, code) in seen else "[dim]□[/]" for code in g) for g in groups]
        table.add_row(f"  {task:>{7 if per_family else 3}}", *(f"{' ' * (per_family is None)}{mark}" for mark in marks))
    console.print(table)
    families = f"{len(groups)} families, from {languages[0]} to {languages[-1]}\n"
    console.print(f"          {families}" if per_family else "", style="dim")


def score_table(results: "StudyResults", legend: str) -> "Table":
    """Lay out mean scores of each method."""
    from rich.table import Table

    from crossfill.evaluation.results import task_means
    from crossfill.report.rendering import method_label

    tasks = results.tasks
    scored = {m: [r for entry in results.proper(m) for r in results.cells(entry)] for m in results.methods}
    unseen, seen = ({m: task_means(scored[m], seen=which) for m in results.methods} for which in (False, True))
    best = {task: max(means[task] for means in unseen.values()) for task in tasks}
    table = Table(
        "method", title="Scores on unseen cells", title_justify="left", caption=legend, caption_justify="left"
    )
    for column in (*tasks, "mean", "seen cells", "seconds"):
        table.add_column(column, justify="right")
    for method in results.methods:
        scores = {task: f"{100 * unseen[method][task]:.1f}" for task in tasks}
        bold = [f"[bold]{s}[/]" if unseen[method][task] == best[task] else s for task, s in scores.items()]
        means = (100 * sum(part[method].values()) / len(tasks) for part in (unseen, seen))
        measured = results.jobs[results.proper(method)[0].job]["measured"]
        seconds = measured["train_seconds"] + measured["evaluate_seconds"]
        table.add_row(method_label(method), *bold, *(f"{mean:.1f}" for mean in means), f"{seconds:.0f}")
    return table


def show_examples(console: "Console", tagger: "Tagger", grid: "Grid", unseen: "Sequence[Cell]") -> None:
    """Print one test sentence of an unseen cell of each task, as tagged."""
    from crossfill.report.rendering import method_label
    from crossfill.studies.demo import telling_sentence

    console.print(f"\n[bold]Tagged by {method_label(tagger.config.method)} in cells it never saw[/]: ", end="")
    console.print("each word with its label and confidence; ✗ before the right label\n")
    for task in grid.tasks:
        cell = next(cell for cell in unseen if cell.task == task)
        console.print(f"  {cell}", style="bold")
        print_words(console, tagger.tag(telling_sentence(grid[cell][0].test), cell, SAMPLES))


def print_words(console: "Console", tagging: "Tagging") -> None:
    """Print words, each above its label, with the right one if it is wrong, and above its confidence."""
    from rich.columns import Columns
    from rich.padding import Padding
    from rich.text import Text

    words = []
    rows = zip(tagging.sentence.words, tagging.labels, tagging.sentence.labels, tagging.confidence, strict=True)
    for word, label, gold, sure in rows:
        colour = "green" if sure > 0.9 else "yellow" if sure > 0.6 else "red"
        words.append(Text(f"{word}\n").append(f"{label}{'' if label == gold else f' ✗{gold}'}\n{sure:.2f}", colour))
    console.print(Padding(Columns(words, padding=(0, 2)), (0, 0, 0, 2), expand=False))
