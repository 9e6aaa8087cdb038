"""One loop for every method: draw a cell, take a step down the negative ELBO, validate on seen cells, keep the best."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from crossfill import checkpoint
from crossfill.config import Config
from crossfill.data.batching import CellSampler, CellSize, Draw
from crossfill.elbo import KlWeight, Objective, log_likelihood, negative_elbo, total_divergence
from crossfill.encoders.base import Encoder, Inputs, ranges
from crossfill.errors import CheckpointError, DataError, TrainingError
from crossfill.grid import Cell, Grid, Inventory
from crossfill.metrics import score
from crossfill.model import Model
from crossfill.optimisers import Optimisers
from crossfill.predict import predict
from crossfill.progress import ProgressBar
from crossfill.sentence import Corpus


@dataclass(frozen=True)
class Labelled:
    """A corpus of a cell, ready for the encoder, with the labels of its words."""

    inputs: Inputs
    labels: Int[Tensor, "words"]

    def take(self, sentences: Int[Tensor, "chosen"]) -> "Labelled":
        """These sentences only."""
        lengths = self.inputs.lengths
        words = ranges((lengths.cumsum(0) - lengths)[sentences], lengths[sentences])
        return Labelled(self.inputs.take(sentences), self.labels[words])


def prepare(encoder: Encoder, inventory: Inventory, cell: Cell, corpus: Corpus) -> Labelled:
    """A corpus made ready for a cell."""
    labels = torch.from_numpy(inventory.label_ids(cell.task, corpus.labels))
    if len(labels) != corpus.n_words:
        raise DataError(f"{cell}: expected a label for each of {corpus.n_words} words, got {len(labels)}")
    return Labelled(encoder.prepare(corpus), labels)


def prepare_grid(model: Model, grid: Grid) -> tuple[dict[Cell, Labelled], dict[Cell, Labelled]]:
    """Training and development data of the model's seen cells."""
    training = {cell: grid.training(cell) for cell in sorted(model.seen)}
    development = {cell: grid.development(cell) for cell in sorted(model.seen)}
    empty = [str(cell) for cell, corpus in training.items() if not len(corpus)]
    if empty:
        raise DataError(f"expected training sentences in every seen cell, got none in {', '.join(empty)}")
    train, dev = (
        {cell: prepare(model.encoder, model.inventory, cell, corpus) for cell, corpus in part.items() if len(corpus)}
        for part in (training, development)
    )
    return train, dev


@dataclass
class Progression:
    """Where a run stands."""

    step: int = 0
    best_score: float = -math.inf
    best_step: int = 0
    worse: int = 0
    """Validations since the best one."""
    finished: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)
    """One entry a validation: step, mean nll, kl and loss since the last, and scores."""


