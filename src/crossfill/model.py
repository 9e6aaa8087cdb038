"""The model on one page: an encoder, and heads that are made from task and language vectors."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.generator import Classifier, Generator, Head
from crossfill.grid import Cell, Inventory, Unit
from crossfill.posteriors import DiagonalPosterior, LowRankPosterior, Posterior


class Divergence(NamedTuple):
    """One KL term of the ELBO, and the unit that had to be drawn for a step to compute it."""

    value: Float[Tensor, ""]
    unit: Unit


class TrainingDraw(NamedTuple):
    """A seen cell's head, drawn for a training step, and what it costs."""

    head: Classifier
    divergences: list[Divergence]


Vote = Callable[[Int[Tensor, "voters words"], int], Float[Tensor, "words labels"]]
"""From each voter's label of each word, and the number of labels, to probabilities of the true label."""


class HeadSource(nn.Module, ABC):
    """Where the heads of cells come from: this is all in which methods differ."""

    vote: Vote | None = None
    """How several draws of a head become one prediction; none averages their probabilities."""

    @abstractmethod
    def plug_in(self, cells: Sequence[Cell]) -> Sequence[Classifier]:
        """The head of each cell at the posterior means: one draw, or one for each voter."""

    @abstractmethod
    def sample(self, cells: Sequence[Cell], n_samples: int) -> Sequence[Classifier]:
        """Posterior draws of the head of each cell; methods without a posterior give what `plug_in` gives."""

    @abstractmethod
    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        """Re-parametrised draws of the head of each cell, with the KL terms that the cell is part of."""


class FactorizedHeads(HeadSource):
    """Parameter space factorization: t ~ q(t), l ~ q(l), θ ~ N(f_ψ(t, l), diag f_φ(t, l)).

    A language's prior is N(a, I): its anchor a is zero (the paper's prior) until `anchor` says otherwise. What the
    posterior holds is l − a, taken against N(0, I).
    """

    anchors: Float[Tensor, "languages latent"]

    def __init__(self, inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> None:
        super().__init__()
        kind = DiagonalPosterior if config.method == "pf-d" else LowRankPosterior
        self.inventory = inventory
        self.tasks: Posterior = kind(len(inventory.tasks), config.latents)
        self.languages: Posterior = kind(len(inventory.languages), config.latents)
        n_labels = [len(labels) for labels in inventory.labels.values()]
        self.generator = Generator(config.latents.size, n_features, n_labels, config.generator)
        self.register_buffer("anchors", torch.zeros(len(inventory.languages), config.latents.size))
        self.latent_dropout = config.latents.dropout
        self.tied = config.objective.head_prior == "tied"
        for posterior, names, used in (
            (self.tasks, inventory.tasks, {cell.task for cell in seen}),
            (self.languages, inventory.languages, {cell.language for cell in seen}),
        ):
            posterior.reset_to_prior(torch.tensor([i for i, n in enumerate(names) if n not in used], dtype=torch.long))

    @torch.no_grad()
    def anchor(self, anchors: Mapping[str, Float[np.ndarray, "latent"]]) -> None:
        """Centre the priors of these languages here."""
        for language, vector in anchors.items():
            self.anchors[self.inventory.language_index(language)] = torch.from_numpy(vector)

    def language_means(self) -> Float[Tensor, "languages latent"]:
        """The posterior mean of every language vector."""
        return self.anchors + self.languages.mean

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        task_rows, language_rows = self._rows(cells)
        means = self.tasks.mean[task_rows].unsqueeze(0), self.language_means()[language_rows].unsqueeze(0)
        return [Head(head.mean) for head in self.generator(task_rows.tolist(), *means)]

    def sample(self, cells: Sequence[Cell], n_samples: int) -> list[Head]:
        task_rows, language_rows = self._rows(cells)
        tasks, task_of = task_rows.unique(return_inverse=True)  # one draw of t for all cells of a task
        languages, language_of = language_rows.unique(return_inverse=True)
        t = self.tasks.sample(tasks, n_samples)[:, task_of]
        l = (self.anchors[languages] + self.languages.sample(languages, n_samples))[:, language_of]
        return [head.sample() for head in self.generator(task_rows.tolist(), t, l)]

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        tasks, languages = self._rows(cells)
        t, l = self.tasks.sample(tasks, n_samples), self.languages.sample(languages, n_samples)
        if self.latent_dropout:
            from_prior = torch.rand(*l.shape[:2], 1, device=l.device) < self.latent_dropout
            l = torch.where(from_prior, torch.randn_like(l), l)
        heads = self.generator(tasks.tolist(), t, self.anchors[languages] + l)
        task_kl = self.tasks.kl(tasks).expand(len(cells))
        language_kl = self.languages.kl(languages).expand(len(cells))
        draws = []
        for i, head in enumerate(heads):
            divergences = [
                Divergence(task_kl[i], "task" if self.tasks.independent else "all"),
                Divergence(language_kl[i], "language" if self.languages.independent else "all"),
            ]
            if not self.tied:
                divergences.append(Divergence(head.kl().mean(), "cell"))
            draws.append(TrainingDraw(head.sample(), divergences))
        return draws

    def _rows(self, cells: Sequence[Cell]) -> tuple[Int[Tensor, "cells"], Int[Tensor, "cells"]]:
        tasks = [self.inventory.task_index(cell.task) for cell in cells]
        languages = [self.inventory.language_index(cell.language) for cell in cells]
        device = self.tasks.mean.device
        return torch.tensor(tasks, device=device), torch.tensor(languages, device=device)


class Model(nn.Module):
    """p(y | x, cell) = softmax(W x + b): x from the encoder, [W b] from the cell's head."""

    def __init__(self, encoder: Encoder, heads: HeadSource, inventory: Inventory, seen: Collection[Cell]) -> None:
        super().__init__()
        self.encoder, self.heads = encoder, heads
        self.inventory, self.seen = inventory, frozenset(seen)
