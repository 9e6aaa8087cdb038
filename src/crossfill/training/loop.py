"""The training loop of all methods: draw cells, minimise the negative ELBO, validate on seen cells, keep the best."""

import math
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from crossfill import checkpoint
from crossfill.config import Config
from crossfill.errors import CheckpointError, TrainingError
from crossfill.files import write_json
from crossfill.grid.cells import Cell
from crossfill.measures import uncertainty
from crossfill.measures.metrics import score
from crossfill.model import Model
from crossfill.prediction.predict import predict
from crossfill.training import elbo
from crossfill.training.labelled import Labelled
from crossfill.training.optimisers import Optimisers
from crossfill.training.processes import Processes, widest

CHECKPOINT_SECONDS = 30.0
"""Seconds between checkpoints."""


@dataclass
class Progression:
    """Progress of a training run."""

    step: int = 0
    best_merit: float = -math.inf
    """What the best weights were chosen by: `training.criterion`."""
    best_score: float = 0.0
    """Mean score of these weights on dev data."""
    best_step: int = 0
    worse: int = 0
    """Number of validations since the best one."""
    finished: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)
    """One entry per validation: step, mean nll, kl and loss since the previous one, and scores."""


class Validation(NamedTuple):
    """Measures on dev data, by task and as their `mean`; empty without any."""

    scores: dict[str, float]
    nll: dict[str, float]
    """Negative log-likelihood of a word."""


class InterruptedTraining(TrainingError):  # noqa: N818 - nothing went wrong
    """Training was stopped by Ctrl-C or SIGTERM; the run can be resumed."""

    def __init__(self, folder: Path, step: int) -> None:
        super().__init__(f"{folder}: interrupted at step {step}; train with the same settings and --resume to go on")
        self.folder, self.step = folder, step


