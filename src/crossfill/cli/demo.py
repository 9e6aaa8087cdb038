"""`crossfill demo`: train and compare methods on an artificial grid, or on one of real languages, in about a minute."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crossfill.cli.options import MOST_SEED, QUIET
from crossfill.cli.serve import announce, web

if TYPE_CHECKING:
    from rich.console import Console


LEGEND = (
    "PF-lr and PF-d: factorised, with low-rank and diagonal covariance. JM: one head per task for all languages.\n"
    "Accuracy for deprel and pos, span F1 for chunk and ner; posterior means plugged in."
)
REAL_LEGEND = (
    "pos: accuracy; ner: span F1; most frequent: one label.\n"
    "Sentences are divided by number, alike in all languages:\n"
    "no translation of a test sentence was trained on."
)


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
    from crossfill.cli import demo_output as output
    from crossfill.studies.demo import artificial_languages, demo_study, run_demo, seen_cells, unseen_cells
    from crossfill.studies.run_folder import open_results
    from crossfill.tagger.tagger import load

    checked = demo_study(seed, steps, families)
    artificial = artificial_languages(checked)
    output.show_artificial_grid(console, artificial, seen_cells(checked))
    run_demo(checked, out, QUIET.get())
    results = open_results(out)
    console.print(output.score_table(results, LEGEND))
    console.print(output.correlation_table(results))
    output.show_examples(console, load(out / results.focus), artificial, unseen_cells(checked), results.focus)


def _real_demo(console: "Console", seed: int, steps: int | None, encoder: str, out: Path) -> None:
    from crossfill.cli import demo_output as output
    from crossfill.studies.demo import demo_grid, real_demo_study, run_demo, seen_cells, unseen_cells
    from crossfill.studies.run_folder import open_results
    from crossfill.tagger.tagger import load

    checked = real_demo_study(seed, steps, encoder)
    grid, seen, unseen = demo_grid(checked), seen_cells(checked), unseen_cells(checked)
    output.show_real_grid(console, grid, seen)
    run_demo(checked, out, QUIET.get())
    results = open_results(out)
    frequent = output.frequent_label_scores(grid, seen, unseen)
    console.print(output.score_table(results, REAL_LEGEND, frequent))
    tagger = load(out / results.focus)
    output.show_filled(console, tagger, grid, unseen, output.SAMPLES)
    output.show_doubt(console, tagger, grid, unseen, output.SAMPLES)
    if encoder == "compact":
        console.print(
            "\nThe built-in encoder has read nothing but these sentences. To see what a pretrained one adds:\n"
            "crossfill demo --real --encoder NAME_OR_FOLDER"
        )
