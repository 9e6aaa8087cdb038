"""What the next twenty sentences are worth in a cell without labels: from learning curves of cells that were held out.

A seen cell that a model was trained without gains gᵢ when it is adapted to `SENTENCES` of its sentences, and the model
doubted dᵢ before. The relation of the two over a task's cells (`crossfill.evaluation.expected`) tells what to expect of
a cell of which only the doubt is known.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from crossfill import checkpoint
from crossfill.errors import CheckpointError, DataError
from crossfill.evaluation.expected import ExpectedScore, HeldOutScore, expect_scores
from crossfill.files import write_json
from crossfill.grid.cells import Cell

SENTENCES = 20


def expected_gains(held_out: Sequence[HeldOutScore], doubts: Mapping[Cell, float]) -> dict[Cell, ExpectedScore]:
    """The expected gain of each cell, with its interval; none for tasks of which too few cells were held out."""
    return {found.cell: found for found in expect_scores(held_out, doubts)}


def save_worth(folder: Path, held_out: Sequence[HeldOutScore]) -> None:
    """Write the gains of held-out cells into a model folder."""
    values = [{"cell": str(own.cell), "gain": own.score, "doubt": own.doubt} for own in held_out]
    write_json(folder / checkpoint.WORTH, values)


def load_worth(folder: Path) -> list[HeldOutScore]:
    """The gains of held-out cells in a model folder; empty if none were measured."""
    path = folder / checkpoint.WORTH
    try:
        return [
            HeldOutScore(Cell.parse(values["cell"]), float(values["gain"]), float(values["doubt"]))
            for values in checkpoint.read_json(path) or ()
        ]
    except (KeyError, TypeError, AttributeError, ValueError, DataError) as error:
        raise CheckpointError(
            f"{path}: expected gains of held-out cells; {type(error).__name__}: {error}; delete it"
        ) from None
