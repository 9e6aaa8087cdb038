"""`crossfill evaluate MODEL DATA`: scores and calibration of every cell with test data."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from crossfill.cli.options import QUIET, AsJson, DataFolder, ModelFolder, Samples, Seed, sides
from crossfill.cli.output import print_json, print_table, say_if_nothing_was_found, show_expected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crossfill.evaluation.results import CellResult


def evaluate(
    model: ModelFolder,
    data: DataFolder,
    samples: Samples = None,
    alpha: Annotated[float, Option(help="Share of words whose label sets may miss the right label.")] = 0.1,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Score a model on every cell that has test data: seen (■) and unseen (▣), with calibration and risk–coverage."""
    from crossfill.adaptation.heads import check_test_data
    from crossfill.data.folder import load_grid
    from crossfill.errors import DataError, listed
    from crossfill.evaluation import scoring
    from crossfill.progress import ProgressBar
    from crossfill.tagger.tagger import load

    tagger = load(model, cache=True)
    if samples is not None:
        tagger.config = tagger.config.change({"prediction.samples": samples})
    # read with the tasks that the model was trained with, so that text which they share is kept apart as it was then
    tasks = tuple(tagger.model.inventory.tasks)
    grid = load_grid(data, tasks=tasks, seed=seed, allow_missing=True)
    known = frozenset(tagger.cells)
    left_out = [cell for cell in grid.cells if cell not in known]
    if len(left_out) == len(grid.cells):
        raise DataError(
            f"{data}: expected cells of the model's grid, found none; the model has {sides(tagger.cells)}; "
            f"the data have {sides(grid.cells)}; evaluate on other data, or train a model on these"
        )
    if left_out:
        typer.echo(f"not in the model's grid, left out: {listed(left_out)}", err=True)
    grid = grid.where(lambda cell: cell in known)
    check_test_data(tagger.model, grid)
    for adapted in (cell for cell in grid.cells if cell in tagger.adapted):
        typer.echo(f"{adapted}: {tagger.status(adapted)}", err=True)
    n_corpora = len(scoring.scored_corpora(tagger.model, grid))
    if not n_corpora:
        raise DataError(
            f"expected test data that the model was not trained on, found none in {listed(grid.cells)}; the "
            f"model has {sides(tagger.cells)}; add a test file to one of these cells (a seen cell trains on its test "
            "file if it has no other)"
        )
    with ProgressBar(QUIET.get()) as bars:
        update = bars.add("Evaluating corpora", n_corpora)
        results = scoring.evaluate(tagger.model, grid, tagger.config, tagger.calibration, alpha, update)
    for result in (result for result in results if result.unlabelled):
        n_open, n_all = result.unlabelled, result.unlabelled + result.n_words
        typer.echo(f"{result.cell}: {n_open:,} of {n_all:,} words have no label; scores are of the others", err=True)
    say_if_nothing_was_found(results)
    report = as_report(results) | {"samples": tagger.config.prediction.samples}
    if tagger.model.inventory.units:
        report["units"] = dict(tagger.model.inventory.units)
    scored, expectations = {result.cell for result in results}, tagger.expectations
    if not as_json:
        _show(report)
        show_expected(expectations, scored)
        return
    if expectations is not None and (unscored := expectations.unscored(scored)):
        cells = [{"cell": str(one.cell), "score": one.score, "low": one.low, "high": one.high} for one in unscored]
        report["expected"] = {"level": expectations.level, "held_out": len(expectations.held_out), "cells": cells}
    print_json(report)


def as_report(results: "Sequence[CellResult]") -> dict[str, Any]:
    """Return all measures: an entry for each corpus, and means over the seen and over the unseen corpora of a task."""
    from crossfill.evaluation.results import grouped, mean

    means = []
    for (task, seen), group in grouped(results, lambda result: (result.cell.task, result.seen)).items():
        measured = list(map(_measures, group))
        values = {name: mean([one[name] for one in measured]) for name in measured[0]}
        means.append({"task": task, "seen": seen, "corpora": len(group), **values})
    alpha = next((result.label_sets.alpha for result in results if result.label_sets is not None), None)
    return {"alpha": alpha, "means": means, "results": [result.as_dict() | _measures(result) for result in results]}


def _measures(result: "CellResult") -> dict[str, float]:
    """Name the measures of a corpus that means are taken of, as `averaged_nll`."""
    names = ("score", "nll", "ece", "aurc")
    flat = {f"{kind}_{name}": result.measures(kind)[name] for kind in ("plug_in", "averaged") for name in names}
    sets = {} if result.label_sets is None else asdict(result.label_sets)
    return flat | {"errors_removed_at_80": result.errors_removed} | sets


def _show(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    results, alpha = report["results"], report["alpha"]
    several = len({entry["cell"] for entry in results}) < len(results)
    counted = "labels" if report.get("units") else "words"
    for title, keys, (count_title, count), entries in (
        ("Cells", ("cell", "corpus") if several else ("cell",), (counted, "n_words"), results),
        ("Means over corpora", ("task",), ("corpora", "corpora"), report["means"]),
    ):
        table = Table("", *keys, title=title)
        sets = [] if alpha is None else [f"coverage {1 - alpha:.0%}", "set size"]
        for name in (count_title, "score", "averaged", "NLL", "ECE", "AURC", "−err", *sets):
            table.add_column(name, justify="right")
        for entry in entries:
            table.add_row(
                "■" if entry["seen"] else "▣",
                *(entry[key] for key in keys),
                f"{entry[count]:,}",
                *(f"{100 * entry[name]:.1f}" for name in ("plug_in_score", "averaged_score")),
                *(f"{entry[name]:.3f}" for name in ("averaged_nll", "averaged_ece", "averaged_aurc")),
                f"{entry['errors_removed_at_80']:.0%}",
                *((f"{entry['coverage']:.1%}", f"{entry['set_size']:.2f}") if "coverage" in entry else ()),
            )
        print_table(console, table)
    console.print(
        "■ seen, ▣ unseen. The score is of plug-in prediction, the rest of averaged prediction; NLL, ECE and AURC: the "
        "lower, the better; −err: errors gone with the least sure 20 %."
    )
