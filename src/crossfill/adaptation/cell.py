"""An adapted cell: the posterior of its head given its own labelled sentences."""

from dataclasses import dataclass
from datetime import UTC, datetime

import torch

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import affine, with_ones
from crossfill.adaptation.gaussian import HeadPosterior, HeadPrior
from crossfill.adaptation.laplace import Problem, laplace
from crossfill.adaptation.likelihood import Categorical
from crossfill.adaptation.temperature import left_out, shrunk_temperature
from crossfill.adaptation.widths import Width, default_width
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.model import Classifier, Head, HeadSource, Model

DRAWS = 64
"""Draws of a generated head that its covariance is taken from."""


@dataclass(frozen=True)
class AdaptedCell:
    """A cell with labelled sentences of its own, and the posterior of its head given them."""

    cell: Cell
    labels: tuple[str, ...]
    """The labels of its task, in the order of the head's rows."""
    examples: Examples
    posterior: HeadPosterior
    between: float
    """τ² of the prior."""
    width_cells: int
    """Held-out cells that the task's τ² was estimated on; 0 if it was the default."""
    temperature: float
    """Relative to that of the task: probabilities of the cell are scaled by the product of both."""
    evidence: float
    """ln p(y | X) of the sentences."""
    date: str

    def __str__(self) -> str:
        n = len(self.examples)
        return f"adapted, {n} sentence{'s' if n > 1 else ''}"


@torch.no_grad()
def adapt_cell(
    heads: HeadSource, examples: Examples, cell: Cell, width: Width | None = None, temperature: float = 1.0
) -> AdaptedCell:
    """The posterior of a cell's head, given labelled sentences and the heads of the model before any adaptation.

    `width` is that of the task, by default the one for tasks of which nothing is known; `temperature` is the task's.
    """
    if heads.vote is not None:
        raise DataError(f"{cell}: expected a method with one head per cell, got one that votes; adapt an ns model")
    plug_in, draws = _generated(heads, cell)
    body, head = affine(plug_in)
    features = with_ones(body(examples.features.to(head.parameters)) if body else examples.features)
    width = width or default_width(float((features**2).sum(1).mean()))
    between = width.at(len(examples))
    prior = HeadPrior.of(head, draws).widened(between)
    found = laplace(Problem(prior, Categorical(examples.labels), features))
    logs = left_out(prior, examples, features, found.mode)
    own = shrunk_temperature(logs.numpy(), examples.labels.numpy(), temperature)
    return AdaptedCell(
        cell=cell,
        examples=examples,
        posterior=found.posterior,
        between=between,
        width_cells=width.cells,
        temperature=own / temperature,
        evidence=found.evidence,
        date=datetime.now(UTC).date().isoformat(),
    )


@torch.no_grad()
def generated_prior(model: Model, cell: Cell) -> HeadPrior:
    """The prior of a cell's head before any width is added."""
    plug_in, draws = _generated(model.heads, cell)
    return HeadPrior.of(affine(plug_in)[1], draws)


def _generated(heads: HeadSource, cell: Cell) -> tuple[Classifier, Head | None]:
    """The cell's head at the posterior means, and draws of it where they differ; always the same."""
    plug_in = heads.plug_in([cell])[0]
    if not heads.has_posterior:
        return plug_in, None
    device = next(heads.parameters()).device
    drawn = heads.sample([cell], DRAWS, torch.Generator(device).manual_seed(0))[0]
    return plug_in, Head(drawn.parameters.cpu()) if isinstance(drawn, Head) else None
