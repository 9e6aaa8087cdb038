"""GP: the heads of jm-kernel with a posterior, a Gaussian process over languages for each parameter of a task's head.

    θ = θ_task + Σᵢ vᵢ Dᵢ          v of the language, given; Dᵢ ~ N(0, s²), so that Cov(θ, θ′) = s² v · v′
    Λ = S⁻¹ + Σ h(cell) ṽ ṽᵀ       precision of one parameter's (θ_task, D); ṽ = 1 ⊕ v of the cell's language
    Var(θ) = ṽᵀ Λ⁻¹ ṽ

Weights are trained as jm-kernel's are; then one pass over the training words gives the posterior in closed form
(Laplace's approximation with Fisher's information h). Parameters are taken as independent of each other in a basis in
which the task's features are uncorrelated. The prior variances S, of what languages share and of what they do not, are
those of the largest evidence (MacKay's fixed point). So a head is as sure as the words of its language and of similar
ones make it: its variance falls with data, and a language without any keeps what its neighbours leave open.
"""

from collections.abc import Collection, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from crossfill.config import Config
from crossfill.encoders.base import Inputs
from crossfill.grid.cells import Cell, Inventory
from crossfill.methods.baselines.described import describe
from crossfill.methods.baselines.joint_kernel import KernelHeads
from crossfill.methods.fisher import encoded, information, uncorrelated
from crossfill.methods.method import Method, Plan
from crossfill.model import Head, HeadSource, Model, TrainingDraw

ROUNDS = 20
"""Rounds of MacKay's fixed point; prior variances change by less than a per cent after some ten."""
LEAST_VARIANCE = 1e-10


class GaussianProcessHeads(HeadSource):
    """The heads of jm-kernel, and the variance of each of their parameters."""

    has_posterior = True
    prior_variances: Float[Tensor, "tasks 2"]
    """Of what the languages of a task share, and of what they do not."""

    def __init__(self, inventory: Inventory, n_features: int, size: int) -> None:
        super().__init__()
        self.inventory = inventory
        self.kernel = KernelHeads(inventory, n_features, size)
        self.deviations = self.kernel.deviations
        for task, (labels, width) in enumerate(inventory.head_shapes(n_features)):
            self.register_buffer(f"variance_{task}", torch.zeros(len(inventory.languages), labels, width + 1))
            self.register_buffer(f"basis_{task}", torch.zeros(width + 1, width + 1))
        self.register_buffer("prior_variances", torch.zeros(len(inventory.tasks), 2))

    def plug_in(self, cells: Sequence[Cell]) -> list[Head]:
        return self.kernel.plug_in(cells)

    def sample(self, cells: Sequence[Cell], n_samples: int, generator: torch.Generator | None = None) -> list[Head]:
        return [self._drawn(cell, n_samples, generator) for cell in cells]

    def training_draw(self, cells: Sequence[Cell], n_samples: int) -> list[TrainingDraw]:
        return self.kernel.training_draw(cells, n_samples)

    def variance(self, cell: Cell) -> Float[Tensor, "labels inputs"]:
        """The variance of each parameter of a cell's head, in the basis of its task; the bias counts as an input."""
        task = self.inventory.task_index(cell.task)
        return self.get_buffer(f"variance_{task}")[self.inventory.language_index(cell.language)]

    @torch.no_grad()
    def fit(self, task: str, features: Mapping[str, Sequence[Float[Tensor, "_ inputs"]]]) -> None:
        """The posterior of a task's heads, given the features, and a 1, of each seen language's training words."""
        row = self.inventory.task_index(task)
        basis = uncorrelated([part for parts in features.values() for part in parts])
        vectors = torch.cat([torch.ones_like(self.kernel.vectors[:, :1]), self.kernel.vectors], 1)
        heads = [head.parameters[0] for head in self.kernel.plug_in([Cell(task, name) for name in features])]
        pairs = zip(heads, features.values(), strict=True)
        curvatures = torch.stack([information(head, parts, basis) for head, parts in pairs])
        seen = vectors[[self.inventory.language_index(name) for name in features]]
        precision = torch.einsum("cp,ci,cj->pij", curvatures.flatten(1), seen, seen)
        shared, slopes = Head.of(self.kernel.shared[row]).parameters[0], self.kernel.slopes[row]
        variances, covariance = evidence(precision, shared.square().sum(), slopes.square().sum())
        found = torch.einsum("li,pij,lj->lp", vectors, covariance, vectors)
        self.get_buffer(f"variance_{row}").copy_(found.reshape(len(vectors), *shared.shape))
        self.get_buffer(f"basis_{row}").copy_(basis)
        self.prior_variances[row] = variances

    def _drawn(self, cell: Cell, n_samples: int, generator: torch.Generator | None) -> Head:
        """θ + ε Uᵀ, ε ~ N(0, variance) in the basis U."""
        (mean,), variance = self.kernel.plug_in([cell]), self.variance(cell)
        shape = (n_samples, *variance.shape)
        noise = torch.randn(shape, dtype=variance.dtype, device=variance.device, generator=generator)
        basis = self.get_buffer(f"basis_{self.inventory.task_index(cell.task)}")
        return Head(mean.parameters + (noise * variance.sqrt()) @ basis.T)


