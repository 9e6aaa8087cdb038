"""`crossfill demo`: the whole story on an artificial grid, in about a minute."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crossfill.cli.serve import announce, web

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from crossfill.data.synthetic import Language
    from crossfill.experiments.demo import MethodRun, TaggedWord
    from crossfill.grid import Cell, Grid
    from crossfill.partition import Partition

NAMES = {"pf-lr": "PF-lr", "pf-d": "PF-d", "jm": "JM"}
LEGEND = (
    "PF-lr and PF-d: factorised, with low-rank and diagonal covariance. JM: one head per task for all languages.\n"
    "Accuracy for deprel and pos, span F1 for chunk and ner; posterior means plugged in."
)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the models, the results and the figure.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the grid, the partition and the models.")] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps per method. [default: as tuned]")] = None,
    families: Annotated[int, typer.Option(min=2, help="Families of five languages each; fewer are quicker.")] = 8,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")] = False,
    serve: Annotated[bool, typer.Option("--serve", help="Then serve the PF-lr model and open its page.")] = False,
    port: Annotated[int, typer.Option(help="With --serve: the port; 0 is any that is free.")] = 8000,
) -> None:
    """Make an artificial grid, hold out half its cells, train three methods, and show how they fill it."""
    from rich.console import Console

    from crossfill.checkpoint import write_json
    from crossfill.data.synthetic import SyntheticConfig
    from crossfill.experiments.demo import METHODS, demo_config, demo_grid, run_methods, tag_examples
    from crossfill.figures.demo import draw_demo
    from crossfill.progress import ProgressBar

    server = web() if serve else None  # a missing package is told now, not after the training

    console = Console(highlight=False)
    grid = SyntheticConfig(families=families)
    made, partition = demo_grid(seed, grid)
    _show_grid(console, made.grid, made.languages, partition)
    with ProgressBar(quiet) as bars:
        updates = {method: bars.add(method, steps or demo_config(method).training.steps) for method in METHODS}
        runs = run_methods(seed, out, lambda report: updates[report.method](report.step, report.note), steps, grid)
    console.print(_score_table(runs))
    console.print(_correlation_table(runs))
    chosen = [min(cell for cell in partition.unseen if cell.task == task) for task in made.grid.tasks]
    examples = tag_examples(out / "pf-lr", made.grid, chosen)
    _show_examples(console, examples)
    results = {"seed": seed, "languages": len(made.languages), "methods": [run.summary() for run in runs]}
    write_json(out / "results.json", results, indent=None)
    draw_demo(results, out / "demo.png")
    console.print(f"\nWritten to {out}/: results.json, demo.png, and a model folder for each method.")
    if server is not None:
        run, settings = server
        run(out / "pf-lr", settings(port=port), None, True, lambda address: announce(address, open_page=True))


def _show_grid(console: "Console", grid: "Grid", languages: "Sequence[Language]", partition: "Partition") -> None:
    from crossfill.grid import Cell

    n_words = sum(grid.training(cell).n_words for cell in partition.seen)
    console.print(
        f"\n[bold]{len(languages)} artificial languages × {len(grid.tasks)} tasks[/], {len(grid.cells)} cells: "
        f"■ {len(partition.seen)} seen, □ {len(partition.unseen)} unseen; {n_words:,} training words\n"
    )
    for task in grid.tasks:
        marks = ""
        for before, language in zip((None, *languages), languages, strict=False):
            gap = " " if before is not None and before.family != language.family else ""
            seen = Cell(task, language.code) in partition.seen
            marks += gap + ("[green]■[/]" if seen else "[dim]□[/]")
        console.print(f"  {task:>7} {marks}")
    families = len({language.family for language in languages})
    console.print(f"  {'':>7} {families} families, from {languages[0].code} to {languages[-1].code}\n", style="dim")


def _score_table(runs: "Sequence[MethodRun]") -> "Table":
    from rich.table import Table

    summaries = [run.summary() for run in runs]
    tasks = list(summaries[0]["unseen"])
    table = Table(
        "method", *tasks, "mean", "seen cells", "seconds", title="Scores on unseen cells", title_justify="left"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    best = {task: max(s["unseen"][task] for s in summaries) for task in tasks}
    for summary in summaries:
        unseen, seen = summary["unseen"], summary["seen"]
        cells = [f"[bold]{100 * unseen[t]:.1f}[/]" if unseen[t] == best[t] else f"{100 * unseen[t]:.1f}" for t in tasks]
        mean, seen_mean = (100 * sum(part.values()) / len(tasks) for part in (unseen, seen))
        table.add_row(NAMES[summary["method"]], *cells, f"{mean:.1f}", f"{seen_mean:.1f}", f"{summary['seconds']:.0f}")
    table.caption = LEGEND
    table.caption_justify = "left"
    return table


def _correlation_table(runs: "Sequence[MethodRun]") -> "Table":
    from rich.table import Table

    found = [(run.method, run.summary()["entropy_correlations"]) for run in runs]
    table = Table("method", *found[0][1], title="Does doubt foretell error?", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for method, correlations in found:
        table.add_row(NAMES[method], *(f"{value:.2f}" for value in correlations.values()))
    table.caption = "Correlation of mean entropy and score over unseen cells; −1 is perfect foresight."
    table.caption_justify = "left"
    return table


def _show_examples(console: "Console", examples: "Mapping[Cell, Sequence[TaggedWord]]") -> None:
    console.print("\n[bold]Tagged by PF-lr in cells it never saw[/]: ", end="")
    console.print("[green]sure[/], [yellow]less so[/], [red]unsure[/]; ✗ before the right label\n")
    for cell, words in examples.items():
        console.print(f"  {cell}", style="bold")
        console.print(_tagged(words))


def _tagged(words: "Sequence[TaggedWord]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    colours = ["green" if w.confidence > 0.9 else "yellow" if w.confidence > 0.6 else "red" for w in words]
    labels = [w.label if w.label == w.gold else f"{w.label} ✗{w.gold}" for w in words]
    table.add_row("", *(Text(w.word) for w in words))
    table.add_row("", *(Text(label, colour) for label, colour in zip(labels, colours, strict=True)))
    table.add_row("", *(Text(f"{w.confidence:.2f}", colour) for w, colour in zip(words, colours, strict=True)))
    return table
