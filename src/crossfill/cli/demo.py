"""`crossfill demo`: train and compare methods on an artificial grid, or on one of real languages, in about a minute."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crossfill.cli.options import MOST_SEED, QUIET
from crossfill.cli.serve import announce, web

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from crossfill.data.synthetic import SyntheticGrid
    from crossfill.grid.cells import Cell
    from crossfill.prediction.tagging import Tagging
    from crossfill.studies.plan import CheckedStudy
    from crossfill.studies.run_folder import Results
    from crossfill.tagger.tagger import Tagger

LEGEND = (
    "PF-lr and PF-d: factorised, with low-rank and diagonal covariance. JM: one head per task for all languages.\n"
    "Accuracy for deprel and pos, span F1 for chunk and ner; posterior means plugged in."
)
REAL_LEGEND = (
    "pos: accuracy; ner: span F1; most frequent: one label.\n"
    "Sentences are divided by number, alike in all languages:\n"
    "no translation of a test sentence was trained on."
)
SAMPLES = 100
"""Posterior samples for the sentences that are shown."""


def demo(
    real: Annotated[
        bool, typer.Option("--real", help="Real languages instead: everyday sentences in sixteen.")
    ] = False,
    encoder: Annotated[
        str | None, typer.Option(help="With --real: a pretrained encoder, frozen. [default: the small built-in one]")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the models, the results and the figure. [default: demo, or demo-real]"),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=MOST_SEED, help="Seed of the grid, the partition and the models.")
    ] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps per method. [default: as tuned]")] = None,
    families: Annotated[
        int | None, typer.Option(min=2, help="Families of five artificial languages; fewer are quicker. [default: 8]")
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Then serve the PF-lr model and open its page.")] = False,
) -> None:
    """Hold out half the cells of a grid, train methods on the rest, and show how they fill it."""
    from rich.console import Console

    from crossfill.report.figures.demo import draw
    from crossfill.studies.run_folder import open_results

    if real and families is not None:
        raise typer.BadParameter("--families is of artificial languages; leave it or --real out")
    if encoder is not None and not real:
        raise typer.BadParameter("--encoder needs --real: artificial languages mean nothing to a pretrained encoder")
    server = web() if serve else None  # report a missing package now, not after the training
    console = Console(highlight=False)
    if out is None:
        out = Path("demo-real" if real else "demo")
    if real:
        _real_demo(console, seed, steps, encoder or "compact", out)
    else:
        _artificial_demo(console, seed, steps, families, out)
    results = open_results(out)
    draw(results).save(out)
    console.print(f"\nWritten to {out}/: results.jsonl, demo.png, and a model folder for each method.")
    if server is not None:
        run, settings = server
        run(out / results.focus, settings(port=0), None, True, lambda place: announce(place, open_page=True))


def _artificial_demo(console: "Console", seed: int, steps: int | None, families: int | None, out: Path) -> None:
    from crossfill.cli.tables import print_boxed
    from crossfill.studies.demo import artificial_languages, demo_study, run_demo
    from crossfill.studies.run_folder import open_results
    from crossfill.tagger.tagger import load

    checked = demo_study(seed, steps, families)
    made = artificial_languages(checked)
    _show_grid(console, made, checked)
    run_demo(checked, out, QUIET.get())
    results = open_results(out)
    print_boxed(console, _score_table(results, LEGEND))
    print_boxed(console, _correlation_table(results))
    _show_examples(console, _examples(load(out / results.focus), checked, made), results.focus)


def _real_demo(console: "Console", seed: int, steps: int | None, encoder: str, out: Path) -> None:
    from crossfill.cli.filled import frequent_label_scores, show_doubt, show_filled, show_real_grid
    from crossfill.cli.tables import print_boxed
    from crossfill.studies.demo import demo_grid, real_demo_study, run_demo, seen_cells, unseen_cells
    from crossfill.studies.run_folder import open_results
    from crossfill.tagger.tagger import load

    checked = real_demo_study(seed, steps, encoder)
    grid, seen, unseen = demo_grid(checked), seen_cells(checked), unseen_cells(checked)
    show_real_grid(console, grid, seen)
    run_demo(checked, out, QUIET.get())
    results = open_results(out)
    print_boxed(console, _score_table(results, REAL_LEGEND, frequent_label_scores(grid, seen, unseen)))
    tagger = load(out / results.focus)
    show_filled(console, tagger, grid, unseen, SAMPLES)
    show_doubt(console, tagger, grid, unseen, SAMPLES)
    if encoder == "compact":
        console.print(
            "\nThe built-in encoder has read nothing but these sentences. To see what a pretrained one adds:\n"
            "crossfill demo --real --encoder NAME_OR_FOLDER"
        )


def _show_grid(console: "Console", made: "SyntheticGrid", checked: "CheckedStudy") -> None:
    from crossfill.grid.cells import Cell

    grid, languages = made.grid, made.languages
    job = next(iter(checked.plan.jobs.values()))
    n_words = sum(grid.training(Cell.parse(cell)).n_words for cell in job.seen)
    console.print(
        f"\n[bold]{len(languages)} artificial languages × {len(grid.tasks)} tasks[/], {len(grid.cells)} cells: "
        f"■ {len(job.seen)} seen, □ {len(job.unseen)} unseen; {n_words:,} training words\n"
    )
    for task in grid.tasks:
        marks = ""
        for before, language in zip((None, *languages), languages, strict=False):
            gap = " " if before is not None and before.family != language.family else ""
            seen = f"{task}/{language.code}" in job.seen
            marks += gap + ("[green]■[/]" if seen else "[dim]□[/]")
        console.print(f"  {task:>7} {marks}")
    families = len({language.family for language in languages})
    console.print(f"  {'':>7} {families} families, from {languages[0].code} to {languages[-1].code}\n", style="dim")


def _score_table(results: "Results", legend: str, floor: "Mapping[str, float] | None" = None) -> "Table":
    """Mean scores of each method; `floor`, if given, has the scores of labels that need no method."""
    from rich.table import Table

    from crossfill.evaluation.results import task_means
    from crossfill.report.rendering import shown

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


def _correlation_table(results: "Results") -> "Table":
    from rich.table import Table

    from crossfill.evaluation.results import entropy_correlation, entropy_points
    from crossfill.report.rendering import shown

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


def _examples(tagger: "Tagger", checked: "CheckedStudy", made: "SyntheticGrid") -> "dict[Cell, Tagging]":
    """One test sentence of an unseen cell of each task, tagged."""
    from crossfill.studies.demo import telling_sentence, unseen_cells

    unseen = unseen_cells(checked)
    cells = [next(cell for cell in unseen if cell.task == task) for task in made.grid.tasks]
    return {cell: tagger.tag(telling_sentence(made.grid[cell][0].test), cell, SAMPLES) for cell in cells}


def _show_examples(console: "Console", examples: "Mapping[Cell, Tagging]", method: str) -> None:
    from crossfill.cli.tables import word_lines
    from crossfill.report.rendering import shown

    console.print(f"\n[bold]Tagged by {shown(method)} in cells it never saw[/]: ", end="")
    console.print("each word with its label and confidence; ✗ before the right label\n")
    for cell, tagging in examples.items():
        console.print(f"  {cell}", style="bold")
        for line in word_lines(_tagged(tagging), console.width):
            console.print(line)


def _tagged(tagging: "Tagging") -> "list[tuple[Text, ...]]":
    """Each word with its label and its confidence."""
    from rich.text import Text

    sure: Sequence[float] = tagging.confidence.tolist()
    colours = ["green" if value > 0.9 else "yellow" if value > 0.6 else "red" for value in sure]
    pairs = zip(tagging.labels, tagging.sentence.labels, strict=True)
    labels = [label if label == gold else f"{label} ✗{gold}" for label, gold in pairs]
    rows = zip(tagging.sentence.words, labels, sure, colours, strict=True)
    return [(Text(word), Text(label, colour), Text(f"{value:.2f}", colour)) for word, label, value, colour in rows]
