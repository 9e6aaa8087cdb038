"""An adapted cell: the posterior of its head given its own labelled sentences."""

from dataclasses import dataclass
from datetime import UTC, datetime

import torch
from jaxtyping import Int
from torch import Tensor

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import Body, Design, affine
from crossfill.adaptation.gaussian import HeadPosterior, HeadPrior
from crossfill.adaptation.laplace import Problem, laplace
from crossfill.adaptation.likelihood import Categorical
from crossfill.adaptation.shifts import shift_of_none
from crossfill.adaptation.temperature import left_out, shrunk_temperature
from crossfill.adaptation.widths import Width, default_width, fresh_width, mean_square
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
    lexicon: Int[Tensor, "known"]
    """The words that it knows by heart."""
    posterior: HeadPosterior
    """Of weights, bias, and the effects of these words."""
    width: Width
    """Widths of the prior."""
    shift: float
    """Offset of decisions on the label that means none, which keeps them where they were (`prediction.rules`)."""
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
    heads: HeadSource,
    examples: Examples,
    cell: Cell,
    labels: tuple[str, ...],
    width: Width | None = None,
    temperature: float = 1.0,
    relative: float | None = None,
) -> AdaptedCell:
    """The posterior of a cell's head, given labelled sentences and the heads of the model before any adaptation.

    `labels` are those of the task, `width` is its width, by default the one for its kind of task; `temperature` is the
    task's. The cell's own, `relative` to it, is found by leaving sentences out, most of the work, unless it is given.
    """
    if heads.vote is not None:
        raise DataError(f"{cell}: expected a method with one head per cell, got one that votes; adapt an ns model")
    plug_in, draws = _generated(heads, cell)
    body, head = affine(plug_in)
    width = width or likely_width(head, examples, body, labels)
    design = Design.of(_on(body, head), examples.features, learn_words=width.words > 0)
    features = design(examples.features)
    prior = width.prior(HeadPrior.of(head, draws), len(design.lexicon))
    found = laplace(Problem(prior, Categorical(examples.labels), features))
    if relative is None:
        logs = left_out(prior, examples, features)
        relative = shrunk_temperature(logs.numpy(), examples.labels.numpy(), temperature) / temperature
    return AdaptedCell(
        cell=cell,
        labels=labels,
        examples=examples,
        lexicon=design.lexicon,
        posterior=found.posterior,
        width=width,
        shift=shift_of_none(head.parameters[0].cpu(), found.posterior.mean, labels),
        temperature=relative,
        evidence=found.evidence,
        date=datetime.now(UTC).date().isoformat(),
    )


def likely_width(head: Head, examples: Examples, body: Body | None, labels: tuple[str, ...]) -> Width:
    """The widths around a head where none were estimated; a head of zeros knows nothing yet."""
    size = mean_square(examples, _on(body, head))
    return default_width(size, labels) if bool(head.parameters.any()) else fresh_width(size)


def _on(body: Body | None, head: Head) -> Body | None:
    """The layers below a head, for features of any precision."""
    return None if body is None else lambda features: body(features.to(head.parameters))


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
