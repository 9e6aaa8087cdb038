"""The demo: three methods on half the cells of an artificial grid, each in a process of its own."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty
from typing import Any, NamedTuple

import numpy as np
import torch

from crossfill.baselines.methods import build_model, load_model
from crossfill.checkpoint import write_json
from crossfill.config import Config, MethodName, override
from crossfill.data.synthetic import SyntheticConfig, SyntheticGrid, synthetic_grid
from crossfill.experiments.card import EXAMPLES, RESULTS
from crossfill.experiments.cell_results import CellResult, entropy_correlations, task_means
from crossfill.experiments.run import evaluate
from crossfill.grid import Cell, Grid
from crossfill.partition import Partition, random_halves
from crossfill.predict import predict
from crossfill.sentence import Corpus, Sentence
from crossfill.training import Trainer, prepare_grid

METHODS: tuple[MethodName, ...] = ("pf-lr", "pf-d", "jm")
STEPS_PER_REPORT = 10
N_EXAMPLES = 3

# chosen on grids of seeds 100 to 102, for all methods alike; the paper's sizes are meant for a large encoder
SETTINGS = (
    "encoder.hidden=64",
    "latents.size=6",
    "latents.rank=3",
    "generator.hidden=[64]",
    "generator.initial_variance=1e-4",
    "objective.kl_factor=10",
    "training.steps=1500",
    "training.cells_per_step=8",
    "training.batch_sentences=4",
    "training.learning_rate=3e-3",
    "training.latent_learning_rate=0.05",
    "training.decay=linear",
    "training.weight_decay=0.1",
    "training.validate_every=250",
    "training.checkpoint_every=500",
    "prediction.samples=30",
)


def demo_config(method: MethodName, seed: int = 0) -> Config:
    """The settings of a method in the demo."""
    return override(Config(), [f"method={method}", f"training.seed={seed}", *SETTINGS])


def demo_grid(seed: int, config: SyntheticConfig | None = None) -> tuple[SyntheticGrid, Partition]:
    """The demo's grid, half of it held out as in the paper."""
    made = synthetic_grid(config or SyntheticConfig(), seed)
    return made, random_halves(made.grid.cells, seed)[0]


@dataclass(frozen=True)
class MethodRun:
    """What a method did."""

    method: MethodName
    seconds: float
    results: list[CellResult]

    def summary(self) -> dict[str, Any]:
        """All of it, as JSON."""
        return {
            "method": self.method,
            "seconds": round(self.seconds, 1),
            "unseen": task_means(self.results),
            "seen": task_means(self.results, seen=True),
            "entropy_correlations": {name: found.r for name, found in entropy_correlations(self.results).items()},
            "cells": [_brief(result) for result in self.results],
        }


def _brief(result: CellResult) -> dict[str, Any]:
    """A result without what the demo does not show: single sentences and words, bins and curves."""
    told = {name: getattr(result, name) for name in ("corpus", "seen", "n_words", "plug_in", "averaged", "by_label")}
    return {"cell": str(result.cell), **told, "study_entropy": float(np.mean(result.entropies))}


class Report(NamedTuple):
    """How far a method is."""

    method: MethodName
    step: int
    note: str


def run_method(
    method: MethodName,
    seed: int,
    out: Path | None = None,
    tell: Callable[[Report], None] | None = None,
    steps: int | None = None,
    grid: SyntheticConfig | None = None,
) -> MethodRun:
    """Train and score one method on the demo's grid, on one core: the tensors are small."""
    torch.set_num_threads(1)
    started = time.monotonic()
    made, partition = demo_grid(seed, grid)
    config = demo_config(method, seed)
    config = override(config, [f"training.steps={steps}"]) if steps else config
    model = build_model(config, made.grid.inventory, partition.seen)

    def report(step: int, note: str) -> None:
        if tell is not None and step % STEPS_PER_REPORT == 0:
            tell(Report(method, step, note))

    Trainer(model, *prepare_grid(model, made.grid), config, out).run(report=report)
    results = evaluate(model, made.grid, config)
    if out is not None:
        write_json(out / RESULTS, [result.as_dict() for result in results], indent=None)
        write_json(out / EXAMPLES, _example_texts(made))
    return MethodRun(method, time.monotonic() - started, results)


def run_methods(
    seed: int, out: Path, watch: Callable[[Report], None], steps: int | None = None, grid: SyntheticConfig | None = None
) -> list[MethodRun]:
    """Run all methods at once and pass on their reports; models land in `out/<method>`."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(len(METHODS), mp_context=context) as pool:
        reports = manager.Queue()
        jobs = [pool.submit(run_method, m, seed, out / m, reports.put, steps, grid) for m in METHODS]
        for report in _until_done(jobs, partial(reports.get, timeout=0.2)):
            watch(report)
        return [job.result() for job in jobs]


def _until_done(jobs: Sequence[Future[MethodRun]], next_report: Callable[[], Report]) -> Iterator[Report]:
    while True:
        done = wait(jobs, timeout=0.0).not_done == set()
        try:
            yield next_report()
        except Empty:
            if done:
                return


class TaggedWord(NamedTuple):
    """A word, the model's label for it, and how sure the model is of it."""

    word: str
    label: str
    gold: str
    confidence: float


def tag_examples(folder: Path, grid: Grid, cells: Sequence[Cell], n_samples: int = 100) -> dict[Cell, list[TaggedWord]]:
    """One test sentence of each cell, tagged with averaged prediction by the model in a folder."""
    torch.set_num_threads(1)
    model, _ = load_model(folder)
    examples = {}
    for cell in cells:
        sentence = _telling(grid[cell][0].test)
        inputs = model.encoder.prepare(Corpus.from_sentences([sentence]))
        found = predict(model, inputs, cell, n_samples)
        labels = [model.inventory.labels[cell.task][i] for i in found.labels.tolist()]
        rows = zip(sentence.words, labels, sentence.labels, found.confidence.tolist(), strict=True)
        examples[cell] = [TaggedWord(*row) for row in rows]
    return examples


def _example_texts(made: SyntheticGrid) -> dict[str, list[str]]:
    """Some test sentences of each language, for whoever wants to try the model."""
    texts = {}
    for language in made.grid.languages:
        cell = next(cell for cell in made.grid.cells if cell.language == language)
        texts[language] = [s.text for s in made.grid[cell][0].test if 6 <= len(s) <= 12][:N_EXAMPLES]
    return texts


def _telling(sentences: Sequence[Sentence]) -> Sentence:
    """A short sentence with many different labels."""
    short = [sentence for sentence in sentences if 5 <= len(sentence) <= 7]
    return max(short or sentences, key=lambda sentence: len(set(sentence.labels)))
