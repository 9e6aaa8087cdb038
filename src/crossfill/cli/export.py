"""`crossfill export MODEL --cell ner/wol OUT`: a cell's tagger in a format that other software can load."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from crossfill.cli.options import QUIET, ModelFolder, OneCell, check_folder


def export(
    model: ModelFolder,
    out: Annotated[Path, Argument(help="Folder to write.")],
    cell: OneCell,
    onnx: Annotated[bool, Option("--onnx", help="An ONNX graph instead of a transformers checkpoint.")] = False,
) -> None:
    """Write the tagger of a cell as an ordinary token-classification checkpoint, or as ONNX; posterior means."""
    from crossfill.progress import ProgressBar

    check_folder(out)
    with ProgressBar(QUIET.get()) as bars:
        update = bars.add(f"Exporting {cell}")
        update(0, "loading the model")
        from crossfill.tagger.tagger import load

        if onnx:
            from crossfill.export.onnx import export_onnx as write
        else:
            from crossfill.export.stock import export_stock as write
        tagger = load(model)
        target = tagger.cell(cell)
        notes = write(tagger, target, out, lambda stage: update(0, stage))
    for note in () if QUIET.get() else notes:
        typer.echo(f"{target}: {note}", err=True)
    unit = tagger.model.inventory.task(target.task).unit
    kind = "model.onnx" if onnx else f"a {'token' if unit == 'word' else 'sequence'}-classification checkpoint"
    typer.echo(f"{out}: {kind} for {target}, with its tokenizer and a card")
