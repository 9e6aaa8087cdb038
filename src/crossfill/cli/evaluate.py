"""`crossfill evaluate MODEL DATA`: scores and calibration of every cell with test data."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from crossfill.evaluation.results import CellResult
    from crossfill.grid.cells import Grid
    from crossfill.tagger.tagger import Tagger

_KEPT = 16
"""Position of 80 % coverage in the risk–coverage curve, counted from 1."""


def evaluate(
    model: Annotated[Path, typer.Argument(help="Folder of a trained model.")],
    data: Annotated[Path, typer.Argument(help="Folder of corpora, as `crossfill grid` shows it.")],
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeatable.")] = None,
    samples: Annotated[int | None, typer.Option(min=0, help="Posterior samples. [default: the model's]")] = None,
    alpha: Annotated[float, typer.Option(help="Level of the label sets, where the model is calibrated.")] = 0.1,
    max_test: Annotated[int | None, typer.Option(min=1, help="Most test sentences per corpus.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of random splits and of --max-test.")] = 0,
    encoder: Annotated[str | None, typer.Option(help="Name or folder of the encoder, if it has moved.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder for corpora and features. [default: the user's]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
    out: Annotated[Path | None, typer.Option(help="File to write the JSON to, besides.")] = None,
) -> None:
    """Score a model on every cell that has test data: seen (■) and unseen (▣), with calibration and risk–coverage."""
    from crossfill.data.folder import load_grid
    from crossfill.data.splits import capped_grid
    from crossfill.tagger.tagger import load

    tagger = load(model, encoder, cache or True)
    if samples is not None:
        tagger.config = tagger.config.change({"prediction.samples": samples})
    grid = capped_grid(load_grid(data, tasks=task or (), seed=seed, cache=cache or True), None, max_test, seed)
    grid = _known(tagger, grid)
    results = tagger.evaluate(grid, alpha)
    report = as_report(results) | {"samples": tagger.config.prediction.samples}
    text = json.dumps(report, ensure_ascii=False, indent=2)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    if as_json:
        typer.echo(text)
    else:
        _show(report)


def errors_removed(result: "CellResult") -> float:
    """The share of a corpus' errors among the 20 % of words the model is least sure of."""
    risk = result.risk_coverage
    return 1 - 0.8 * risk[_KEPT - 1] / risk[-1] if risk[-1] else 0.0


def as_report(results: "Sequence[CellResult]") -> dict[str, Any]:
    """Everything measured, as JSON: one entry per corpus, and means over the seen and the unseen corpora of a task."""
    entries, groups = [], {}
    alpha = next((result.label_sets.alpha for result in results if result.label_sets is not None), None)
    for result in results:
        entry: dict[str, Any] = {**result.as_dict(), "errors_removed_at_80": errors_removed(result)}
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


def _known(tagger: "Tagger", grid: "Grid") -> "Grid":
    """The cells of the grid that the model can tag; the others are listed on standard error."""
    known = frozenset(tagger.cells)
    if left_out := [str(cell) for cell in grid.cells if cell not in known]:
        shown = ", ".join(left_out[:10]) + (" …" if len(left_out) > 10 else "")
        typer.echo(f"not in the model's grid, left out: {shown}", err=True)
    return grid.where(lambda cell: cell in known)


def _show(report: dict[str, Any]) -> None:
    from rich.console import Console

    alpha = report["alpha"]
    console = Console(highlight=False)
    rows = [
        ({"name": r["cell"], "corpus": r["corpus"], "seen": r["seen"], "words": r["n_words"]}, r)
        for r in report["results"]
    ]
    table = _table("Cells", alpha)
    for head, entry in rows:
        flat = {f"{k}_{n}": v for k in ("plug_in", "averaged") for n, v in entry[k].items()}
        _add(table, head, entry | flat, alpha is not None)
    console.print(table)
    table = _table("Means over corpora", alpha)
    for mean in report["means"]:
        _add(
            table,
            {"name": mean["task"], "corpus": f"{mean['corpora']} corpora", "seen": mean["seen"]},
            mean,
            alpha is not None,
        )
    console.print(table)
    console.print(
        "■ seen  ▣ unseen; score plug-in, the rest of averaged prediction; −err: errors gone with the least sure 20 %"
    )


def _table(title: str, alpha: float | None) -> "Table":
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in ("", "cell", "corpus"):
        table.add_column(name, overflow="fold")
    names = ["words", "score", "averaged", "NLL", "ECE", "AURC", "−err"]
    for name in names + ([] if alpha is None else [f"coverage {1 - alpha:.0%}", "set size"]):
        table.add_column(name, justify="right")
    return table


def _add(table: "Table", head: dict[str, Any], values: dict[str, Any], calibrated: bool) -> None:
    row = [
        "■" if head["seen"] else "▣",
        head["name"],
        head["corpus"],
        f"{head['words']:,}" if "words" in head else "",
        f"{100 * values['plug_in_score']:.1f}",
        f"{100 * values['averaged_score']:.1f}",
        *(f"{values[f'averaged_{name}']:.3f}" for name in ("nll", "ece", "aurc")),
        f"{values['errors_removed_at_80']:.0%}",
    ]
    if calibrated:
        row += [f"{values['coverage']:.1%}", f"{values['set_size']:.2f}"] if "coverage" in values else ["", ""]
    table.add_row(*row)
