"""`crossfill evaluate MODEL DATA`: scores and calibration of every cell with test data."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from crossfill.cli.options import QUIET, AsJson, DataFolder, ModelFolder, Samples, Seed, listed, sides
from crossfill.cli.output import print_json, print_table, show_expected

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from rich.table import Table

    from crossfill.evaluation.results import CellResult
    from crossfill.grid.cells import Cell, Grid
    from crossfill.tagger.tagger import Tagger


def evaluate(
    model: ModelFolder,
    data: DataFolder,
    samples: Samples = None,
    alpha: Annotated[float, typer.Option(help="Share of words whose label sets may miss the right label.")] = 0.1,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Score a model on every cell that has test data: seen (■) and unseen (▣), with calibration and risk–coverage."""
    from crossfill.adaptation.heads import check_test_data
    from crossfill.data.folder import load_grid
    from crossfill.tagger.tagger import load

    tagger = load(model, cache=True)
    if samples is not None:
        tagger.config = tagger.config.change({"prediction.samples": samples})
    # read with the tasks that the model was trained with, so that text which they share is kept apart as it was then
    tasks = tagger.model.inventory.tasks
    grid = _known(tagger, load_grid(data, tasks=tasks, seed=seed, allow_missing=True), data)
    check_test_data(tagger.model, grid)
    for adapted in (cell for cell in grid.cells if cell in tagger.adapted):
        typer.echo(f"{adapted}: {tagger.status(adapted)}", err=True)
    results = _results(tagger, grid, alpha)
    report = as_report(results) | {"samples": tagger.config.prediction.samples}
    report |= _expected(tagger, {result.cell for result in results})
    if tagger.model.inventory.units:
        report["units"] = dict(tagger.model.inventory.units)
    if as_json:
        print_json(report)
    else:
        _show(report)
        show_expected(tagger.expectations, {result.cell for result in results})


def as_report(results: "Sequence[CellResult]") -> dict[str, Any]:
    """Everything measured, as JSON: one entry per corpus, and means over the seen and the unseen corpora of a task."""
    entries, groups = [], {}
    alpha = next((result.label_sets.alpha for result in results if result.label_sets is not None), None)
    for result in results:
        entry: dict[str, Any] = {**result.as_dict(), "errors_removed_at_80": result.errors_removed}
        entry |= {name: value for name, value in entry.pop("label_sets", {}).items() if name != "alpha"}
        entries.append(entry)
        groups.setdefault((result.cell.task, result.seen), []).append(entry)
    means = [
        {"task": task, "seen": seen, "corpora": len(group), **_mean(group)} for (task, seen), group in groups.items()
    ]
    return {"alpha": alpha, "means": means, "results": entries}


def _mean(group: list[dict[str, Any]]) -> dict[str, float]:
    values: dict[str, float] = {}
    for kind in ("plug_in", "averaged"):
        for name in ("score", "nll", "ece", "aurc"):
            values[f"{kind}_{name}"] = sum(entry[kind][name] for entry in group) / len(group)
    for name in ("errors_removed_at_80", "coverage", "set_size", "single", "tempered_nll", "tempered_ece"):
        if all(name in entry for entry in group):
            values[name] = sum(entry[name] for entry in group) / len(group)
    if "coverage" in values:
        n_words = sum(entry["n_words"] for entry in group)
        values["word_coverage"] = sum(entry["coverage"] * entry["n_words"] for entry in group) / n_words
    return values


def _expected(tagger: "Tagger", scored: "Collection[Cell]") -> dict[str, Any]:
    """Expected scores of filled cells without test data, if seen cells were held out in turn when it was trained."""
    found = tagger.expectations
    unknown = [one for one in found.expected if one.cell not in scored] if found is not None else []
    if found is None or not unknown:
        return {}
    entries = [{"cell": str(one.cell), "score": one.score, "low": one.low, "high": one.high} for one in unknown]
    return {"expected": {"level": found.level, "held_out": len(found.held_out), "cells": entries}}


