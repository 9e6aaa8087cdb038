"""An adapted cell: the posterior of its head given its own labelled sentences."""

from dataclasses import dataclass
from datetime import UTC, datetime

import torch
from jaxtyping import Int
from torch import Tensor

from crossfill.adaptation.examples import Examples
from crossfill.adaptation.features import affine
from crossfill.adaptation.fit import Fit
from crossfill.adaptation.gaussian import HeadPosterior, HeadPrior
from crossfill.adaptation.laplace import laplace
from crossfill.adaptation.own import Own, own_of
from crossfill.adaptation.widths import Width, default_width, fresh_width, mean_square
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.task import Task, Unit
from crossfill.model import Classifier, Head, HeadSource, Model
from crossfill.prediction.calibration import TaskCalibration

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
    """The cues that it knows by heart (`crossfill.adaptation.words`)."""
    posterior: HeadPosterior
    """Of weights, bias, and the effects of these cues."""
    width: Width
    """Widths of the prior: those of the task, adjusted by the evidence of the sentences."""
    own: Own
    """Its temperature and where its decisions lie, relative to its task."""
    evidence: float
    """ln p(y | X) of the sentences."""
    date: str
    unit: Unit = Unit.WORD
    """What its task labels."""

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
    calibration: TaskCalibration | None = None,
    own: Own | None = None,
    unit: Unit = Unit.WORD,
) -> AdaptedCell:
    """The posterior of a cell's head, given labelled sentences and the heads of the model before any adaptation.

    `labels`, `calibration` and `unit` are those of the task, `width` is its width, by default the one for its kind.
    What is the cell's own is found by leaving sentences out, most of the work, unless it is given.
    """
    if heads.vote is not None:
        raise DataError(f"{cell}: expected a method with one head per cell, got one that votes; adapt an ns model")
    plug_in, draws = _generated(heads, cell)
    body, head = affine(plug_in)
    seen = examples.through(body)
    fit = Fit.of(HeadPrior.of(head, draws), seen, width or likely_width(head, seen, labels))
    found = laplace(fit.problem)
    return AdaptedCell(
        cell=cell,
        labels=labels,
        examples=examples,
        lexicon=fit.design.lexicon,
        posterior=found.posterior,
        width=fit.width,
        own=own or own_of(fit, Task(cell.task, labels, unit), calibration),
        evidence=found.evidence,
        date=datetime.now(UTC).date().isoformat(),
        unit=unit,
    )


def likely_width(head: Head, examples: Examples, labels: tuple[str, ...]) -> Width:
    """The widths around a head; a head of zeros knows nothing yet."""
    size = mean_square(examples)
    return default_width(size, labels) if bool(head.parameters.any()) else fresh_width(size)


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
