"""Widths of adaptation, estimated on seen cells that were held out in turn."""

from collections.abc import Callable, Collection

from crossfill.adaptation.cell import generated_prior
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import affine
from crossfill.adaptation.held_out import SENTENCES, HeldOutCell, fit_width
from crossfill.adaptation.widths import Width
from crossfill.config import Config
from crossfill.data.splits import capped
from crossfill.encoders.base import Encoder
from crossfill.evaluation.expected import HeldOutScore
from crossfill.grid.cells import Cell, Grid
from crossfill.tagger.crossfit import N_FOLDS, Report, hold_out
from crossfill.tagger.worth import SENTENCES as NEXT

MOST_TEST = 60
"""Sentences of a held-out cell that are scored."""


def estimate_widths(
    grid: Grid,
    seen: Collection[Cell],
    config: Config,
    build: Callable[[], Encoder],
    n_folds: int = N_FOLDS,
    report: Report | None = None,
) -> tuple[dict[str, Width], list[HeldOutScore]]:
    """The widths of each task, and what sentences are worth in its cells.

    Models are trained without a fold of the seen cells, whose cells are then adapted.
    A cell takes part if it has dev sentences, or enough training sentences to spare some. `build` returns the encoder
    of each training.
    """
    found: dict[str, dict[Cell, HeldOutCell]] = {}
    few = max(SENTENCES)
    for model, cell in hold_out(grid, seen, config, build, n_folds, report):
        training = capped(grid.training(cell), few + MOST_TEST, config.training.seed)
        others = capped(grid.development(cell), MOST_TEST, config.training.seed)
        if not len(others):
            training, others = training[:few], training[few:]
        if len(training) and len(others):
            labels, (body, _) = model.inventory.labels[cell.task], affine(model.heads.plug_in([cell])[0])
            examples, scored = (Examples.of(model, cell, corpus).through(body) for corpus in (training, others))
            held = HeldOutCell(generated_prior(model, cell), examples, scored, labels)
            found.setdefault(cell.task, {})[cell] = held
    widths = {task: fit_width(list(cells.values())) for task, cells in found.items()}
    gains = []
    for task, cells in found.items():
        for cell, held in cells.items():
            before, doubt = held.before()
            gains.append(HeldOutScore(cell, held.score(widths[task], [NEXT]) - before, doubt))
    return widths, gains