def _known(tagger: "Tagger", grid: "Grid", data: "Path") -> "Grid":
    """The cells of the grid that the model can tag; the others are listed on standard error. DataError if none can."""
    from crossfill.errors import DataError

    known = frozenset(tagger.cells)
    left_out = [str(cell) for cell in grid.cells if cell not in known]
    if len(left_out) == len(grid.cells):
        raise DataError(
            f"{data}: expected cells of the model's grid, found none; the model has {sides(tagger.cells)}; "
            f"the data have {sides(grid.cells)}; evaluate on other data, or train a model on these"
        )
    if left_out:
        typer.echo(f"not in the model's grid, left out: {listed(left_out)}", err=True)
    return grid.where(lambda cell: cell in known)


def _results(tagger: "Tagger", grid: "Grid", alpha: float) -> "list[CellResult]":
    """Results on every corpus with test data, with progress; DataError if there is none."""
    from crossfill.errors import DataError
    from crossfill.evaluation.scoring import evaluate, scored_corpora
    from crossfill.progress import ProgressBar

    n_corpora = len(scored_corpora(tagger.model, grid))
    if not n_corpora:
        raise DataError(
            f"expected test data that the model was not trained on, found none in {listed(map(str, grid.cells))}; the "
            f"model has {sides(tagger.cells)}; add a test file to one of these cells (a seen cell trains on its test "
            "file if it has no other)"
        )
    with ProgressBar(QUIET.get()) as bars:
        update = bars.add("Evaluating corpora", n_corpora)
        return evaluate(tagger.model, grid, tagger.config, tagger.calibration, alpha, update)


def _show(report: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    results, alpha = report["results"], report["alpha"]
    several = len({entry["cell"] for entry in results}) < len(results)
    counted = "labels" if report.get("units") else "words"
    table = _table("Cells", ["cell", "corpus"] if several else ["cell"], alpha, counted)
    for entry in results:
        flat = {f"{kind}_{name}": value for kind in ("plug_in", "averaged") for name, value in entry[kind].items()}
        names = [entry["cell"], entry["corpus"]] if several else [entry["cell"]]
        _add(table, [_mark(entry), *names, f"{entry['n_words']:,}"], entry | flat, alpha is not None)
    print_table(console, table)
    table = _table("Means over corpora", ["task"], alpha, counted="corpora")
    for mean in report["means"]:
        _add(table, [_mark(mean), mean["task"], str(mean["corpora"])], mean, alpha is not None)
    print_table(console, table)
    console.print(
        "■ seen, ▣ unseen. The score is of plug-in prediction, the rest of averaged prediction; NLL, ECE and AURC: the "
        "lower, the better; −err: errors gone with the least sure 20 %."
    )


def _mark(entry: dict[str, Any]) -> str:
    return "■" if entry["seen"] else "▣"


def _table(title: str, keys: "Sequence[str]", alpha: float | None, counted: str) -> "Table":
    from rich.table import Table

    table = Table("", *keys, title=title)
    sets = [] if alpha is None else [f"coverage {1 - alpha:.0%}", "set size"]
    for name in (counted, "score", "averaged", "NLL", "ECE", "AURC", "−err", *sets):
        table.add_column(name, justify="right")
    return table


def _add(table: "Table", first: list[str], values: dict[str, Any], calibrated: bool) -> None:
    row = [
        *first,
        f"{100 * values['plug_in_score']:.1f}",
        f"{100 * values['averaged_score']:.1f}",
        *(f"{values[f'averaged_{name}']:.3f}" for name in ("nll", "ece", "aurc")),
        f"{values['errors_removed_at_80']:.0%}",
    ]
    if calibrated:
        row += [f"{values['coverage']:.1%}", f"{values['set_size']:.2f}"] if "coverage" in values else ["", ""]
    table.add_row(*row)
