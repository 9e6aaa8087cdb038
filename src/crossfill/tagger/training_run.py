"""A training run from a user's request to a finished model: the one road of the command line and of Python."""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from crossfill import checkpoint
from crossfill.config import Config
from crossfill.data.codes import find_cell
from crossfill.data.folder import load_grid
from crossfill.encoders.base import Encoder
from crossfill.encoders.build import build_encoder
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.errors import DataError
from crossfill.evaluation.expected import FEWEST_CELLS, Expectations, save_expected
from crossfill.evaluation.results import CellResult
from crossfill.evaluation.scoring import evaluate, scored_corpora
from crossfill.grid import partition
from crossfill.grid.bridges import bridge_note
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus
from crossfill.grid.typology import vectors_beside
from crossfill.methods.registry import find_method
from crossfill.model import Model, n_parameters
from crossfill.prediction.calibration import Calibration, save_calibration
from crossfill.progress import ProgressBar
from crossfill.tagger.card import CardInfo, describe_data, write_card
from crossfill.tagger.crossfit import CANDIDATES, HeldOutComparison, compare_held_out, expect_unseen, folds
from crossfill.tagger.model_folder import save_results
from crossfill.tagger.presets import RunRequest, choose_settings
from crossfill.tagger.run_lock import locked_for_run, mark_finished
from crossfill.tagger.tagger import Tagger
from crossfill.tagger.train import train_model
from crossfill.training.loop import Progression
from crossfill.training.processes import is_first_process, is_only_process, leave

AUTO = "auto"
"""The method that stands for the best of several on held-out seen cells."""
Log = Callable[[str], None]
"""Shows a line to the user."""
_MOST_NAMES = 8
"""Unseen cells that an announcement names."""


class Outcome(NamedTuple):
    """A trained model, and what was found out about it."""

    model: Model
    config: Config
    progression: Progression
    calibration: Calibration | None
    results: list[CellResult]
    """Results on the grid that was to be scored; empty if there was none, and in all processes but the first."""
    expectations: Expectations | None
    """Expected scores of the cells that are filled; none if no seen cells were held out."""

    def write(self, folder: Path) -> None:
        """Complete a model folder that has its weights: calibration, expected scores, results, and the card."""
        if self.expectations is not None and self.calibration is not None:
            save_calibration(folder, self.calibration)
            save_expected(folder, self.expectations)
        save_results(folder, self.results)
        write_card(folder)


def train(
    grid: Grid | str | Path,
    method: str | None = None,
    encoder: str | None = None,
    out: str | Path | None = None,
    config: Config | str | Path | None = None,
    hold_out: Iterable[str | Cell] = (),
    **options: Any,
) -> Tagger:
    """Train on the cells of a grid, or of a data folder, except those held out; the model is written to `out` if given.

    Args:
        grid: A grid, or the path of a data folder.
        method: `pf-lr` unless the config names another. `auto` compares several on seen cells held out in turn, and
            keeps the best.
        encoder: `compact`, a name of the hub, or a folder.
        out: Folder for the model.
        config: Settings, or a YAML file of them. Without, they are those of a preset, fitted to the data.
        hold_out: Cells to leave unseen.
        options: `preset` (`laptop`, `gpu`, `paper` or `demo`; by default chosen by encoder and device). `resume` goes
            on with a run that was interrupted in `out`, and `force` replaces what is there. `cache` is the folder for
            corpora and features, or whether to use the default one. With `expect`, seen cells are held out in turn to
            calibrate, and to say what filled cells will score (`Tagger.expectations`); by default where the encoder is
            frozen. `quiet` hides what is chosen and how far it is; by default it is shown in terminals and notebooks.

    """
    quiet = options.pop("quiet", None)
    cache = options.get("cache", True)
    vectors = None
    if isinstance(grid, str | Path):
        vectors = vectors_beside(grid)
        grid = load_grid(grid, cache=cache)
    if not isinstance(grid, Grid):
        raise DataError(f"expected a Grid, or the path of a data folder; got {type(grid).__name__}")
    names = [hold_out] if isinstance(hold_out, str | Cell) else hold_out
    seen = partition.hold_out(grid.cells, [find_cell(name, grid.cells) for name in names]).seen
    request = RunRequest(
        method, encoder, config=config, vectors=vectors, out=None if out is None else Path(out), **options
    )
    if quiet is None:  # nobody reads standard error but in a terminal or a notebook
        quiet = not sys.stderr.isatty() and "ipykernel" not in sys.modules
    outcome = run(grid, seen, request, log=None if quiet else lambda line: print(line, file=sys.stderr))  # noqa: T201
    card = CardInfo(data=describe_data(grid, sorted(outcome.model.seen)))
    return Tagger(outcome.model, outcome.config, outcome.calibration, expectations=outcome.expectations, card=card)


def run(
    grid: Grid, seen: Collection[Cell], request: RunRequest, scored: Grid | None = None, log: Log | None = None
) -> Outcome:
    """Choose settings, say what will be done, train on the seen cells, and score `scored`.

    With `request.expect`, seen cells are held out in turn, to choose among methods (`auto`), to calibrate decisions,
    and to say what unseen cells will score; by default where the encoder is frozen, so that this takes little time.
    With `request.out`, the model is written to that folder. Without `log`, the run is silent.
    """
    first, out = is_first_process(), request.out
    if not first:
        log = None
    with ExitStack() as stack:
        if out is not None and first:
            stack.enter_context(locked_for_run(out, request.resume, request.force))
        training = TrainingRun.prepare(grid, seen, request, log)
        if log is not None:
            for line in training.announcement(scored):
                log(line)
        outcome = training.execute(scored)
        if out is not None and first:
            mark_finished(out)
    return outcome