class Trainer:
    """A run: a model, its data, and where it stands."""

    def __init__(
        self,
        model: Model,
        train: Mapping[Cell, Labelled],
        dev: Mapping[Cell, Labelled],
        config: Config,
        out: Path | None = None,
    ) -> None:
        self.model, self.train_data, self.dev_data, self.config, self.out = model, train, dev, config, out
        sizes = {c: CellSize(len(d.inputs.lengths), len(d.labels)) for c, d in train.items()}
        settings = config.training
        self.sampler = CellSampler(sizes, settings.batch_sentences, config.objective.cell_sampling, settings.seed)
        self.kl_weight = KlWeight(config.objective, self.sampler.n_words, self.sampler.n_batches, settings.steps)
        self.optimisers = Optimisers(model, settings)
        self.progression = Progression()
        self.recent: list[tuple[float, float, float]] = []
        self.description = checkpoint.describe(config, model.inventory, model.seen)

    def run(self, resume: bool = False, quiet: bool = True) -> Progression:
        """Train to the end; the model then has the weights of the best validation."""
        settings = self.config.training
        torch.manual_seed(settings.seed)
        if self.out is not None:
            self._open(self.out, resume)
        at = self.progression
        with ProgressBar(self.config.method, settings.steps, at.step, quiet) as bar:
            while not at.finished:
                self._advance()
                bar.update(at.step, self._note())
        self._load_best()
        return at

    def objective(self, draw: Draw) -> Objective:
        """The estimate of the negative ELBO that a draw gives."""
        batch = self.train_data[draw.cell].take(torch.from_numpy(draw.sentences))
        features = self.model.encoder(batch.inputs)
        head, divergences = self.model.heads.training_draw(draw.cell, self.config.objective.samples)
        likelihoods = log_likelihood(head.log_probabilities(features), batch.labels)
        divergence = total_divergence(divergences, lambda unit: self.sampler.probability(unit, draw.cell))
        return negative_elbo(likelihoods, divergence, draw.expected_words, self.kl_weight(self.progression.step))

    def validate(self) -> dict[str, float]:
        """Plug-in scores on dev data of seen cells: the mean over cells for each task, and over tasks."""
        found: dict[str, list[float]] = {}
        for cell, data in self.dev_data.items():
            predicted = predict(self.model, data.inputs, cell, n_samples=0).labels.numpy()
            labels, lengths = self.model.inventory.labels[cell.task], data.inputs.lengths.numpy()
            found.setdefault(cell.task, []).append(score(data.labels.numpy(), predicted, labels, lengths))
        scores = {task: float(np.mean(values)) for task, values in found.items()}
        return scores | {"mean": float(np.mean(list(scores.values())))} if scores else {}

    def _advance(self) -> None:
        """One step, with whatever is due after it."""
        at, settings = self.progression, self.config.training
        self.model.train()
        draw = self.sampler.draw(at.step)
        objective = self.objective(draw)
        values = (objective.nll.item(), objective.kl.item(), objective.loss.item())
        if not all(map(math.isfinite, values)):
            raise TrainingError(self._not_finite(draw, values))
        self.recent.append(values)
        objective.loss.backward()
        self.optimisers.step(at.step)
        at.step += 1
        last = at.step >= settings.steps
        if last or at.step % settings.validate_every == 0:
            self._keep_if_best(self.validate())
            at.finished = last or at.worse >= settings.patience
        if self.out is not None and (at.finished or at.step % settings.checkpoint_every == 0):
            self._save_state(self.out)

    def _keep_if_best(self, scores: dict[str, float]) -> None:
        at = self.progression
        nll, kl, loss = np.mean(self.recent, axis=0).tolist()
        at.history.append({"step": at.step, "nll": nll, "kl": kl, "loss": loss, "scores": scores})
        self.recent.clear()
        value = scores.get("mean", math.inf)  # with no dev data at all, the last weights count as the best
        if value > at.best_score or not scores:
            at.best_score, at.best_step, at.worse = value, at.step, 0
            self._save_best()
        else:
            at.worse += 1

    def _save_best(self) -> None:
        weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        if self.out is None:
            self.best = weights
        else:
            checkpoint.write_tensors(self.out / checkpoint.WEIGHTS, weights, {"step": self.progression.best_step})

    def _load_best(self) -> None:
        if self.out is None:
            self.model.load_state_dict(self.best)
        else:
            path = self.out / checkpoint.WEIGHTS
            checkpoint.load_weights(self.model, checkpoint.read_tensors(path)[0], path)
        self.model.eval()

    def _open(self, out: Path, resume: bool) -> None:
        """Start a run folder, or take up the run that is in it."""
        out.mkdir(parents=True, exist_ok=True)
        checkpoint.remove_leftovers(out)
        if resume and (out / checkpoint.STATE).exists():
            self._load_state(out)
        else:
            (out / checkpoint.STATE).unlink(missing_ok=True)
            checkpoint.write_json(out / checkpoint.DESCRIPTION, self.description)

    def _save_state(self, out: Path) -> None:
        at = self.progression
        tensors = {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"optimiser/{name}": tensor for name, tensor in self.optimisers.state().items()}
        tensors |= {"sampler/drawn": torch.from_numpy(self.sampler.drawn), "rng": torch.get_rng_state()}
        notes = {"description": self.description, "progression": asdict(at), "recent": self.recent}
        checkpoint.write_tensors(out / checkpoint.STATE, tensors, notes)
        checkpoint.write_json(out / checkpoint.HISTORY, at.history)

    def _load_state(self, out: Path) -> None:
        path = out / checkpoint.STATE
        tensors, notes = checkpoint.read_tensors(path)
        if notes.get("description") != self.description:
            raise CheckpointError(f"{path}: this run was started with other settings or data; use another folder")
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimiser": {}}
        for name, tensor in tensors.items():
            group, _, rest = name.partition("/")
            if group in parts:
                parts[group][rest] = tensor
        checkpoint.load_weights(self.model, parts["model"], path)
        self.optimisers.restore(parts["optimiser"])
        self.sampler.drawn[:] = tensors["sampler/drawn"].numpy()
        torch.set_rng_state(tensors["rng"])
        self.progression = Progression(**notes["progression"])
        self.recent = [(nll, kl, loss) for nll, kl, loss in notes["recent"]]

    def _note(self) -> str:
        nll, kl, loss = self.recent[-1] if self.recent else (math.nan,) * 3
        best = f" best {100 * self.progression.best_score:.1f}" if self.progression.history else ""
        return f"loss {loss:.3f} nll {nll:.3f} kl {kl:.0f}{best}"

    def _not_finite(self, draw: Draw, values: tuple[float, float, float]) -> str:
        nll, kl, _ = values
        saved = "none was written"
        if self.out is not None and (self.out / checkpoint.STATE).exists():
            step = checkpoint.read_tensors(self.out / checkpoint.STATE)[1]["progression"]["step"]
            saved = f"{self.out / checkpoint.STATE} (step {step})"
        return (
            f"expected a finite loss, got nll {nll} and kl {kl} in cell {draw.cell} at step {self.progression.step}; "
            f"last good checkpoint: {saved}; lower training.learning_rate or look at that cell's data"
        )
