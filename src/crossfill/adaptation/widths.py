"""How far the heads of a task's cells lie from what is generated for them: the widths of the prior between cells.

    θ of a cell ~ N(generated θ, covariance of its draws + diag(τ², …, τ², β², ω², …, ω²))

τ² is the variance of a weight, β² that of the bias, ω² that of the effect of a word that is known by heart.
The widths of a task are estimated on cells that were held out in turn (`crossfill.adaptation.held_out`); without such
an estimate they are defaults.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from crossfill import checkpoint
from crossfill.adaptation.examples import Examples
from crossfill.adaptation.gaussian import HeadPrior
from crossfill.errors import CheckpointError
from crossfill.files import write_json
from crossfill.measures.metrics import TaskKind

SPREAD = 0.3
"""The spread of cells where none was estimated. Chosen on held-out cells (docs/adapt.md)."""


@dataclass(frozen=True)
class Width:
    """Variances between the cells of a task."""

    weights: float
    """τ²."""
    bias: float
    """β²."""
    words: float
    """ω²; 0 learns no word by heart."""
    cells: int = 0
    """Number of held-out cells that they were estimated on; 0 for the default."""
    spread: float = SPREAD
    """Standard deviation of the logarithm of a cell's τ² around the task's; 0 keeps the evidence out."""

    def prior(self, generated: HeadPrior, n_words: int = 0) -> HeadPrior:
        """The prior of a cell's head, for as many words as are learnt by heart."""
        return generated.widened(self.weights, self.bias).with_words(n_words, self.words)


_MOVES = {TaskKind.TAGS: (4.0, 1.5, 3.0), TaskKind.VALUES: (3.0, 0.05, 4.0), TaskKind.SPANS: (2.4, 0.05, 2.0)}
"""Standard deviations between cells by kind of task: of a logit by its weights, of a bias, of the effect of a word.
Those of tags and spans were chosen on held-out cells (docs/adapt.md); the bias of values is as that of spans."""
_FRESH = (4.0, 2.0, 4.0)
"""The same where nothing is known, and the prior is centred on zero."""


def default_width(mean_square: float, labels: Sequence[str]) -> Width:
    """The widths where none were estimated; `mean_square` is the mean squared norm of the words' features."""
    return _moving(_MOVES[TaskKind.of(labels)], mean_square)


def fresh_width(mean_square: float) -> Width:
    """The widths of a head that is learnt from its own sentences alone, with a prior centred on zero."""
    return _moving(_FRESH, mean_square)


def _moving(deviations: tuple[float, float, float], mean_square: float) -> Width:
    logit, bias, word = deviations
    return Width(logit**2 / max(mean_square, 1e-12), bias**2, word**2)


def mean_square(examples: Examples) -> float:
    """The mean squared norm of the words' features."""
    return float((examples.features[:, :-1].double() ** 2).sum(1).mean())


def save_widths(folder: Path, widths: Mapping[str, Width]) -> None:
    """Write the widths of a model's tasks into its folder."""
    write_json(folder / checkpoint.WIDTHS, {task: asdict(width) for task, width in widths.items()})


def load_widths(folder: Path) -> dict[str, Width]:
    """The widths of a model's tasks; empty if none were estimated."""
    path = folder / checkpoint.WIDTHS
    try:
        found = {
            str(task): Width(
                float(values["weights"]),
                float(values["bias"]),
                float(values["words"]),
                int(values["cells"]),
                float(values.get("spread", SPREAD)),
            )
            for task, values in (checkpoint.read_json(path) or {}).items()
        }
        for width in found.values():
            if not all(0 < value < math.inf for value in (width.weights, width.bias)) or not all(
                0 <= value < math.inf for value in (width.words, width.spread)
            ):
                raise ValueError("expected positive variances")
        return found
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: expected widths of priors; {type(error).__name__}: {error}; delete it and run adapt --fit again"
        ) from None
