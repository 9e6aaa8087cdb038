"""Results of an evaluation as a table: in notebooks, as text, and as rows for other tools."""

from collections.abc import Sequence
from html import escape
from typing import Any

from crossfill.evaluation.results import CellResult
from crossfill.prediction.tagging import Row, data_frame


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


def html_table(rows: Sequence[Row]) -> str:
    """Write a table in HTML, as notebooks show data frames, with numbers to the right."""
    if not rows:
        return "<p>nothing</p>"
    head = "".join(f"<th{_aligned(value)}>{escape(name)}</th>" for name, value in rows[0].items())
    body = "".join(
        "<tr>" + "".join(f"<td{_aligned(value)}>{escape(_shown(value))}</td>" for value in row.values()) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def text_table(rows: Sequence[Row]) -> str:
    """Write a table as text, a line for each row."""
    if not rows:
        return "nothing"
    cells = [list(rows[0]), *([_shown(value) for value in row.values()] for row in rows)]
    right = [bool(_aligned(value)) for value in rows[0].values()]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    )


def _aligned(value: Any) -> str:
    return ' style="text-align:right"' if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
