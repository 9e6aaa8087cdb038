"""What a run will do and how long it will take, said before it begins, at rates measured on this machine."""

import random
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import PurePath

import torch

from crossfill.config import Config
from crossfill.encoders.base import Encoder, Inputs
from crossfill.encoders.build import build_encoder
from crossfill.encoders.frozen import FrozenEncoder
from crossfill.grid.bridges import bridge_note
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import Corpus
from crossfill.methods.registry import build_model, find_method
from crossfill.prediction.predict import predict
from crossfill.progress import duration
from crossfill.training.labelled import Labelled
from crossfill.training.loop import Trainer

TRIAL_WORDS = 1024
"""Words that are encoded to measure the speed of an encoder."""
TRIAL_SECONDS = 0.5
"""How long training steps are measured."""
_TRIAL_CELLS, _TRIAL_SENTENCES = 12, 16
_ENDLESS = 10**9
_MOST_NAMES = 8


@dataclass(frozen=True)
class Words:
    """Words that a frozen encoder is to read."""

    needed: int
    missing: tuple[Corpus, ...]
    """Corpora that are not in the cache."""

    @property
    def n_missing(self) -> int:
        return sum(corpus.n_words for corpus in self.missing)


@dataclass(frozen=True)
class Rates:
    """Speeds that were measured on this machine, with the run's own settings and data."""

    step: float
    """Seconds of a training step."""
    plug_in: float
    """Seconds to predict a word with the posterior means."""
    averaged: float
    """Seconds to predict a word with posterior samples."""
    words_per_second: float | None
    """Speed of encoding; none if nothing has to be encoded."""


@dataclass(frozen=True)
class Outlook:
    """The seconds that the parts of a run are expected to take."""

    encoding: float
    held_out: float
    """Training without some of the seen cells, in turn."""
    training: float
    scoring: float
    rates: Rates

    @property
    def total(self) -> float:
        return self.encoding + self.held_out + self.training + self.scoring

    def line(self) -> str:
        """The expected time in words."""
        parts = [f"training {duration(self.training)} at {1 / self.rates.step:,.0f} steps/s"]
        if self.rates.words_per_second is not None:
            parts.insert(0, f"encoding {duration(self.encoding)} at {self.rates.words_per_second:,.0f} words/s")
        if self.held_out:
            parts.append(f"seen cells held out in turn {duration(self.held_out)}")
        if self.scoring:
            parts.append(f"scoring {duration(self.scoring)}")
        return f"expected time, from rates measured just now: {duration(self.total)} ({', '.join(parts)})"


