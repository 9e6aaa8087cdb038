"""A training run from a user's wishes to a finished model: the one road of the command line and of Python."""

from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from crossfill.config import Config
from crossfill.encoders.build import build_encoder
from crossfill.evaluation.results import CellResult
from crossfill.evaluation.scoring import evaluate, scored_corpora
from crossfill.grid.cells import Cell, Grid
from crossfill.methods.registry import find_method
from crossfill.model import Model
from crossfill.prediction.calibration import Calibration
from crossfill.progress import ProgressBar
from crossfill.tagger.claim import claimed, close_run
from crossfill.tagger.folder import add_results
from crossfill.tagger.outlook import describe_run, foresee, words_to_encode
from crossfill.tagger.presets import Wishes, settle
from crossfill.tagger.train import train_model
from crossfill.training.loop import Progression
from crossfill.training.processes import is_first_process, is_only_process, leave

Tell = Callable[[str], None]
"""Shows a line to the user."""


class Outcome(NamedTuple):
    """What a run made."""

    model: Model
    config: Config
    progression: Progression
    calibration: Calibration | None
    results: list[CellResult]
    """Results on the grid that was to be scored; empty if there was none, and in all processes but the first."""


def run(
    grid: Grid,
    seen: Collection[Cell],
    wishes: Wishes,
    out: Path | None = None,
    resume: bool = False,
    force: bool = False,
    cache: Path | bool = True,
    scored: Grid | None = None,
    tell: Tell | None = None,
) -> Outcome:
    """Choose settings, say what will be done and how long it takes, train on the seen cells, and score `scored`.

    With `out`, the model is written to that folder, from which an interrupted run can `resume`; a run that is there is
    replaced only with `force`. Without `tell`, the run is silent.
    """
    with ExitStack() as stack:
        if out is not None and is_first_process():
            stack.enter_context(claimed(out, resume, force))
        made = _run(grid, seen, wishes, out, resume, cache, scored, tell)
        if out is not None and is_first_process():
            close_run(out)
    return made


def _run(
    grid: Grid,
    seen: Collection[Cell],
    wishes: Wishes,
    out: Path | None,
    resume: bool,
    cache: Path | bool,
    scored: Grid | None,
    tell: Tell | None,
) -> Outcome:
    choice = settle(grid, seen, wishes)
    config = choice.config
    find_method(config.method)
    quiet = tell is None or not is_first_process()
    say: Tell = _ignore if tell is None or quiet else tell
    encoder = build_encoder(config, grid.inventory.languages, cache, quiet)
    for reason in choice.reasons:
        say(reason)
    if not quiet:
        words = words_to_encode(grid, seen, encoder, scored)
        for line in describe_run(grid, seen, config, words):
            say(line)
        if is_only_process():  # trials would have to be taken by all processes together
            say(foresee(grid, seen, config, encoder, words, scored=scored).line())
    trained = train_model(grid, seen, config, out, resume=resume, quiet=quiet, encoder=encoder, tell=say)
    leave()
    results: list[CellResult] = []
    if scored is not None and is_first_process():
        with ProgressBar(quiet) as bars:
            update = bars.add("Scoring corpora", len(scored_corpora(trained.model, scored)))
            results = evaluate(trained.model, scored, config, trained.calibration, report=update)
        if out is not None:
            add_results(out, results)
    return Outcome(trained.model, config, trained.progression, trained.calibration, results)


def _ignore(_line: str) -> None:
    return
