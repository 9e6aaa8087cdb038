"""Cost estimates of a study: floating-point operations of every job, and seconds at this machine's speed.

Estimates are upper bounds: training is assumed to run to its last step, though early stopping usually ends it sooner.
Features of a frozen encoder, and the states below the layers that train, are assumed to be cached.
"""

import time
from collections.abc import Mapping
from functools import cache

import numpy as np

from crossfill.config import Config
from crossfill.grid.cells import Cell
from crossfill.methods.registry import find_method
from crossfill.studies.grids import StudyGrid
from crossfill.studies.plan import Job

SECONDS_PER_STEP, SECONDS_PER_CELL = 0.003, 0.003
"""Overhead of a training step, and of each cell drawn in it, besides arithmetic."""
EFFICIENCY = 0.4
"""Speed of training as a share of the speed of a plain matrix product."""
PIECES_PER_WORD = 1.5
FORWARD_AND_BACKWARD = 3


def job_seconds(job: Job, grid: StudyGrid, operations_per_second: float) -> float:
    """Upper estimate of a job's seconds on one core."""
    config = job.config
    method = find_method(config.method)
    part = grid.with_sources() if method.uses_outside_languages else grid.grid
    seen = [Cell.parse(cell) for cell in job.seen]
    sentences = sum(len(part.training(cell)) for cell in seen)
    words = sum(part.training(cell).n_words for cell in seen) / max(1, sentences)
    tested = sum(s.test.n_words for cell in (*job.seen, *job.unseen) for s in grid.grid[Cell.parse(cell)])
    steps = config.training.steps
    batch_words = config.training.cells_per_step * config.training.batch_sentences * words
    labels, width = max(part.inventory.head_shapes(_features(config)), key=lambda shape: shape[0] * shape[1])
    head = method.head_operations(config, width, labels)
    step = batch_words * _word_operations(config) + config.training.cells_per_step * config.objective.samples * head
    validated = sum(part.development(cell).n_words for cell in seen) * (steps / config.training.validate_every)
    evaluation = (tested * len(job.methods) + validated) * _word_operations(config)
    average = tested * config.prediction.samples * 2 * _features(config) * labels
    work = steps * FORWARD_AND_BACKWARD * step + evaluation + average
    overhead = steps * (SECONDS_PER_STEP + SECONDS_PER_CELL * config.training.cells_per_step)
    return overhead + work / (EFFICIENCY * operations_per_second)


@cache
def machine_speed() -> float:
    """Floating-point operations per second of one core, measured on a small matrix product.

    A product of this size runs in one thread: on a busy machine, the processor time of several is mostly waiting.
    """
    size, rounds = 96, 0
    a = np.random.default_rng(0).random((size, size), dtype=np.float32)
    np.matmul(a, a)
    started = time.thread_time()  # processor time, not wall time: the machine may be shared
    while time.thread_time() - started < 0.1:
        np.matmul(a, a)
        rounds += 1
    return 2 * size**3 * rounds / (time.thread_time() - started)


def calibration(estimates: Mapping[str, float], measured: Mapping[str, float]) -> float:
    """The factor that corrects the estimates, from the measured seconds of finished jobs."""
    done = [job for job in measured if job in estimates]
    return sum(measured[job] for job in done) / sum(estimates[job] for job in done) if done else 1.0


def _features(config: Config) -> int:
    return config.encoder.hidden if config.encoder.name == "compact" else _network(config.encoder.name)[0]


@cache
def _network(name: str) -> tuple[int, int]:
    """Hidden size and number of layers of a pretrained encoder."""
    from crossfill.encoders.huggingface import Source

    source = Source.find(name)
    return source.size, source.n_layers


def _word_operations(config: Config) -> float:
    """Floating-point operations of the encoder's forward pass for one word."""
    encoder = config.encoder
    if encoder.name == "compact":
        return 2 * encoder.layers * 3 * encoder.hidden**2 + 20 * encoder.hidden
    if encoder.pretrained.mode == "frozen":
        return 4 * _features(config)
    size, layers = _network(encoder.name)
    if encoder.pretrained.mode == "partial":
        layers -= encoder.pretrained.freeze_below - 1
    return PIECES_PER_WORD * 2 * layers * 12 * size**2
