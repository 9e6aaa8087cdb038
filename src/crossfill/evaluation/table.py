"""Results of an evaluation as a table: in notebooks, as text, and as rows for other tools."""

from typing import Any

from crossfill.evaluation.results import CellResult
from crossfill.frames import data_frame, html_table, text_table


class Results(list[CellResult]):
    """Results of every corpus with test data: a list that shows itself as a table.

    Its columns: `score` is of plug-in prediction; `averaged` (score), `nll`, `ece`, `aurc` and `errors_removed` (share
    of errors among the 20 % of words that the model is least sure of) are of averaged prediction; calibrated models
    have `coverage` and `set_size` of label sets.
    """

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each corpus, by the names of the columns."""
        calibrated = any(result.label_sets is not None for result in self)
        return [_row(result, calibrated) for result in self]

    def to_pandas(self) -> Any:
        """The table as a data frame of pandas, which is not installed with crossfill."""
        return data_frame(self.rows)

    def __repr__(self) -> str:
        return text_table(self.rows)

    def _repr_html_(self) -> str:
        return html_table(self.rows)


def _row(result: CellResult, calibrated: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "cell": str(result.cell),
        "corpus": result.corpus,
        "seen": result.seen,
        "words": result.n_words,
        "score": result.score,
        "averaged": result.averaged_score,
        **{name: result.averaged[name] for name in ("nll", "ece", "aurc")},
        "errors_removed": result.errors_removed,
    }
    if calibrated:
        sets, unknown = result.label_sets, float("nan")
        row |= {"coverage": sets.coverage if sets else unknown, "set_size": sets.set_size if sets else unknown}
    return row
