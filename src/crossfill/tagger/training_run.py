"""A training run from a user's request to a finished model: the one road of the command line and of Python."""

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal

from crossfill import checkpoint
from crossfill.config import Config
from crossfill.data.boundaries import Segmentation
from crossfill.data.codes import find_cell
from crossfill.data.folder import load_grid
from crossfill.encoders.base import Encoder, build_encoder
from crossfill.errors import CheckpointError, DataError, listed
from crossfill.evaluation.expected import FEWEST_CELLS
from crossfill.evaluation.results import Results
from crossfill.evaluation.scoring import evaluate, scored_corpora
from crossfill.files import locked
from crossfill.grid import partition
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.partition import ENOUGH_BRIDGES, bridge_note, bridges
from crossfill.grid.sentence import Corpus
from crossfill.grid.task import Unit
from crossfill.grid.typology import vectors_beside
from crossfill.methods.registry import find_method
from crossfill.model import n_parameters
from crossfill.prediction.language_choice import LanguageProfiles
from crossfill.progress import ProgressBar
from crossfill.tagger.card import CardInfo, describe_data
from crossfill.tagger.crossfit import CANDIDATES, compare_held_out, expect_unseen, folds
from crossfill.tagger.presets import RunRequest, choose_settings, without_vectors
from crossfill.tagger.tagger import Tagger
from crossfill.tagger.train import cut_sentences, texts_by_language, texts_to_encode, train_model
from crossfill.training.loop import Progression
from crossfill.training.processes import is_first_process, is_only_process, leave

if TYPE_CHECKING:
    from crossfill.encoders.frozen import StoredVectors

AUTO = "auto"
"""The method that stands for the best of several on held-out seen cells."""
Log = Callable[[str], None]
"""Shows a line to the user."""


