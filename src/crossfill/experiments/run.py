"""One run: train a model on the seen cells of a grid, then score it on every cell that has test data."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossfill.baselines.methods import build_model
from crossfill.config import Config
from crossfill.data.splits import for_selection
from crossfill.distribution import Processes
from crossfill.encoders.base import CentredEncoder, Encoder
from crossfill.experiments.calibrate import calibrate as calibrate
from crossfill.experiments.calibrate import complete
from crossfill.grid import Cell, Grid, joined
from crossfill.metrics import score
from crossfill.model import Model
from crossfill.predict import classify, draw_head, encode
from crossfill.progress import ProgressBar
from crossfill.sentence import Corpus
from crossfill.training import Trainer, prepare, prepare_grid
from crossfill.uncertainty import correlation


@dataclass(frozen=True)
class CellResult:
    """How a model does on one corpus of a cell."""

    cell: Cell
    corpus: str
    seen: bool
    n_words: int
    score: float
    """The task's headline metric, plug-in prediction."""
    averaged_score: float
    """The same with Bayesian model averaging."""
    entropy: float
    """Mean over words, averaged prediction, in nats."""
    mutual_information: float


def train(
    grid: Grid,
    seen: Collection[Cell],
    config: Config,
    out: Path | None = None,
    resume: bool = False,
    quiet: bool = True,
    encoder: Encoder | None = None,
) -> Model:
    """A model of the config's method, trained on the seen cells."""
    processes = Processes(config.training)
    model = build_model(config, grid.inventory, seen, encoder)
    with processes.first_goes_first():
        centre(model.encoder, grid, seen)
        data = prepare_grid(model, for_selection(grid, config.training.calibration_share))
    with ProgressBar(quiet or not processes.is_first) as bars:
        update = bars.add(config.method, config.training.steps)
        Trainer(model, *data, config, out, processes).run(resume, update)
    if out is not None and processes.is_first:
        complete(model, grid, config, out)
    return model


def centre(encoder: Encoder, grid: Grid, seen: Collection[Cell]) -> None:
    """Give a frozen encoder each language's unlabelled text: training text of any of its tasks, seen or not.

    Test text serves only where it trains, in seen cells that have nothing else.
    """
    if not isinstance(encoder, CentredEncoder):
        return
    texts: dict[str, list[Corpus]] = {language: [] for language in grid.languages}
    for cell in grid.cells:
        usable = [splits for splits in grid[cell] if cell in seen or splits.has_training_data]
        if usable:
            texts[cell.language].append(joined(splits.training for splits in usable))
    encoder.centre_on(texts)


def evaluate(model: Model, grid: Grid, config: Config) -> list[CellResult]:
    """Results on every corpus of every cell that has test data the model was not trained on."""
    return [
        evaluate_corpus(model, cell, name, corpus, config)
        for cell in grid.cells
        for name, corpus in grid.evaluation(cell, seen=cell in model.seen).items()
    ]


def evaluate_corpus(model: Model, cell: Cell, name: str, corpus: Corpus, config: Config) -> CellResult:
    """The result on one corpus of a cell."""
    data = prepare(model.encoder, model.inventory, cell, corpus)
    features = encode(model, data.inputs)
    plug_in = classify(features, draw_head(model, cell, n_samples=0))
    averaged = classify(features, draw_head(model, cell, config.prediction.samples, config.prediction.seed))
    gold, labels = data.labels.numpy(), model.inventory.labels[cell.task]
    return CellResult(
        cell,
        name,
        cell in model.seen,
        len(gold),
        score(gold, plug_in.labels.cpu().numpy(), labels, corpus.lengths),
        score(gold, averaged.labels.cpu().numpy(), labels, corpus.lengths),
        float(averaged.entropy.mean()),
        float(averaged.mutual_information.mean()),
    )


def task_means(results: Collection[CellResult], seen: bool = False) -> dict[str, float]:
    """The mean score of each task over its unseen (or seen) cells."""
    tasks = sorted({result.cell.task for result in results})
    return {t: float(np.mean([r.score for r in results if r.cell.task == t and r.seen == seen])) for t in tasks}


def entropy_correlations(results: Collection[CellResult]) -> dict[str, float]:
    """Pearson's r between entropy and averaged score over unseen cells, within each task and pooled."""
    unseen = [result for result in results if not result.seen]
    groups = {t: [r for r in unseen if r.cell.task == t] for t in sorted({r.cell.task for r in unseen})}
    return {
        name: correlation(np.array([r.entropy for r in group]), np.array([r.averaged_score for r in group]))
        for name, group in (groups | {"pooled": unseen}).items()
    }