def estimate_time(
    grid: Grid,
    seen: Collection[Cell],
    config: Config,
    encoder: Encoder,
    words: Words | None,
    n_held_out: int = 0,
    scored: Grid | None = None,
) -> Outlook:
    """Measure rates and add up what a run takes, with `n_held_out` further trainings that hold out seen cells."""
    rates = measure_rates(grid, seen, config, encoder, words)
    settings = config.training
    validated = sum(grid.development(cell).n_words for cell in seen) * -(-settings.steps // settings.validate_every)
    training = settings.steps * rates.step + validated * rates.plug_in
    tested = sum(corpus.n_words for corpus in _tested(scored, seen))
    return Outlook(
        words.n_missing / rates.words_per_second if words is not None and rates.words_per_second else 0.0,
        n_held_out * training,
        training,
        tested * (rates.plug_in + rates.averaged),
        rates,
    )


def describe_run(grid: Grid, seen: Collection[Cell], config: Config, words: Words | None, method: str) -> Iterator[str]:
    """Lines that say what a run will do: the settings that matter, its cells, and the words to encode."""
    settings, encoder = config.training, config.encoder
    name = PurePath(encoder.name).name
    how = ""
    if encoder.name != "compact":
        pretrained = encoder.pretrained
        centred = f", centring {pretrained.centring}" if pretrained.mode == "frozen" else ""
        how = f" ({pretrained.mode}, pooling {pretrained.pooling}{centred})"
    yield (
        f"{method} over {name}{how}: {settings.steps:,} steps of {settings.cells_per_step} × "
        f"{settings.batch_sentences} sentences, learning rate {settings.learning_rate:g}, seed {settings.seed}"
    )
    trained = sum(grid.training(cell).n_words for cell in seen)
    filled = unseen_cells(grid, seen)
    names = ", ".join(map(str, filled[:_MOST_NAMES])) + (f" and {len(filled) - _MOST_NAMES} more" * (len(filled) > 8))
    told = f"{len(filled)} cell{'s' * (len(filled) > 1)} will be filled: {names}" if filled else "none is left to fill"
    yield f"{len(seen)} cell{'s' * (len(seen) > 1)} seen, {trained:,} training words; {told}"
    if find_method(config.method).language_vectors is not None and (note := bridge_note(seen)):
        yield note
    if words is not None:
        yield f"{words.n_missing:,} words to encode, and {words.needed - words.n_missing:,} in the cache already"


def unseen_cells(grid: Grid, seen: Collection[Cell]) -> list[Cell]:
    """The cells of the grid's tasks and languages that a run fills: all but the seen ones, with data or without."""
    cells = (Cell(task, language) for task in grid.tasks for language in grid.languages)
    return [cell for cell in cells if cell not in seen]


def words_to_encode(grid: Grid, seen: Collection[Cell], encoder: Encoder, scored: Grid | None) -> Words | None:
    """The words that a frozen encoder reads in a run, and those not in its cache; none for other encoders."""
    if not isinstance(encoder, FrozenEncoder):
        return None
    found: dict[str, Corpus] = {}
    for corpus in _corpora(grid, seen, scored):
        if len(corpus):
            found.setdefault(corpus.text_hash(), corpus)
    missing = tuple(corpus for corpus in found.values() if not encoder.is_cached(corpus))
    return Words(sum(corpus.n_words for corpus in found.values()), missing)


def measure_rates(grid: Grid, seen: Collection[Cell], config: Config, encoder: Encoder, words: Words | None) -> Rates:
    """Take some steps on some of the data, in a model of its own, and encode some words."""
    speed = None
    if isinstance(encoder, FrozenEncoder) and words is not None and words.missing:
        speed = encoder.words_per_second(_sample(words))
    shared = isinstance(encoder, FrozenEncoder) and config.encoder.pretrained.layer != "mix"
    trial = config.change({"training.steps": _ENDLESS, "training.validate_every": _ENDLESS})
    own = encoder if shared else build_encoder(config, grid.inventory.languages)
    model = build_model(trial, grid.inventory, seen, own)
    data = {cell: _trial(model.encoder, grid, cell) for cell in _some_cells(seen)}
    trainer = Trainer(model, data, {}, trial)
    trainer.advance()  # the first step allocates
    step = _seconds_each(trainer.advance, TRIAL_SECONDS)
    cell, sentences = next(iter(data.items()))
    n_words = int(sentences.inputs.lengths.sum())
    each = [
        _seconds_each(lambda n=n: predict(model, sentences.inputs, cell, n), TRIAL_SECONDS / 10) / n_words
        for n in (0, config.prediction.samples)
    ]
    return Rates(step, each[0], each[1], speed)


def _seconds_each(call: Callable[[], object], seconds: float) -> float:
    started, n = time.monotonic(), 0
    while n < 3 or time.monotonic() - started < seconds:
        call()
        n += 1
    return (time.monotonic() - started) / n


def _some_cells(seen: Collection[Cell]) -> list[Cell]:
    cells = sorted(seen)
    return random.Random(0).sample(cells, min(_TRIAL_CELLS, len(cells)))  # noqa: S311 - no secret


def _trial(encoder: Encoder, grid: Grid, cell: Cell) -> Labelled:
    """Some sentences of a cell; a frozen encoder is given random vectors, as theirs may not be there yet."""
    corpus = _some(grid.training(cell), _TRIAL_SENTENCES)
    labels = torch.from_numpy(grid.inventory.label_ids(cell.task, corpus.labels))
    inputs: Inputs
    if isinstance(encoder, FrozenEncoder):
        inputs = encoder.imagined(torch.from_numpy(corpus.text().lengths), cell.language)
    else:
        inputs = encoder.prepare(corpus.text(), cell.language)
    return Labelled(inputs, labels, corpus.unit)


def _sample(words: Words) -> Corpus:
    """Random sentences of all corpora that are not in the cache, each by its size."""
    share = min(1.0, TRIAL_WORDS / words.n_missing)
    parts = [_some(corpus, max(1, round(share * len(corpus)))) for corpus in words.missing]
    return Corpus.joined(part.text() for part in parts)


def _some(corpus: Corpus, most: int) -> Corpus:
    n = len(corpus)
    return corpus if n <= most else corpus.take(sorted(random.Random(0).sample(range(n), most)))  # noqa: S311


def _corpora(grid: Grid, seen: Collection[Cell], scored: Grid | None) -> Iterator[Corpus]:
    """All text that a run encodes: to centre languages, to train, to select, and to score."""
    for cell in grid.cells:
        usable = [splits for splits in grid[cell] if cell in seen or splits.has_training_data]
        yield Corpus.joined(splits.training for splits in usable)
        if cell in seen:
            yield grid.development(cell)
    yield from _tested(scored, seen)


def _tested(scored: Grid | None, seen: Collection[Cell]) -> Iterator[Corpus]:
    """The test data that are scored when a model is trained."""
    if scored is not None:
        for cell in scored.cells:
            yield from scored.evaluation(cell, cell in seen).values()