def train(
    grid: Grid | str | Path,
    method: str | None = None,
    encoder: str | None = None,
    out: str | Path | None = None,
    config: Config | str | Path | None = None,
    hold_out: Iterable[str | Cell] = (),
    max_train: int | None = None,
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
        max_train: Most training sentences of each corpus of a data folder.
        options: `preset` (`laptop`, `gpu`, `paper` or `demo`; by default chosen by encoder and device). `resume` goes
            on with a run that was interrupted in `out`, and `force` replaces what is there. `cache` is the folder for
            corpora and features, or whether to use the default one. With `expect`, seen cells are held out in turn to
            calibrate, and to say what filled cells will score (`Tagger.expectations`); by default where the encoder is
            frozen. Settings are named with two underscores, as `training__steps=500`, or in `changes`, by path:
            `{"training.steps": 500}`. `quiet` hides what is chosen and how far it is; by default it is shown in
            terminals and notebooks.

    """
    named = {name: options.pop(name) for name in list(options) if "__" in name}
    changes = dict(options.pop("changes", {})) | {name.replace("__", "."): value for name, value in named.items()}
    quiet = options.pop("quiet", None)
    cache = options.get("cache", True)
    vectors = None
    if isinstance(grid, str | Path):
        vectors = vectors_beside(grid)
        grid = load_grid(grid, cache=cache, max_train=max_train)
    elif max_train is not None:
        raise DataError("expected the path of a data folder, as there is max_train; got a grid, which has been read")
    names = [hold_out] if isinstance(hold_out, str | Cell) else hold_out
    seen = partition.hold_out(grid.cells, [find_cell(name, grid.cells) for name in names]).seen
    out = Path(out) if out else None
    request = RunRequest(method, encoder, config=config, vectors=vectors, changes=changes, out=out, **options)
    if quiet is None:  # nobody reads standard error but in a terminal or a notebook
        quiet = not sys.stderr.isatty() and "ipykernel" not in sys.modules
    return run(grid, seen, request, log=None if quiet else lambda line: print(line, file=sys.stderr))[0]  # noqa: T201


def run(
    grid: Grid, seen: Collection[Cell], request: RunRequest, scored: Grid | None = None, log: Log | None = None
) -> tuple[Tagger, Progression]:
    """Choose settings, say what will be done, train on the seen cells, and score `scored` (in the first process).

    With `request.expect`, seen cells are held out in turn, to choose among methods (`auto`), to calibrate decisions,
    and to say what unseen cells will score; by default where the encoder is frozen, so that this takes little time.
    With `request.out`, the model is written to that folder. Without `log`, the run is silent.
    """
    first, out = is_first_process(), request.out
    if out is not None and first:
        _check_state(out, request.resume, request.force)
    training = TrainingRun(grid, seen, request, log if first else None)
    with locked_for_run(out, request.resume, request.force) if out is not None and first else nullcontext():
        if training.log is not None:
            for line in training.announcement(scored):
                training.log(line)
        return training.execute(scored)


class TrainingRun:
    """A run whose settings are chosen."""

    def __init__(self, grid: Grid, seen: Collection[Cell], request: RunRequest, log: Log | None) -> None:
        """Choose settings, and whether seen cells are held out in turn."""
        self.grid, self.seen, self.request, self.log = grid, seen, request, log
        cells = [Cell(task, language) for task in grid.tasks for language in grid.languages]
        self.unseen = [cell for cell in cells if cell not in seen]
        """The cells that the model fills, with data or without."""
        methods = CANDIDATES if request.method == AUTO else (request.method,)
        choices = [choose_settings(grid, seen, replace(request, method=name)) for name in methods]
        self.configs, self.reasons = [choice.config for choice in choices], choices[0].reasons
        """The settings of each method that is compared: of several for `auto`, else of one."""
        find_method(self.configs[0].method)
        self.encoder = self._build_encoder()
        self.stays_frozen = self.encoder.stored is not None and not n_parameters(self.encoder)
        parts = folds(seen, seed=self.configs[0].training.seed)
        most = max(Counter(cell.task for part in parts for cell in part).values(), default=0)
        self.n_folds, self.can_hold_out = len(parts), most >= FEWEST_CELLS
        usual = self.stays_frozen and bool(self.unseen) and is_only_process()
        wanted = request.method == AUTO or (usual if request.expect is None else request.expect)
        self.holds_out = self.can_hold_out and wanted
        if self.holds_out and self.encoder.stored is not None:
            self.encoder.stored.keep_open = True

    def announcement(self, scored: Grid | None) -> Iterator[str]:
        """Say what was chosen, and what will be done: the settings that matter, and the cells."""
        yield from self.reasons
        config = self.configs[0]
        settings, encoder, pretrained = config.training, config.encoder, config.encoder.pretrained
        method = AUTO if len(self.configs) > 1 else config.method
        how = ""
        if encoder.name != "compact":
            centred = f", centring {pretrained.centring}" if pretrained.mode == "frozen" else ""
            how = f" ({pretrained.mode}, pooling {pretrained.pooling}{centred})"
        yield (
            f"{method} over {PurePath(encoder.name).name}{how}: {settings.steps:,} steps of {settings.cells_per_step} "
            f"× {settings.batch_sentences} sentences, learning rate {settings.learning_rate:g}, seed {settings.seed}"
        )
        units = [task.unit for task in self.grid.inventory.tasks.values()]
        onnx, stock = (export_obstacles(config, self.encoder, units, onnx) for onnx in (True, False))
        if stock:
            how = "will not carry this model" if onnx else "will carry this model with --onnx only"
            yield f"crossfill export {how}: {'; '.join(stock)}"
        n_words = sum(self.grid.training(cell).n_words for cell in self.seen)
        to_fill = (
            f"{_cells(self.unseen)} will be filled: {listed(self.unseen)}" if self.unseen else "none is left to fill"
        )
        yield f"{_cells(self.seen)} seen, {n_words:,} training words; {to_fill}"
        if find_method(config.method).language_vectors is not None:
            most = max(map(len, bridges(self.seen).values()), default=0)
            if note := bridge_note(self.seen):
                yield note
            elif self.unseen and most < ENOUGH_BRIDGES and encoder.name != "compact":
                yield (
                    f"with {most} languages in two tasks {config.method} is likely no better than one shared head "
                    "(--method jm); --method auto compares the two"
                )
        if 0 < len(unknown := without_vectors(config, self.grid.languages)) < len(self.grid.languages):
            yield f"no typological vectors of {listed(unknown)}: only text says what they are like"
        if self.encoder.stored is not None:
            texts = self._texts(scored).values()
            missing = sum(text.n_words for _, text in texts if not self.encoder.stored.is_stored(text))
            stored = sum(text.n_words for _, text in texts) - missing
            yield f"{missing:,} words to encode, and {stored:,} in the cache already"
        if self.holds_out:
            yield f"seen cells held out in turn: {self.n_folds * len(self.configs)} trainings before the last one"
        elif not self.can_hold_out and (self.unseen or method == AUTO):
            yield (
                f"fewer than {FEWEST_CELLS} seen cells of any task can be held out, so nothing is said of how filled "
                f"cells will score{f', and the method is {config.method}' if method == AUTO else ''}"
            )
        elif self.unseen:
            yield f"--expect (expect=True) says what filled cells will score, in {self.n_folds + 1} times the time"

    def execute(self, scored: Grid | None) -> tuple[Tagger, Progression]:
        """Hold out, train, expect, score, and complete the model folder."""
        config, calibration, comparison, out = self.configs[0], None, None, self.request.out
        if self.encoder.stored is not None and self.encoder.stored.cache.folder is not None and is_first_process():
            self._encode(self.encoder.stored, scored)
        if self.holds_out:
            folder = None if out is None else out / checkpoint.HELD_OUT
            with ProgressBar(self.log is None) as bars:
                steps = self.n_folds * sum(config.training.steps for config in self.configs)
                report = bars.add("seen cells held out in turn", steps)
                build = (lambda: self.encoder) if self.stays_frozen else self._build_encoder
                comparison = compare_held_out(self.grid, self.seen, self.configs, build, report, folder)
            config, calibration = comparison.config, comparison.calibration
            if comparison.scores_by_method and self.log is not None:
                self.log(comparison.summary())
        with ProgressBar(self.log is None) as bars:
            steps = bars.add(config.method, config.training.steps)
            model, _, progression = train_model(self.grid, self.seen, config, out, self.encoder, steps, self.log)
        leave()
        tagger = Tagger(model, config, calibration, card=CardInfo(data=describe_data(self.grid, model.seen)))
        if is_first_process():
            tagger.profiles = LanguageProfiles.of(texts_by_language(self.grid, self.seen))
            tagger.segmentation = Segmentation.fit(cut_sentences(self.grid, self.seen))
            if comparison is not None:
                tagger.expectations = expect_unseen(model, self.grid, self.unseen, comparison)
            if scored is not None:
                with ProgressBar(self.log is None) as bars:
                    report = bars.add("Scoring corpora", len(scored_corpora(model, scored)))
                    tagger.results = Results(evaluate(model, scored, config, calibration, report=report))
            if out is not None:
                tagger.save_results(out)
        return tagger, progression

    def _texts(self, scored: Grid | None) -> dict[str, tuple[str, Corpus]]:
        """Collect all text that the run encodes, each with its cell."""
        texts = texts_to_encode(self.grid, self.seen, self.seen, scored)
        return {corpus.text_hash: (name, corpus) for name, corpus in texts if len(corpus)}

    def _encode(self, stored: "StoredVectors", scored: Grid | None) -> None:
        """Encode all text that is not in the cache, with one bar."""
        missing = [(name, text) for name, text in self._texts(scored).values() if not stored.is_stored(text)]
        with ProgressBar(self.log is None or not missing) as bars:
            title = f"Encoding words of {_cells({name for name, _ in missing})}"
            update, done = bars.add(title, sum(text.n_words for _, text in missing)), 0
            for name, text in missing:
                stored.of(text, lambda words, _, before=done, name=name: update(before + words, name))
                done += text.n_words

    def _build_encoder(self) -> Encoder:
        return build_encoder(self.configs[0], self.grid.inventory.languages, self.request.cache, self.log is None)


def export_obstacles(config: Config, encoder: Encoder, units: Collection[Unit], onnx: bool = False) -> list[str]:
    """List what `crossfill export` has no place for, and what changes it; an ONNX graph carries more."""
    settings, source = config.encoder.pretrained, encoder.source
    obstacles = {
        f"{config.encoder.name} reads hashed n-grams, no tokens (train over a pretrained encoder)": source is None,
        f"the heads of method {config.method} vote (--method ns)": find_method(config.method).votes,
        "heads of pairs read |u − v| and u ⊙ v (serve these with crossfill serve)": Unit.PAIR in units,
    }
    if source is not None and not onnx:
        from transformers.models.auto.modeling_auto import MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES as KINDS

        kind, last = source.settings.model_type, source.n_layers
        obstacles |= {
            f"transformers has no token classification over {kind}": kind not in KINDS,
            "it labels sentences": Unit.SENTENCE in units,
            "it reads the surface of words (--set encoder.surface=false)": config.encoder.surface,
            "it has hidden layers (--set heads.hidden=[])": bool(config.heads.hidden),
            f"it reads the {settings.pooling} piece of a word, pipelines the first": settings.pooling != "first",
            f"it reads layer {settings.layer} of {last}, pipelines the last": settings.layer not in (None, last),
        }
    return [obstacle for obstacle, holds in obstacles.items() if holds]


def _cells(cells: Collection[Cell | str]) -> str:
    return "1 cell" if len(cells) == 1 else f"{len(cells)} cells"


def run_state(folder: Path) -> Literal["empty", "unfinished", "finished"]:
    """Tell how far the run in a folder has come."""
    if (folder / checkpoint.STATE).exists() or (folder / checkpoint.HELD_OUT).exists():
        return "unfinished"
    if not (folder / checkpoint.DESCRIPTION).exists():
        return "empty"
    return "finished" if (folder / checkpoint.CARD).exists() else "unfinished"


@contextmanager
def locked_for_run(folder: Path, resume: bool, force: bool) -> Iterator[None]:
    """Lock a folder for a run, from before its first work to its end, when what only served to resume it is deleted.

    A folder that holds a run is refused, unless it is resumed, or given up with `force`.
    """
    with locked(folder / checkpoint.LOCK, wait=False) as held:
        if not held:
            raise CheckpointError(f"{folder}: another process is training into this folder; wait, or name another one")
        if _check_state(folder, resume, force) != "empty" and not resume:
            _remove_state(folder)
            checkpoint.remove_run(folder)
        yield
        _remove_state(folder)


def check_request(request: RunRequest) -> None:
    """Refuse what can be refused before any data is read: settings, an encoder, and a folder that holds a run."""
    if request.out is not None and is_first_process():  # others come when it has begun
        _check_state(request.out, request.resume, request.force)
    choose_settings(Grid({}), (), replace(request, method=None if request.method == AUTO else request.method))


def _remove_state(folder: Path) -> None:
    shutil.rmtree(folder / checkpoint.HELD_OUT, ignore_errors=True)
    (folder / checkpoint.STATE).unlink(missing_ok=True)


def _check_state(folder: Path, resume: bool, force: bool) -> str:
    """Return the state of a folder; an error if a run may not begin there."""
    state = run_state(folder)
    if resume and state != "unfinished":
        what = "none; train without --resume" if state == "empty" else "a finished one; --force (force=True) trains it"
        raise CheckpointError(f"{folder}: expected a run to resume, found {what}")
    if not (resume or force or state == "empty"):
        what = "a finished model;" if state == "finished" else "an unfinished run; --resume (resume=True) continues it,"
        replace = "--force (force=True) replaces it, or name another folder with --out"
        raise CheckpointError(f"{folder}: expected an empty folder, found {what} {replace}")
    return state
