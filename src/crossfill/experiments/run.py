"""One run: train a model on the seen cells of a grid, then score it on every cell that has test data."""

from collections.abc import Collection
from pathlib import Path

from crossfill.baselines.methods import build_model, follow_plan, plan_training
from crossfill.config import Config
from crossfill.data.splits import for_selection
from crossfill.distribution import Processes
from crossfill.encoders.base import CentredEncoder, Encoder
from crossfill.experiments.calibrate import calibrate as calibrate
from crossfill.experiments.calibrate import complete
from crossfill.experiments.cell_results import CellResult
from crossfill.experiments.scoring import evaluate_corpus
from crossfill.grid import Cell, Grid, joined
from crossfill.model import Model
from crossfill.progress import ProgressBar
from crossfill.sentence import Corpus
from crossfill.training import Trainer, prepare_grid, prepare_unseen_development


def train(
    grid: Grid,
    seen: Collection[Cell],
    config: Config,
    out: Path | None = None,
    resume: bool = False,
    quiet: bool = True,
    encoder: Encoder | None = None,
) -> Model:
    """A model of the config's method, trained on the seen cells (or what its plan makes of them)."""
    processes = Processes(config.training)
    plan = plan_training(grid, seen, config)
    model = build_model(config, grid.inventory, plan.seen, encoder)
    with processes.first_goes_first():
        centre(model.encoder, grid, seen)
        follow_plan(model, plan, config)
        kept = for_selection(plan.grid, config.training.calibration_share)
        training, development = prepare_grid(model, kept, plan.cells)
        if config.training.selection == "oracle":
            development = prepare_unseen_development(model, grid)
    with ProgressBar(quiet or not processes.is_first) as bars:
        update = bars.add(config.method, config.training.steps)
        Trainer(model, training, development, config, out, processes).run(resume, update)
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
