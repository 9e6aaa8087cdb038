"""`crossfill agreement FOLDER…`: how far people agree who labelled the same sentences, and where they do not."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from crossfill.cli.check import in_context, let_sentences_wait
from crossfill.cli.options import check_writable
from crossfill.cli.output import print_table, visible

if TYPE_CHECKING:
    from crossfill.teaching.estimate import Score

_MOST = 50


def agreement(
    folders: Annotated[
        list[Path], Argument(help="A folder of the Teach page (serve --teach), or a data folder for each person.")
    ],
    teach: Annotated[
        Path | None,
        Option(help="Also let sentences with differences wait in this new folder of the Teach page: to be settled."),
    ] = None,
) -> None:
    """Say how far people agree who labelled the same sentences, and list their differences."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from crossfill.errors import listed
    from crossfill.teaching.agreement import agreements

    if teach is not None:
        check_writable(teach)
    console, found = Console(highlight=False), agreements(folders)
    table = Table(
        "cell", "names", "sentences", "words", "agreement", "95 %", title="Words: Krippendorff's α; two names: F1"
    )
    differing = []
    for one in found:
        table.add_row(
            str(one.cell),
            Text(visible(listed(one.names))),
            f"{one.sentences:,}",
            f"{one.words:,}",
            *_cells(one.alpha, "α"),
        )
        for pair in one.pairs:
            names = Text(visible(f"{pair.first}, {pair.second}"))
            table.add_row("", names, f"{pair.sentences:,}", "", *_cells(pair.score, "F1"))
        differing += [(one.cell, difference) for difference in one.differences]
    print_table(console, table)
    if differing:
        more = f", {_MOST} of {len(differing):,}" if differing[_MOST:] else ""
        table = Table("cell", "labels", "in", title=f"Words that are labelled differently{more}")
        for cell, difference in differing[:_MOST]:
            labels = ", ".join(f"{name}: {label}" for name, label in difference.labels.items())
            table.add_row(str(cell), Text(visible(labels)), in_context(difference.sentence, difference.word))
        print_table(console, table)
    if teach is not None:
        let_sentences_wait(((cell, difference.sentence) for cell, difference in differing), teach)


def _cells(score: "Score", what: str) -> tuple[str, str]:
    if score.value != score.value:
        return f"{what} –", "all labels are alike"
    interval = "" if score.low is None or score.high is None else f"{score.low:.2f} to {score.high:.2f}"
    return f"{what} {score.value:.2f}", interval
