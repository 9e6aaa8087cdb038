"""An adapted cell: the posterior of its head given its own labelled sentences."""

from dataclasses import dataclass
from datetime import UTC, datetime

import torch
from jaxtyping import Int
from torch import Tensor

from crossfill.adaptation.cell_calibration import CellCalibration, calibrate_cell
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.fit import Fit
from crossfill.adaptation.gaussian import HeadPosterior, HeadPrior
from crossfill.adaptation.laplace import laplace
from crossfill.adaptation.prior import CellVariances, default_scales
from crossfill.grid.cells import Cell
from crossfill.grid.task import Task
from crossfill.prediction.calibration import TaskCalibration


@dataclass(frozen=True)
class AdaptedCell:
    """A cell with labelled sentences of its own, and the posterior of its head given them."""

    cell: Cell
    task: Task
    examples: Examples
    known: Int[Tensor, "known"]
    """The cues that it has learnt (`crossfill.encoders.cues`)."""
    posterior: HeadPosterior
    """Of weights, bias, and the effects of these cues."""
    variances: CellVariances
    """Of the prior: those of the task, adjusted by the evidence of the sentences."""
    calibration: CellCalibration
    """Relative to that of its task."""
    evidence: float
    """ln p(y | X) of the sentences."""
    date: str

    def __str__(self) -> str:
        n = len(self.examples)
        return f"adapted, {n} sentence{'s' if n > 1 else ''}"


@torch.no_grad()
def adapt_cell(
    generated: HeadPrior,
    examples: Examples,
    cell: Cell,
    task: Task,
    task_calibration: TaskCalibration | None = None,
    variances: CellVariances | None = None,
    calibration: CellCalibration | None = None,
) -> AdaptedCell:
    """Compute the posterior of a cell's head given labelled sentences.

    generated: The prior without any variance between cells (`crossfill.adaptation.heads.generated_prior`).
    task_calibration: The calibration of the cell's task, which that of the cell is relative to.
    variances: Those of the task; by default the ones for its kind.
    calibration: That of the cell, if it need not be computed, which takes most of the time.
    """
    variances = variances or default_scales(generated, task).variances(examples)
    fit = Fit.of(generated, examples, variances)
    posterior, evidence = laplace(fit.problem)
    return AdaptedCell(
        cell=cell,
        task=task,
        examples=examples,
        known=fit.known,
        posterior=posterior,
        variances=fit.variances,
        calibration=calibration or calibrate_cell(fit, task, task_calibration),
        evidence=evidence,
        date=datetime.now(UTC).date().isoformat(),
    )
