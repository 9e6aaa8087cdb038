"""PF, parameter space factorization: the method of the paper, with a low-rank or a diagonal covariance."""

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from crossfill.config import Config
from crossfill.encoders.base import Encoder
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.anchors import language_anchors
from crossfill.methods.factorized.generator import Generator
from crossfill.methods.factorized.posteriors import DiagonalPosterior, LowRankPosterior, Posterior
from crossfill.methods.registry import LanguageVectors, Method, Plan
from crossfill.model import Divergence, Head, HeadSource, Model, TrainingDraw


class FactorizedHeads(HeadSource):
    """t ~ q(t), l ~ q(l) (`posteriors`), θ ~ N(f_ψ(t, l), diag f_φ(t, l)) (`generator`).

    The prior of a language vector is N(a, I), where the anchor a is zero, as in the paper, unless `anchor` sets it.
    The posterior is over l − a, whose prior is N(0, I).
    """

    has_posterior = True
    anchors: Float[Tensor, "languages latent"]
    seen_rows: Bool[Tensor, "languages"]
    """Whether a language has a seen cell."""

    def __init__(self, inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> None:
        super().__init__()
        kind = DiagonalPosterior if config.method == "pf-d" else LowRankPosterior
        self.inventory = inventory
        self.tasks: Posterior = kind(len(inventory.tasks), config.latents)
        self.languages: Posterior = kind(len(inventory.languages), config.latents)
        self.generator = Generator(config.latents.size, inventory.head_shapes(n_features), config.generator)
        self.register_buffer("anchors", torch.zeros(len(inventory.languages), config.latents.size))
        self.latent_dropout = config.latents.dropout
        self.tied = config.objective.head_prior == "tied"
        tasks, languages = {cell.task for cell in seen}, {cell.language for cell in seen}
        for posterior, names, used in (
            (self.tasks, inventory.tasks, tasks),
            (self.languages, inventory.languages, languages),
        ):
            posterior.reset_to_prior(torch.tensor([i for i, n in enumerate(names) if n not in used], dtype=torch.long))
        seen_rows = torch.tensor([language in languages for language in inventory.languages])
        self.register_buffer("seen_rows", seen_rows, persistent=False)
        self.rows = (*self.tasks.parameters(), *self.languages.parameters())
        self.deviations = self.generator.deviations()

    @torch.no_grad()
    def anchor(self, anchors: Mapping[str, Float[np.ndarray, "latent"]]) -> None:
        """Centre the priors of these languages on the given vectors."""
        for language, vector in anchors.items():
            self.anchors[self.inventory.language_index(language)] = torch.from_numpy(vector)

    def language_means(self) -> Float[Tensor, "languages latent"]:
        """Return the posterior mean of every language vector."""
        return self.anchors + self.languages.mean

    @torch.no_grad()
    def language_scales(self) -> Float[Tensor, "languages 1"]:
        """Compute factors on draws of l − a: the prior's width for languages without a seen cell, which have the prior.

        The prior N(0, I) is much wider than languages are. The width w² that maximises the ELBO for the seen languages
        is the mean of their second moments (empirical Bayes), w² = mean of m² + δ² + Σⱼ bⱼ². An anchor that was placed
        by similarities k to others is shorter than theirs, |a|² = kᵀ K⁻¹ k: what it lacks, the variance of a Gaussian
        process at the language given the others, is spread over all dimensions and added.
        """
        scales = self.anchors.new_ones(len(self.anchors), 1)
        if self.seen_rows.any() and not self.seen_rows.all():
            mean, variance, factor = self.languages.moments(self.seen_rows.nonzero().squeeze(1))
            squares = (self.anchors**2).mean(1)
            lacking = (squares[self.seen_rows].mean() - squares[~self.seen_rows]).clamp(min=0.0)
            moment = (mean**2 + variance + (factor**2).sum(-1)).mean()
            scales[~self.seen_rows] = (moment + lacking).sqrt().clamp(max=1.0).unsqueeze(1)
        return scales

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        task_rows, language_rows = self._rows(cells)
        means = self.tasks.mean[task_rows].unsqueeze(0), self.language_means()[language_rows].unsqueeze(0)
        return [Head(head.mean) for head in self.generator(self._tasks(cells), *means)]

    def sample(self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None) -> list[Head]:
        task_rows, language_rows = self._rows(cells)
        tasks, task_of = task_rows.unique(return_inverse=True)  # one draw of t for all cells of a task
        languages, language_of = language_rows.unique(return_inverse=True)
        t = self.tasks.sample(tasks, n_samples, generator)[:, task_of]
        offsets = self.languages.sample(languages, n_samples, generator) * self.language_scales()[languages]
        l = (self.anchors[languages] + offsets)[:, language_of]
        return [head.sample(generator) for head in self.generator(self._tasks(cells), t, l)]

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        tasks, languages = self._rows(cells)
        t, l = self.tasks.sample(tasks, n_samples), self.languages.sample(languages, n_samples)
        if self.latent_dropout:
            from_prior = torch.rand(*l.shape[:2], 1, device=l.device) < self.latent_dropout
            l = torch.where(from_prior, torch.randn_like(l), l)
        heads = self.generator(self._tasks(cells), t, self.anchors[languages] + l)
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

    def _tasks(self, cells: Sequence[Cell]) -> list[int]:
        return [self.inventory.task_index(cell.task) for cell in cells]

    def _rows(self, cells: Sequence[Cell]) -> tuple[Int[Tensor, "cells"], Int[Tensor, "cells"]]:
        languages = [self.inventory.language_index(cell.language) for cell in cells]
        device = self.tasks.mean.device
        return torch.tensor(self._tasks(cells)).to(device), torch.tensor(languages).to(device)


def prepare(model: Model, plan: Plan, config: Config) -> None:
    """Centre the priors of language vectors on anchors if the config asks for it; the encoder is centred by now.

    Languages without a seen cell, of which there is only text, move no other language's anchor.
    """
    if config.latents.prior == "similar":
        seen = {cell.language for cell in plan.seen}
        known = [language for language in model.inventory.languages if language in seen]
        newcomers = [language for language in model.inventory.languages if language not in seen]
        _factorized(model.heads).anchor(language_anchors(known, model.encoder, config, newcomers))


def place_language(
    heads: HeadSource, languages: Sequence[str], newcomer: str, encoder: Encoder, config: Config
) -> None:
    """Centre the prior of a language that joins after training among those of similar languages."""
    if config.latents.prior == "similar":
        anchors = language_anchors(languages, encoder, config, [newcomer])
        _factorized(heads).anchor({newcomer: anchors[newcomer]})


def language_vectors(model: Model) -> LanguageVectors:
    """Return the posterior q(l) of every language."""
    heads = _factorized(model.heads)
    index = torch.arange(len(model.inventory.languages), device=heads.anchors.device)
    _, variance, factor = heads.languages.moments(index)
    scales = heads.language_scales()
    return LanguageVectors(heads.language_means().detach(), variance * scales**2, factor * scales.unsqueeze(-1))


def _factorized(heads: HeadSource) -> FactorizedHeads:
    return cast("FactorizedHeads", heads)


_ABILITIES = {"prepare": prepare, "add_language": place_language, "language_vectors": language_vectors}
METHODS = (
    Method("pf-lr", "factorised, low-rank covariance", FactorizedHeads, **_ABILITIES),
    Method("pf-d", "factorised, diagonal covariance", FactorizedHeads, **_ABILITIES),
)
