"""`crossfill learn-curve MODEL DATA --cell ner/wol`: what the next twenty sentences are worth."""

from dataclasses import asdict
from typing import Annotated

import typer
from typer import Option

from crossfill.cli.options import QUIET, AsJson, DataFolder, ModelFolder, OneCell
from crossfill.cli.output import print_json


def learn_curve(
    model: ModelFolder,
    data: DataFolder,
    cell: OneCell,
    draws: Annotated[int, Option(min=1, help="Random orders of sentences to average over.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Score a cell by the number of labelled sentences it is adapted to, next to heads trained from scratch."""
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

    tagger = load(model, cache=True)
    target, grid = tagger.cell(cell), load_grid(data, cache=True)
    corpora = [splits for splits in grid[target] if splits.has_training_data]
    test = Corpus.joined(splits.test for splits in corpora)
    training = capped(Corpus.joined(splits.training for splits in corpora), 2 * max(BUDGETS), 0)
    if not len(test) or not len(training):
        raise DataError(f"{target}: expected training and test sentences in {data}; a curve needs both")
    base = without_adapted(tagger.model)
    with ProgressBar(QUIET.get()) as bars:
        update = bars.add(f"Learning curve of {target}", draws * len(BUDGETS))
        labelled, tested = (Examples.of(base, target, corpus) for corpus in (training, test))
        calibration = tagger.calibration.of(target.task, 0) if tagger.calibration else None
        rule = rule_for(calibration, tagger.config.prediction.decision)
        curve = Curve.of(base, target, labelled, tested, rule)
        points = means(learning_curve(curve, draws, report=update))
    if as_json:
        print_json([asdict(point) for point in points])
        return
    typer.echo(f"{target}: score by labelled sentences, mean over random orders of them: {draws}")
    typer.echo(f"{'sentences':>9} {'words':>6} {'adapted':>8} {'from scratch':>13}")
    for point in points:
        scratch = f"{'–':>13}" if point.scratch is None else f"{100 * point.scratch:13.1f}"
        typer.echo(f"{point.sentences:9} {point.words:6.0f} {100 * point.adapted:8.1f} {scratch}")
