"""Options and arguments that several commands share, and checks of the cells, files and folders that they name."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer
from typer import Argument, Option

from crossfill.errors import DataError, OutputError, listed

if TYPE_CHECKING:
    from crossfill.grid.cells import Cell
    from crossfill.grid.task import Unit
    from crossfill.tagger.tagger import Tagger

QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
"""Whether the command runs as `crossfill --quiet COMMAND`: without progress and messages on what it chose."""

INTERRUPTED = 130
"""Exit code of a command that was interrupted."""
MOST_SEED = 2**32 - 1

DataFolder = Annotated[Path, Argument(help="Folder of corpora: <task>/<language>/train.*, UD, WikiANN.")]
ModelFolder = Annotated[Path, Argument(help="Folder of a trained model, or its name on the hub, as me/tagger.")]

OneCell = Annotated[str, Option("--cell", help="The cell, as ner/wol.")]
Cells = Annotated[
    list[str] | None,
    Option("--cell", help="Cell to tag in, as ner/wol; repeatable. As ner, each sentence in the language it is in."),
]
Tasks = Annotated[list[str] | None, Option("--task", help="Only this task; repeatable. deprel, feats:Case, …")]
Seed = Annotated[int, Option(min=0, max=MOST_SEED, help="Seed of random splits and subsets of the data.")]
MaxTrain = Annotated[int | None, Option(min=1, help="Most training sentences per corpus.")]
Config = Annotated[Path | None, Option(help="YAML file of settings or of a study: configs/frozen.yaml.")]
Changes = Annotated[list[str] | None, Option("--set", help="A setting, as training.steps=500; repeatable.")]
Executor = Annotated[Literal["local", "ray"], Option(help="Run on local processes, or on Ray ($RAY_ADDRESS).")]
Jobs = Annotated[int, Option(min=0, help="Jobs at a time; 0 for as many as there are cores.")]
Gpus = Annotated[float, Option(min=0, help="Accelerators per job; a half lets two jobs share one.")]
Force = Annotated[bool, Option("--force", help="Replace what is already there.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON for machines.")]

TextForm = Literal["text", "texts", "lines", "words", "conllu", "bio", "jsonl", "eaf", "flextext"]
ReadAs = Annotated[
    TextForm | None,
    Option(
        "--from",
        help="Format of the input: text (paragraphs), texts (one per line), lines (one sentence per line), words (the "
        " same, with words separated by spaces), conllu, bio, jsonl, eaf or flextext. [default: by the file's ending]",
    ),
]
WriteAs = Annotated[
    Literal["text", "conllu", "bio", "jsonl", "eaf", "flextext"] | None,
    Option(
        "--format",
        help="Format of the output; eaf and flextext for such input. [default: by its ending, else that of the input]",
    ),
]
Samples = Annotated[int | None, Option(min=0, help="Posterior samples; 0 uses posterior means. [default: the model's]")]
Distribution = Annotated[bool, Option("--distribution", help="Write the probability of every label.")]
Alpha = Annotated[
    float | None, Option(help="Also write label sets that miss the right label for at most this share of words: 0.1.")
]
Abstain = Annotated[
    float | None, Option(help="Mark the least confident share of words as doubtful: 0.2. Needs calibration.")
]
Prefer = Annotated[
    Literal["f1", "precision", "recall"],
    Option(help="Trade precision against recall of spans and values, where the model has rules for it."),
]


def find_cells(tagger: "Tagger", names: Sequence[str] | None) -> "tuple[list[Cell], Unit]":
    """Return the named cells of a model, and the unit that all of them label, as text is cut for one unit."""
    if not names:
        raise DataError(
            f"expected a cell to tag in, such as --cell {tagger.cells[0]}; the model has {sides(tagger.cells)}"
        )
    if tagger.unfinished and not QUIET.get():
        typer.echo("the training of this model is unfinished; crossfill train with --resume continues it", err=True)
    cells = [tagger.target(name) for name in names]
    units = {cell: tagger.model.inventory.task(cell.task).unit for cell in cells}
    if len(set(units.values())) > 1:
        each = ", ".join(f"{cell} labels {unit}s" for cell, unit in units.items())
        raise DataError(f"expected cells that label the same unit, got: {each}; tag them one after the other")
    return cells, units[cells[0]]


def sides(cells: "Iterable[Cell]") -> str:
    """Describe the tasks and languages of some cells."""
    tasks, languages = map(set, zip(*((cell.task, cell.language) for cell in cells), strict=True))
    return f"tasks {listed(sorted(tasks))} in languages {listed(sorted(languages))}"


def check_file(path: Path) -> None:
    """Refuse a file that cannot be written, or that is there already."""
    if path.is_dir():
        raise OutputError(f"{path}: expected a file to write, found a folder; name a file in it")
    if path.exists():
        raise OutputError(f"{path}: expected a new file, found one that is there already; name another, or remove it")
    check_writable(path.parent)


def check_folder(path: Path) -> None:
    """Refuse a folder that cannot be written, or that has something in it."""
    check_writable(path)
    if path.is_dir() and (inside := next(path.iterdir(), None)) is not None:
        raise OutputError(
            f"{path}: expected a new or empty folder, found {inside.name} in it; name another, or empty it"
        )


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written or made."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists() or place.is_symlink())
    if not there.is_dir():
        raise OutputError(f"{folder}: expected a folder to write to, found the file {there}; name another place")
    if not os.access(there, os.W_OK | os.X_OK):
        raise OutputError(f"{there}: expected a folder that can be written; change its permissions, or name another")


@contextmanager
def opened(path: Path | None) -> Iterator[BufferedIOBase]:
    """Open a file to read, or standard input if `path` is None."""
    if path is None:
        yield cast(BufferedIOBase, sys.stdin.buffer)
    else:
        with path.open("rb") as file:
            yield file


@contextmanager
def resumable() -> Iterator[None]:
    """End with a message and an exit code of its own if the user interrupts work that the same command continues."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("interrupted; the same command continues it", err=True)
        raise typer.Exit(INTERRUPTED) from None
