"""`crossfill predict MODEL --cell ner/wol [FILE|-]`: tags with confidence."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crossfill.cli.options import (
    Abstain,
    Alpha,
    Cells,
    Distribution,
    ModelFolder,
    Prefer,
    ReadAs,
    Samples,
    WriteAs,
)
from crossfill.cli.paths import check_file, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crossfill.data.streams import Item
    from crossfill.prediction.tagging import Tagging


def predict(
    model: ModelFolder,
    file: Annotated[Path, typer.Argument(help="Text to tag; - is standard input.")] = Path("-"),
    cell: Cells = None,
    read: ReadAs = None,
    form: WriteAs = None,
    samples: Samples = None,
    distribution: Distribution = False,
    alpha: Alpha = None,
    abstain: Abstain = None,
    prefer: Prefer = "f1",
    out: Annotated[Path | None, typer.Option(help="File to write. [default: standard output]")] = None,
) -> None:
    """Tag text in any cell of a model's grid, seen or not, and say how sure every label is."""
    from crossfill.cli.cells import find_cells, shared_unit
    from crossfill.data.streams import input_form, read_items
    from crossfill.errors import DataError
    from crossfill.prediction.tagging import TaggingOptions
    from crossfill.tagger.tagger import load
    from crossfill.tagger.texts import CHUNK_SENTENCES

    path = None if str(file) == "-" else file
    name = str(path or "standard input")
    if path is not None and path.is_dir():
        raise DataError(f"{path}: expected a file, got a folder; tag its files with crossfill predict-files")
    if out is not None:
        check_file(out, source=path)
    with opened(path) as stream:
        tagger = load(model)
        cells = find_cells(tagger, cell)
        for target in cells:
            if target in tagger.adapted or target.language in tagger.model.inventory.newcomers:
                typer.echo(f"{target}: {tagger.status(target)}", err=True)
        unit = shared_unit(tagger, cells)
        source, cutting = input_form(path, read, unit)
        form = form or source
        if form == "text" and cutting == "raw":
            cutting = "layout"
        items, to_tag = tee(read_items(stream, name, source, cells[0].language, cutting, unit))
        options = TaggingOptions(alpha=alpha, abstain=abstain, prefer=prefer)
        at_once = 1 if path is None and stream.isatty() else CHUNK_SENTENCES
        tagged = tagger.tag_cells((item.sentence for item in to_tag), cells, samples, options, at_once)
        n_tagged = 0
        with writer(out, form, distribution) as write:
            for item, taggings in zip(items, tagged, strict=True):
                write(item, taggings)
                n_tagged += 1
    if not n_tagged:
        typer.echo(f"{name}: nothing to tag: no sentence was found in it", err=True)


@contextmanager
def writer(out: Path | None, form: str, whole: bool) -> "Iterator[Callable[[Item, Sequence[Tagging]], None]]":
    """Give a function that writes one tagged sentence after the other."""
    from rich.console import Console

    from crossfill.cli.running_text import RunningText
    from crossfill.cli.terminal import visible
    from crossfill.tagger import render

    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
    target = sys.stdout if out is None else out.open("w", encoding="utf-8", newline="")
    running = RunningText(Console(file=target, highlight=False))
    n_written = 0

    def put(text: str) -> None:
        target.write(visible(text) if target.isatty() else text)

    def write(item: "Item", taggings: "Sequence[Tagging]") -> None:
        nonlocal n_written
        match form:
            case "text":
                running.write(item, taggings)
            case "conllu" if not item.sentence:
                return
            case _:
                header = render.header(taggings, whole) if form == "bio" and not n_written else ""
                put(header + render.tagged(form, item, taggings, whole, n_written + 1))
        n_written += 1
        if target.isatty():
            target.flush()

    try:
        yield write
        running.flush()
    finally:
        if out is not None:
            target.close()
        else:
            target.flush()
