"""A training run from a user's request to a finished model: the one road of the command line and of Python."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import NamedTuple

from crossfill import checkpoint
from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.encoders.build import build_encoder
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.evaluation.expected import FEWEST_CELLS, Expectations, save_expected
from crossfill.evaluation.results import CellResult
from crossfill.evaluation.scoring import evaluate, scored_corpora
from crossfill.grid.bridges import bridge_note
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus
from crossfill.methods.registry import find_method
from crossfill.model import Model, n_parameters
from crossfill.prediction.calibration import Calibration, save_calibration
from crossfill.progress import ProgressBar
from crossfill.tagger.card import write_card
from crossfill.tagger.claim import claimed, close_run
from crossfill.tagger.crossfit import folds
from crossfill.tagger.expectations import CANDIDATES, Trial, expect_unseen, hold_out_in_turn
from crossfill.tagger.folder import save_results
from crossfill.tagger.presets import RunRequest, choose_settings
from crossfill.tagger.train import train_model
from crossfill.training.loop import Progression
from crossfill.training.processes import is_first_process, is_only_process, leave

AUTO = "auto"
"""The method that stands for the best of several on held-out seen cells."""
Tell = Callable[[str], None]
"""Shows a line to the user."""
_MOST_NAMES = 8
"""Unseen cells that an announcement names."""


class Outcome(NamedTuple):
    """What a run made."""

    model: Model
    config: Config
    progression: Progression
    calibration: Calibration | None
    results: list[CellResult]
    """Results on the grid that was to be scored; empty if there was none, and in all processes but the first."""
    expectations: Expectations | None
    """Expected scores of the cells that are filled; none if no seen cells were held out."""


def run(
    grid: Grid,
    seen: Collection[Cell],
    request: RunRequest,
    out: Path | None = None,
    resume: bool = False,
    force: bool = False,
    cache: Path | bool = True,
    scored: Grid | None = None,
    expect: bool | None = None,
    tell: Tell | None = None,
) -> Outcome:
    """Choose settings, say what will be done, train on the seen cells, and score `scored`.

    With `expect`, seen cells are held out in turn, to choose among methods (`auto`), to calibrate decisions, and to say
    what filled cells will score; by default where the encoder is frozen, so that this takes little time. With `out`,
    the model is written to that folder, from which an interrupted run can `resume`; a run that is there is replaced
    only with `force`. Without `tell`, the run is silent.
    """
    first = is_first_process()
    with ExitStack() as stack:
        if out is not None and first:
            stack.enter_context(claimed(out, resume, force))
        course = Course.plan(grid, seen, request, cache, expect, quiet=tell is None or not first)
        if tell is not None and first:
            for line in course.announcement(scored):
                tell(line)
        made = course.take(out, resume, scored, _ignore if tell is None or not first else tell)
        if out is not None and first:
            close_run(out)
    return made


@dataclass(frozen=True)
class Course:
    """A run whose settings are chosen."""

    grid: Grid
    seen: Collection[Cell]
    configs: Sequence[Config]
    """The settings of each method that is tried: of several for `auto`, else of one."""
    reasons: tuple[str, ...]
    encoder: Encoder
    build: Callable[[], Encoder]
    """Returns the encoder of a training: the same every time if it stays frozen."""
    filled: Sequence[Cell]
    n_folds: int
    held_out: bool
    """Whether seen cells are held out in turn."""
    enough: bool
    """Whether there are enough seen cells for that."""
    quiet: bool

    @classmethod
    def plan(
        cls,
        grid: Grid,
        seen: Collection[Cell],
        request: RunRequest,
        cache: Path | bool,
        expect: bool | None,
        quiet: bool,
    ) -> "Course":
        """Choose settings, and whether seen cells are held out in turn."""
        auto = request.method == AUTO
        choices = [
            choose_settings(grid, seen, replace(request, method=m)) for m in (CANDIDATES if auto else (request.method,))
        ]
        config = choices[0].config
        find_method(config.method)
        encoder = build_encoder(config, grid.inventory.languages, cache, quiet)
        frozen = isinstance(encoder, FrozenEncoder) and not n_parameters(encoder)
        filled, parts = _unseen_cells(grid, seen), folds(seen, seed=config.training.seed)
        most = max(Counter(cell.task for part in parts for cell in part).values(), default=0)
        usual = frozen and bool(filled) and is_only_process()
        held_out = most >= FEWEST_CELLS and (auto or (usual if expect is None else expect))
        if held_out and isinstance(encoder, FrozenEncoder):
            encoder.keep_open = True
        new = [encoder]

        def build() -> Encoder:
            if frozen:
                return encoder
            return new.pop() if new else build_encoder(config, grid.inventory.languages, cache, quiet)

        configs = [choice.config for choice in choices]
        reasons = choices[0].reasons
        enough = most >= FEWEST_CELLS
        return cls(grid, seen, configs, reasons, encoder, build, filled, len(parts), held_out, enough, quiet)

    def announcement(self, scored: Grid | None) -> Iterator[str]:
        """What was chosen, and what will be done."""
        yield from self.reasons
        config = self.configs[0]
        method = AUTO if len(self.configs) > 1 else config.method
        yield from _describe_run(self.grid, self.seen, config, method)
        if isinstance(self.encoder, FrozenEncoder):
            needed, missing = words_to_encode(self.grid, self.seen, self.encoder, scored)
            yield f"{missing:,} words to encode, and {needed - missing:,} in the cache already"
        if not self.enough and (self.filled or method == AUTO):
            yield (
                f"fewer than {FEWEST_CELLS} seen cells of any task can be held out, so nothing is said of how filled "
                f"cells will score{f', and the method is {config.method}' if method == AUTO else ''}"
            )
        elif self.filled and not self.held_out:
            yield f"--expect (expect=True) says what filled cells will score, in {self.n_folds + 1} times the time"

    def take(self, out: Path | None, resume: bool, scored: Grid | None, say: Tell) -> Outcome:
        """Hold out, train, expect and score."""
        trial = self._hold_out(out) if self.held_out else None
        config = self.configs[0] if trial is None else trial.config
        if trial is not None and trial.tried:
            say(trial.line())
        trained = train_model(
            self.grid, self.seen, config, out, resume=resume, quiet=self.quiet, encoder=self.build(), tell=say
        )
        leave()
        calibration = None if trial is None else trial.calibration
        made = Outcome(trained.model, config, trained.progression, calibration, [], None)
        if not is_first_process():
            return made
        if trial is not None:
            made = made._replace(expectations=expect_unseen(trained.model, self.grid, self.filled, trial))
        if scored is not None:
            with ProgressBar(self.quiet) as bars:
                update = bars.add("Scoring corpora", len(scored_corpora(trained.model, scored)))
                made = made._replace(results=evaluate(trained.model, scored, config, calibration, report=update))
        if out is not None:
            _write(out, made)
        return made

    def _hold_out(self, out: Path | None) -> Trial:
        folder = None if out is None else out / checkpoint.HELD_OUT
        with ProgressBar(self.quiet) as bars:
            steps = self.n_folds * sum(config.training.steps for config in self.configs)
            update = bars.add("seen cells held out in turn", steps)
            return hold_out_in_turn(self.grid, self.seen, self.configs, self.build, update, folder)


def _write(out: Path, made: Outcome) -> None:
    """Complete a model folder with what was found out when its weights were there, and with its card."""
    if made.expectations is not None and made.calibration is not None:
        save_calibration(out, made.calibration)
        save_expected(out, made.expectations)
    save_results(out, made.results)
    write_card(out)


def _ignore(_line: str) -> None:
    return


def _describe_run(grid: Grid, seen: Collection[Cell], config: Config, method: str) -> Iterator[str]:
    """Say what a run will do: the settings that matter, and its cells."""
    settings, encoder = config.training, config.encoder
    how = ""
    if encoder.name != "compact":
        pretrained = encoder.pretrained
        centred = f", centring {pretrained.centring}" if pretrained.mode == "frozen" else ""
        how = f" ({pretrained.mode}, pooling {pretrained.pooling}{centred})"
    yield (
        f"{method} over {PurePath(encoder.name).name}{how}: {settings.steps:,} steps of {settings.cells_per_step} × "
        f"{settings.batch_sentences} sentences, learning rate {settings.learning_rate:g}, seed {settings.seed}"
    )
    n_words = sum(grid.training(cell).n_words for cell in seen)
    unseen = _unseen_cells(grid, seen)
    names = ", ".join(map(str, unseen[:_MOST_NAMES]))
    if len(unseen) > _MOST_NAMES:
        names += f" and {len(unseen) - _MOST_NAMES} more"
    to_fill = f"{_cells(unseen)} will be filled: {names}" if unseen else "none is left to fill"
    yield f"{_cells(seen)} seen, {n_words:,} training words; {to_fill}"
    if find_method(config.method).language_vectors is not None and (note := bridge_note(seen)):
        yield note


def _cells(cells: Collection[Cell]) -> str:
    return "1 cell" if len(cells) == 1 else f"{len(cells)} cells"


def _unseen_cells(grid: Grid, seen: Collection[Cell]) -> list[Cell]:
    """The cells of the grid's tasks and languages that a run fills: all but the seen ones, with data or without."""
    cells = (Cell(task, language) for task in grid.tasks for language in grid.languages)
    return [cell for cell in cells if cell not in seen]


def words_to_encode(grid: Grid, seen: Collection[Cell], encoder: FrozenEncoder, scored: Grid | None) -> tuple[int, int]:
    """Count the words that a run's encoder reads, and those of them that are not in its cache."""
    corpora = {corpus.text_hash(): corpus for corpus in _corpora(grid, seen, scored) if len(corpus)}
    missing = sum(corpus.n_words for corpus in corpora.values() if not encoder.is_cached(corpus))
    return sum(corpus.n_words for corpus in corpora.values()), missing


def _corpora(grid: Grid, seen: Collection[Cell], scored: Grid | None) -> Iterator[Corpus]:
    """All text that a run encodes: to centre languages, to train, to select, and to score."""
    for cell in grid.cells:
        usable = [splits for splits in grid[cell] if cell in seen or splits.has_training_data]
        yield Corpus.joined(splits.training for splits in usable)
        if cell in seen:
            yield grid.development(cell)
    if scored is not None:
        for cell in scored.cells:
            yield from scored.evaluation(cell, cell in seen).values()