def evidence(
    information: Float[Tensor, "parameters inputs inputs"],
    shared: Float[Tensor, ""],
    deviations: Float[Tensor, ""],
) -> tuple[Float[Tensor, "2"], Float[Tensor, "parameters inputs inputs"]]:
    """MacKay's fixed point s² = |w|² / γ, γ = Σ (1 − Λ⁻¹ᵢᵢ / s²), for both prior variances; and Λ⁻¹ with them.

    `shared` and `deviations` are the sums of squares |w|² of the weights that languages share and of the others.
    """
    n_parameters, size, _ = information.shape
    squares = torch.stack([shared, deviations])
    counts = squares.new_tensor([n_parameters, n_parameters * (size - 1)])
    variances = (squares / counts).clamp(min=LEAST_VARIANCE)
    for _ in range(ROUNDS):
        left = _covariance(information, variances).diagonal(dim1=-2, dim2=-1).sum(0)
        determined = counts - torch.stack([left[0] / variances[0], left[1:].sum() / variances[1]])
        variances = (squares / determined.clamp(min=1e-6)).clamp(min=LEAST_VARIANCE)
    return variances, _covariance(information, variances)


def _covariance(
    information: Float[Tensor, "parameters inputs inputs"], variances: Float[Tensor, "2"]
) -> Float[Tensor, "parameters inputs inputs"]:
    """Λ⁻¹ = R (I + R H R)⁻¹ R, R² the prior variances: never ill-conditioned, however small these are."""
    size = information.shape[-1]
    root = torch.cat([variances[:1], variances[1:].expand(size - 1)]).sqrt()
    precision = torch.eye(size, dtype=root.dtype, device=root.device) + root[:, None] * information * root
    return root[:, None] * torch.cholesky_inverse(torch.linalg.cholesky(precision)) * root


def build(inventory: Inventory, seen: Collection[Cell], n_features: int, config: Config) -> GaussianProcessHeads:
    """Heads without a posterior yet, with vectors of `latents.size` numbers."""
    return GaussianProcessHeads(inventory, n_features, config.latents.size)


def settle(model: Model, plan: Plan, config: Config) -> None:
    """Look up the vectors of all languages."""
    describe(_heads(model).kernel, model.encoder, config)


def finish(model: Model, inputs: Mapping[Cell, Inputs]) -> None:
    """Fit the posterior to the training words of all seen cells."""
    heads = _heads(model)
    for task in model.inventory.tasks:
        own = {cell.language: list(encoded(model, part, task)) for cell, part in inputs.items() if cell.task == task}
        if own:
            heads.fit(task, own)


def _heads(model: Model) -> GaussianProcessHeads:
    if not isinstance(model.heads, GaussianProcessHeads):
        raise TypeError(f"expected heads with a Gaussian process, got {type(model.heads).__name__}")
    return model.heads


METHODS = (Method("gp", "Gaussian process over languages", build, settle=settle, finish=finish, needs_typology=True),)
