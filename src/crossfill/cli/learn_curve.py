"""`crossfill learn-curve MODEL DATA --cell ner/wol`: what the next twenty sentences are worth."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crossfill.cli.options import ModelFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crossfill.adaptation.curves import MeanPoint


def learn_curve(
    model: ModelFolder,
    data: Annotated[Path, typer.Argument(help="Folder of corpora, as `crossfill grid` shows it.")],
    cell: Annotated[str, typer.Option(help="Cell with training and test data, as ner/wol.")],
    draws: Annotated[int, typer.Option(min=1, help="Random orders of sentences to average over.")] = 3,
    max_test: Annotated[int | None, typer.Option(min=1, help="Most test sentences.")] = None,
    plot: Annotated[Path | None, typer.Option(help="File to draw the curve to, as curve.svg.")] = None,
    encoder: Annotated[str | None, typer.Option(help="Name or folder of the encoder, if it has moved.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder for corpora and features. [default: the user's]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Score a cell by the number of labelled sentences it is adapted to, beside heads trained from scratch."""
    from crossfill.adaptation.curves import BUDGETS, Curve, learning_curve, means
    from crossfill.adaptation.examples import Examples
    from crossfill.adaptation.heads import without_adapted
    from crossfill.data.folder import load_grid
    from crossfill.data.splits import capped
    from crossfill.errors import DataError
    from crossfill.grid.sentence import Corpus
    from crossfill.prediction.calibration import rule_for
    from crossfill.progress import ProgressBar
    from crossfill.tagger.tagger import load

    tagger = load(model, encoder, cache or True)
    target, grid = tagger.cell(cell), load_grid(data, cache=cache or True)
    corpora = [splits for splits in grid[target] if splits.has_training_data]
    test = capped(Corpus.joined(splits.test for splits in corpora), max_test, 0)
    training = capped(Corpus.joined(splits.training for splits in corpora), 2 * max(BUDGETS), 0)
    if not len(test) or not len(training):
        raise DataError(f"{target}: expected training and test sentences in {data}; a curve needs both")
    base = without_adapted(tagger.model)
    with ProgressBar(quiet) as bars:
        update = bars.add(f"Learning curve of {target}", draws * len(BUDGETS))
        labelled, tested = (Examples.of(base, target, corpus) for corpus in (training, test))
        calibration = tagger.calibration.of(target.task, 0) if tagger.calibration else None
        rule = rule_for(calibration, tagger.config.prediction.decision)
        curve = Curve.of(base, target, labelled, tested, rule=rule)
        points = means(learning_curve(curve, draws, report=update))
    if plot is not None:
        _draw(points, str(target), plot)
    if as_json:
        typer.echo(json.dumps([asdict(point) for point in points], indent=2))
        return
    typer.echo(f"{target}: score by labelled sentences, mean over {draws} random order{'s' * (draws > 1)}")
    typer.echo(f"{'sentences':>9} {'words':>6} {'adapted':>8} {'from scratch':>13}")
    for point in points:
        scratch = f"{'–':>13}" if point.scratch is None else f"{100 * point.scratch:13.1f}"
        typer.echo(f"{point.sentences:9} {point.words:6.0f} {100 * point.adapted:8.1f} {scratch}")


def _draw(points: "Sequence[MeanPoint]", title: str, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    sentences = [point.sentences for point in points]
    axes.plot(sentences, [100 * point.adapted for point in points], "o-", color="#0072B2", label="adapted")
    axes.plot(
        *zip(*((point.sentences, 100 * point.scratch) for point in points if point.scratch is not None), strict=True),
        "o--",
        color="#777777",
        label="from scratch",
    )
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xticks(sentences, [str(n) for n in sentences])
    axes.set(xlabel="labelled sentences", ylabel="score on test data", title=title)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