class Trainer:
    """A training run: a model, its data and its progress."""

    def __init__(
        self,
        model: Model,
        train: Mapping[Cell, Labelled],
        dev: Mapping[Cell, Labelled],
        config: Config,
        out: Path | None = None,
        processes: Processes | None = None,
        data: str = "",
    ) -> None:
        """`data` is a digest of the training data, so that no run is resumed with other ones."""
        self.processes = processes or Processes(config.training)
        self.model, self.train_data, self.dev_data, self.config, self.out = model, train, dev, config, out
        model.to(self.processes.device)
        sizes = {cell: elbo.CellSize(len(data), data.n_labelled) for cell, data in train.items()}
        settings = config.training
        self.sampler = elbo.CellSampler(sizes, settings, config.objective.cell_sampling)
        self.kl_weight = elbo.KlWeight(config.objective, self.sampler.n_words, self.sampler.n_batches, settings.steps)
        self.optimisers = Optimisers(model, settings)
        self.progression = Progression()
        self.recent: list[tuple[float, ...]] = []
        """nll, kl and loss of each step since the last validation."""
        self.saved = time.monotonic()
        """When the last checkpoint was written."""
        self.description = checkpoint.describe(config, model.inventory, model.seen, data)

    def run(self, resume: bool = False, report: Callable[[int, str], None] = lambda _step, _note: None) -> Progression:
        """Train to the end, then load the weights of the best validation. `report` is called after every step."""
        torch.manual_seed(self.config.training.seed)
        if self.out is not None:
            self._open(self.out, resume)
        at = self.progression
        with _stoppable(self.out is not None) as stop:
            while not at.finished:
                self.advance()
                report(at.step, self._note())
                if stop.is_set() and self.out is not None and not at.finished:
                    self._save_state(self.out)
                    raise InterruptedTraining(self.out, at.step)
        self._load_best()
        return at

    def objectives(self, draws: Sequence[elbo.Draw]) -> list[elbo.Objective]:
        """Estimate the negative ELBO from each draw; all draws go through the encoder in one batch.

        Each process takes its share of the sentences, so the full estimate is the mean over processes.
        """
        share, n_processes, device = self.processes.share, self.processes.size, self.processes.device
        batches = [self.train_data[draw.cell].take(torch.from_numpy(draw.sentences[share])) for draw in draws]
        kl_weight = self.kl_weight(self.progression.step)
        objectives = []
        inputs = batches[0].inputs.followed_by([batch.inputs for batch in batches[1:]])
        with self.processes.own_randomness(self.progression.step), self.processes.autocast():
            if len(inputs.lengths):
                features = self.model.encoder(inputs)
                features = features.to(torch.promote_types(features.dtype, torch.float32))
            else:  # more processes than sentences
                features = torch.zeros(0, self.model.encoder.n_features, device=device)
        parts = features.split([int(batch.inputs.lengths.sum()) for batch in batches])
        heads = self.model.heads.training_draw([draw.cell for draw in draws], self.config.objective.samples)
        for draw, batch, part, (head, divergences) in zip(draws, batches, parts, heads, strict=True):
            items = self.model.pool(part, batch.inputs.lengths, draw.cell.task)
            likelihoods = elbo.log_likelihood(head.log_probabilities(items), batch.labels.to(device)) * n_processes
            divergence = elbo.total_divergence(divergences, partial(self.sampler.probability, cell=draw.cell))
            objectives.append(elbo.negative_elbo(likelihoods, divergence, draw.expected_words, kl_weight))
        return objectives

    def validate(self) -> Validation:
        """Score plug-in prediction of dev data of seen cells: means over cells for each task, and over tasks."""
        cells = list(self.dev_data)
        values = torch.zeros(len(cells), 2, dtype=widest(self.processes.device), device=self.processes.device)
        for i in range(len(cells))[self.processes.share]:
            cell, data = cells[i], self.dev_data[cells[i]]
            predicted = predict(self.model, data.inputs, cell, n_samples=0)
            task, lengths = self.model.inventory.task(cell.task), data.lengths.numpy()
            gold, known = data.labels.numpy(), data.labels.numpy() >= 0
            values[i, 0] = score(gold, predicted.labels.cpu().numpy(), task, lengths)
            values[i, 1] = uncertainty.nll(predicted.probabilities.cpu().numpy()[known], gold[known])
        totals = self.processes.total(values.flatten()).reshape(-1, 2)
        return Validation(*(_means(cells, column.tolist()) for column in totals.T))

    def advance(self) -> None:
        """Take one step, then validate and save a checkpoint where they are due."""
        at, settings = self.progression, self.config.training
        self.model.train()
        draws = self.sampler.draw(at.step)
        objectives = self.objectives(draws)
        for draw, objective in zip(draws, objectives, strict=True):
            if not torch.isfinite(objective.loss):
                raise TrainingError(
                    f"expected a finite loss, got nll {objective.nll.item()} and kl {objective.kl.item()} in cell "
                    f"{draw.cell} at step {at.step}; lower training.learning_rate or look at that cell's data"
                )
        mean = elbo.Objective(*(torch.stack(column).mean() for column in zip(*objectives, strict=True)))
        means = self.processes.total(torch.stack([mean.nll, mean.kl, mean.loss]).detach()) / self.processes.size
        self.recent.append(tuple(means.tolist()))
        mean.loss.backward()
        self.processes.average_gradients(self.optimisers.parameters)
        self.optimisers.step(at.step)
        at.step += 1
        last = at.step >= settings.steps
        if last or at.step % settings.validate_every == 0:
            self._keep_if_best(self.validate())
            at.finished = last or at.worse >= settings.patience
        due = settings.checkpoint_every is not None and at.step % settings.checkpoint_every == 0
        due = due or time.monotonic() - self.saved >= CHECKPOINT_SECONDS
        if self.out is not None and (at.finished or due):
            self._save_state(self.out)

    def _keep_if_best(self, measured: Validation) -> None:
        at = self.progression
        means = dict(zip(("nll", "kl", "loss"), np.mean(self.recent, axis=0).tolist(), strict=True))
        at.history.append({"step": at.step, **means, "scores": measured.scores, "dev_nll": measured.nll})
        self.recent.clear()
        dev_score, dev_nll = measured.scores.get("mean", 0.0), measured.nll.get("mean", 0.0)
        merit = dev_score if self.config.training.criterion == "score" else -dev_nll
        if merit > at.best_merit or not measured.scores:  # without any dev data, the last weights are the best
            at.best_merit, at.best_score, at.best_step, at.worse = merit, dev_score, at.step, 0
            self._save_best()
        else:
            at.worse += 1

    def _save_best(self) -> None:
        weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        if self.out is None:
            self.best = weights
        elif self.processes.is_first:
            notes = {"step": self.progression.best_step, "run": checkpoint.digest(self.description)}
            checkpoint.write_tensors(self.out / checkpoint.WEIGHTS, weights, notes)

    def _load_best(self) -> None:
        if self.out is None:
            self.model.load_state_dict(self.best)
        else:
            self.processes.wait()
            path = self.out / checkpoint.WEIGHTS
            tensors, notes = checkpoint.read_tensors(path)
            checkpoint.check_same_run(self.out, notes)
            checkpoint.load_weights(self.model, tensors, path)
        self.model.eval()

    def _open(self, out: Path, resume: bool) -> None:
        """Start a run folder, or resume the run in it."""
        state = out / checkpoint.STATE
        if self.processes.is_first:
            out.mkdir(parents=True, exist_ok=True)
            checkpoint.remove_leftovers(out)
            if not (resume and state.exists()):
                checkpoint.remove_run(out)
                write_json(out / checkpoint.DESCRIPTION, self.description)
        self.processes.wait()
        if state.exists():
            self._load_state(out)

    def _save_state(self, out: Path) -> None:
        self.saved = time.monotonic()
        if not self.processes.is_first:
            return
        at = self.progression
        tensors = {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"optimiser/{name}": tensor for name, tensor in self.optimisers.state().items()}
        tensors |= {"sampler/drawn": torch.from_numpy(self.sampler.drawn), **self.processes.randomness()}
        notes = {"description": self.description, "progression": asdict(at), "recent": self.recent}
        checkpoint.write_tensors(out / checkpoint.STATE, tensors, notes)
        write_json(out / checkpoint.HISTORY, at.history)

    def _load_state(self, out: Path) -> None:
        path = out / checkpoint.STATE
        tensors, notes = checkpoint.read_tensors(path)
        before = notes.get("description") or {}
        if before != self.description:
            changed = sorted(name for name in self.description if before.get(name) != self.description[name])
            what = "data" if changed == ["data"] else "settings" if changed == ["config"] else "settings or data"
            raise CheckpointError(f"{path}: this run was started with other {what}; use another folder, or --force")
        parts: dict[str, dict[str, Tensor]] = defaultdict(dict)
        for name, tensor in tensors.items():
            group, _, rest = name.partition("/")
            parts[group][rest] = tensor
        checkpoint.load_weights(self.model, parts["model"], path)
        self.optimisers.restore(parts["optimiser"])
        self.sampler.drawn[:] = tensors["sampler/drawn"].numpy()
        self.processes.restore_randomness(tensors)
        self.progression = Progression(**notes["progression"])
        self.recent = [tuple(means) for means in notes["recent"]]

    def _note(self) -> str:
        if self.recent:
            nll, kl, loss = self.recent[-1]
        else:  # just validated: the means that went into the history
            nll, kl, loss = (self.progression.history[-1][name] for name in ("nll", "kl", "loss"))
        best = f" best {100 * self.progression.best_score:.1f}" if self.progression.best_score else ""
        return f"loss {loss:.3f} nll {nll:.3f} kl {kl:.0f}{best}"


def _means(cells: Sequence[Cell], values: Sequence[float]) -> dict[str, float]:
    """Compute the mean over the cells of each task, and the mean of these."""
    by_task: dict[str, list[float]] = {}
    for cell, value in zip(cells, values, strict=True):
        by_task.setdefault(cell.task, []).append(value)
    means = {task: float(np.mean(of_task)) for task, of_task in by_task.items()}
    return means | {"mean": float(np.mean(list(means.values())))} if means else {}


@contextmanager
def _stoppable(wanted: bool) -> Iterator[threading.Event]:
    """Give an event that Ctrl-C and SIGTERM set, instead of ending the process at once; a second Ctrl-C does end it.

    Only the main thread can take signals; in others, and where nothing is `wanted`, the event is never set.
    """
    stop = threading.Event()
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {which: signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)}

    def handle(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    for which in before:
        signal.signal(which, handle)
    try:
        yield stop
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)