@dataclass(frozen=True)
class TrainingRun:
    """A run whose settings are chosen."""

    grid: Grid
    seen: Collection[Cell]
    request: RunRequest
    log: Log | None
    """Shows a line to the user; the run is silent without."""
    configs: Sequence[Config]
    """The settings of each method that is compared: of several for `auto`, else of one."""
    reasons: tuple[str, ...]
    encoder: Encoder
    n_folds: int
    can_hold_out: bool
    """Whether there are enough seen cells to hold some out in turn."""
    holds_out: bool
    """Whether that is done."""

    @classmethod
    def prepare(cls, grid: Grid, seen: Collection[Cell], request: RunRequest, log: Log | None) -> "TrainingRun":
        """Choose settings, and whether seen cells are held out in turn."""
        methods = CANDIDATES if request.method == AUTO else (request.method,)
        first = choose_settings(grid, seen, replace(request, method=methods[0]))
        others = [choose_settings(grid, seen, replace(request, method=name), first.source) for name in methods[1:]]
        config = first.config
        find_method(config.method)
        languages = grid.inventory.languages
        encoder = build_encoder(config, languages, request.cache, quiet=log is None, source=first.source)
        parts = folds(seen, seed=config.training.seed)
        most = max(Counter(cell.task for part in parts for cell in part).values(), default=0)
        usual = _stays_frozen(encoder) and bool(_unseen_cells(grid, seen)) and is_only_process()
        wanted = request.method == AUTO or (usual if request.expect is None else request.expect)
        holds_out = most >= FEWEST_CELLS and wanted
        if holds_out and isinstance(encoder, FrozenEncoder):
            encoder.keep_open = True
        return cls(
            grid=grid,
            seen=seen,
            request=request,
            log=log,
            configs=[config, *(choice.config for choice in others)],
            reasons=first.reasons,
            encoder=encoder,
            n_folds=len(parts),
            can_hold_out=most >= FEWEST_CELLS,
            holds_out=holds_out,
        )

    @property
    def unseen(self) -> list[Cell]:
        """The cells that the model fills."""
        return _unseen_cells(self.grid, self.seen)

    def announcement(self, scored: Grid | None) -> Iterator[str]:
        """Say what was chosen, and what will be done."""
        yield from self.reasons
        config = self.configs[0]
        method = AUTO if len(self.configs) > 1 else config.variant
        yield from _describe_run(self.grid, self.seen, config, method)
        if isinstance(self.encoder, FrozenEncoder):
            needed, missing = words_to_encode(self.grid, self.seen, self.encoder, scored)
            yield f"{missing:,} words to encode, and {needed - missing:,} in the cache already"
        if self.holds_out:
            yield f"seen cells held out in turn: {self.n_folds * len(self.configs)} trainings before the last one"
        elif not self.can_hold_out and (self.unseen or method == AUTO):
            yield (
                f"fewer than {FEWEST_CELLS} seen cells of any task can be held out, so nothing is said of how filled "
                f"cells will score{f', and the method is {config.variant}' if method == AUTO else ''}"
            )
        elif self.unseen:
            yield f"--expect (expect=True) says what filled cells will score, in {self.n_folds + 1} times the time"

    def execute(self, scored: Grid | None) -> Outcome:
        """Hold out, train, expect and score."""
        comparison = self._compare() if self.holds_out else None
        config = self.configs[0] if comparison is None else comparison.config
        if comparison is not None and comparison.scores_by_method and self.log is not None:
            self.log(comparison.summary())
        with ProgressBar(self.log is None) as bars:
            steps = bars.add(config.variant, config.training.steps)
            trained = train_model(self.grid, self.seen, config, self.request.out, self.encoder, steps, self.log)
        leave()
        calibration = None if comparison is None else comparison.calibration
        outcome = Outcome(trained.model, config, trained.progression, calibration, [], None)
        if not is_first_process():
            return outcome
        if comparison is not None:
            expectations = expect_unseen(trained.model, self.grid, self.unseen, comparison)
            outcome = outcome._replace(expectations=expectations)
        if scored is not None:
            with ProgressBar(self.log is None) as bars:
                corpora = bars.add("Scoring corpora", len(scored_corpora(trained.model, scored)))
                outcome = outcome._replace(results=evaluate(trained.model, scored, config, calibration, report=corpora))
        if self.request.out is not None:
            outcome.write(self.request.out)
        return outcome

    def _compare(self) -> HeldOutComparison:
        folder = None if self.request.out is None else self.request.out / checkpoint.HELD_OUT
        with ProgressBar(self.log is None) as bars:
            steps = self.n_folds * sum(config.training.steps for config in self.configs)
            report = bars.add("seen cells held out in turn", steps)
            return compare_held_out(self.grid, self.seen, self.configs, self._fold_encoder, report, folder)

    def _fold_encoder(self) -> Encoder:
        """Return the encoder of a training that holds out cells: the same every time if it stays frozen."""
        if _stays_frozen(self.encoder):
            return self.encoder
        return build_encoder(self.configs[0], self.grid.inventory.languages, self.request.cache, self.log is None)


def _stays_frozen(encoder: Encoder) -> bool:
    return isinstance(encoder, FrozenEncoder) and not n_parameters(encoder)


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
