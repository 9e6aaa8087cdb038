"""Results of an evaluation as a table: in notebooks, as text, and as rows for other tools."""

from html import escape
from typing import Any

from crossfill.evaluation.results import CellResult
from crossfill.prediction.tagging import data_frame


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
        columns = []
        for texts, is_number in self._columns():
            width = max(map(len, texts))
            columns.append([text.rjust(width) if is_number else text.ljust(width) for text in texts])
        return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True)) or "nothing"

    def _repr_html_(self) -> str:
        columns = []
        for (name, *texts), is_number in self._columns():
            style = ' style="text-align:right"' if is_number else ""
            columns.append([f"<th{style}>{name}</th>", *(f"<td{style}>{escape(text)}</td>" for text in texts)])
        lines = "".join(f"<tr>{''.join(line)}</tr>" for line in zip(*columns, strict=True))
        return f"<table>{lines}</table>" if lines else "<p>nothing</p>"

    def _columns(self) -> list[tuple[list[str], bool]]:
        """The name and values of each column as text, and whether they are numbers."""
        rows = self.rows
        return [
            ([name, *(_shown(row[name]) for row in rows)], isinstance(value, int | float) and name != "seen")
            for name, value in (rows[0] if rows else {}).items()
        ]


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


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
