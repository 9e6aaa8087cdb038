"""What the generator's last layer leaves open: Laplace's approximation over its weights, in closed form after training.

    θ(cell) = w · z           each parameter of a task's heads; z = 1 ⊕ hidden(t, l) at the posterior means
    w ~ N(0, S)               prior variances s² of the biases, which the task's cells share, and of all other weights
    Var θ(z) = k(z, z) − k(z, Z) (K + H⁻¹)⁻¹ k(Z, z)          k(z, z′) = zᵀ S z′, K = k(Z, Z)

Z has a row for each seen cell of the task, and H is the diagonal of Fisher's information about θ in their training
words. So a head is doubtful where its vectors combine in a way that no seen cell has. Prior variances are those of the
largest evidence (MacKay's fixed point).
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

ROUNDS = 10
"""Rounds of MacKay's fixed point."""
LEAST_VARIANCE = 1e-10
CHUNK = 4096
"""Parameters whose matrices are held at once."""


class OutputDoubt(nn.Module):
    """The variance that each cell's head has for lack of seen cells like it."""

    def __init__(self, n_languages: int, n_labels: Sequence[int], n_inputs: Sequence[int]) -> None:
        super().__init__()
        for task, (labels, inputs) in enumerate(zip(n_labels, n_inputs, strict=True)):
            self.register_buffer(f"variance_{task}", torch.zeros(n_languages, labels, inputs))
            self.register_buffer(f"basis_{task}", torch.zeros(inputs, inputs))

    def variance(self, task: int) -> Float[Tensor, "languages labels inputs"]:
        """The variance of each parameter of the task's heads in its basis."""
        return self.get_buffer(f"variance_{task}")

    def basis(self, task: int) -> Float[Tensor, "inputs inputs"]:
        """The basis in which parameters are independent of each other."""
        return self.get_buffer(f"basis_{task}")

    def sample(
        self, task: int, language: int, n_samples: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "samples labels inputs"]:
        """Draws of what a cell's head differs by."""
        variance = self.variance(task)[language]
        shape = (n_samples, *variance.shape)
        noise = torch.randn(shape, dtype=variance.dtype, device=variance.device, generator=generator)
        return (noise * variance.sqrt()) @ self.basis(task).T


@torch.no_grad()
def open_variance(
    design: Float[Tensor, "cells weights"],
    seen: Int[Tensor, "seen"],
    information: Float[Tensor, "seen parameters"],
    squares: Float[Tensor, "2"],
) -> Float[Tensor, "cells parameters"]:
    """Var θ of every cell; `design` is z, its first column 1, and `squares` are |w|² of biases and of other weights."""
    variances = prior_variances(design[seen], information, squares)
    known, own = _kernel(design, design[seen], variances), _kernel(design, design, variances).diagonal()
    parts = [
        own[:, None] - torch.einsum("cj,pjk,ck->cp", known, _inverse(known[seen], part), known)
        for part in information.split(CHUNK, dim=1)
    ]
    return torch.cat(parts, dim=1).clamp(min=0.0)


def prior_variances(
    design: Float[Tensor, "seen weights"], information: Float[Tensor, "seen parameters"], squares: Float[Tensor, "2"]
) -> Float[Tensor, "2"]:
    """MacKay's fixed point s² = |w|² / γ for both prior variances, γ = Σ tr((K + H⁻¹)⁻¹ K of these weights)."""
    n_parameters, n_weights = information.shape[1], design.shape[1]
    counts = squares.new_tensor([n_parameters, n_parameters * (n_weights - 1)])
    variances = (squares / counts).clamp(min=LEAST_VARIANCE)
    for _ in range(ROUNDS):
        kernels = [_kernel(design, design, variances * squares.new_tensor(kept)) for kept in ([1.0, 0.0], [0.0, 1.0])]
        total = sum(_inverse(kernels[0] + kernels[1], part).sum(0) for part in information.split(CHUNK, dim=1))
        determined = torch.stack([(torch.as_tensor(total) * kernel).sum() for kernel in kernels])
        variances = (squares / determined.clamp(min=1e-6)).clamp(min=LEAST_VARIANCE)
    return variances


def _kernel(
    one: Float[Tensor, "m weights"], other: Float[Tensor, "n weights"], variances: Float[Tensor, "2"]
) -> Float[Tensor, "m n"]:
    """k(z, z′) = s² of biases + s² of other weights times the inner product of what is beside the 1."""
    return variances[0] * one[:, :1] @ other[:, :1].T + variances[1] * one[:, 1:] @ other[:, 1:].T


def _inverse(kernel: Float[Tensor, "seen seen"], information: Float[Tensor, "seen parameters"]) -> Tensor:
    """(K + H⁻¹)⁻¹ = R (I + R K R)⁻¹ R, R² = H, for each parameter: well-conditioned, however small H is."""
    root = information.T.clamp(min=0).sqrt()
    eye = torch.eye(len(kernel), dtype=kernel.dtype, device=kernel.device)
    middle = torch.linalg.cholesky(eye + root[:, :, None] * kernel * root[:, None, :])
    return root[:, :, None] * torch.cholesky_inverse(middle) * root[:, None, :]
