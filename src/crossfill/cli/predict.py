"""`crossfill predict MODEL --cell ner/wol [FILE|-]`: tags with confidence."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from crossfill.cli.bulk import BulkSettings, is_bulk, shared_unit, tag_in_bulk
from crossfill.cli.evaluate import sides
from crossfill.cli.options import ModelFolder
from crossfill.cli.outputs import check_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crossfill.data.streams import Item
    from crossfill.prediction.tagging import Tagging


def predict(
    model: ModelFolder,
    file: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text to tag; - is standard input. Several files, folders, patterns (*) or addresses (s3://…) are "
            "tagged in bulk, into a folder. [default: -]"
        ),
    ] = None,
    cell: Annotated[list[str] | None, typer.Option(help="Cell to tag in, as ner/wol; repeatable.")] = None,
    read: Annotated[
        str | None, typer.Option("--from", help="text, conllu, bio or jsonl. [default: by the file's ending]")
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help="The same for the output. [default: the input's]")
    ] = None,
    tokenised: Annotated[
        bool, typer.Option("--tokenised", help="Text is one sentence a line, words separated by spaces.")
    ] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Text is one sentence a line.")] = False,
    samples: Annotated[int | None, typer.Option(min=0, help="Posterior samples; 0 plugs in the means.")] = None,
    distribution: Annotated[bool, typer.Option("--distribution", help="Write the probability of every label.")] = False,
    deprel_without_head: Annotated[
        bool,
        typer.Option("--deprel-without-head", help="CoNLL-U: write DEPREL where there is no HEAD, too, not in MISC."),
    ] = False,
    alpha: Annotated[float | None, typer.Option(help="Write label sets that miss this share of right labels.")] = None,
    abstain: Annotated[
        float | None, typer.Option(help="Mark words that would be in this least sure share of calibration words.")
    ] = None,
    min_confidence: Annotated[float, typer.Option(min=0, max=1, help="Leave out labels below this confidence.")] = 0.0,
    temperature: Annotated[
        bool, typer.Option("--temperature", help="Scale probabilities by the calibrated temperature.")
    ] = False,
    prefer: Annotated[
        Literal["f1", "precision", "recall"],
        typer.Option(help="What decisions look for in tasks with spans or values, if the model has rules for it."),
    ] = "f1",
    decision: Annotated[
        Literal["metric", "valid", "argmax"],
        typer.Option(help="Labels by the rule for the metric, as the best valid sequence, or one by one."),
    ] = "metric",
    encoder: Annotated[str | None, typer.Option(help="Name or folder of the encoder, if it has moved.")] = None,
    out: Annotated[
        str | None, typer.Option(help="File to write; in bulk, a folder. [default: standard output]")
    ] = None,
    executor: Annotated[
        Literal["local", "ray"] | None, typer.Option(help="Tag in bulk: on local processes, or on Ray.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=0, help="In bulk, shards at a time; 0 for as many as cores.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="In bulk, cores per shard.")] = 1,
    gpus: Annotated[float, typer.Option(min=0, help="In bulk, accelerators per shard; a half lets two share one.")] = 0,
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster, or auto.")] = None,
    shard_size: Annotated[int, typer.Option(min=1, help="In bulk, kilobytes of input per shard.")] = 512,
    force: Annotated[bool, typer.Option("--force", help="In bulk, begin anew in the folder of another run.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="In bulk, no progress.")] = False,
) -> None:
    """Tag text in any cell of a model's grid, seen or not, and say how sure every label is."""
    from crossfill.data.streams import format_of, read_items
    from crossfill.errors import DataError
    from crossfill.grid.unit import Unit
    from crossfill.prediction.tagging import TaggingOptions
    from crossfill.tagger.tagger import load
    from crossfill.tagger.texts import CHUNK_SENTENCES

    if tokenised and lines:
        raise DataError("expected --tokenised or --lines, got both; --tokenised is one sentence a line, too")
    cutting = "words" if tokenised else "lines" if lines else "raw"
    options = TaggingOptions(alpha, abstain, min_confidence, temperature, decision, prefer)
    inputs = file or ["-"]
    if executor or jobs is not None or is_bulk(inputs):
        execution = {"executor": executor or "local", "jobs": jobs or 0, "threads": threads, "gpus": gpus}
        settings = BulkSettings(
            str(model), encoder, tuple(cell or ()), samples, options, cutting, form, distribution, deprel_without_head
        )
        tag_in_bulk(settings, inputs, read, out, execution | {"address": address}, shard_size, force, quiet)
        return
    path = None if inputs == ["-"] else Path(inputs[0])
    source = format_of(path, read)
    target = format_of(None, form) if form else source
    written = None if out is None else Path(out)
    if written is not None:
        check_file(written, source=path)
    with opened(path) as stream:
        tagger = load(model, encoder)
        if not cell:
            raise DataError(
                f"expected a cell to tag in, such as --cell {tagger.cells[0]}; the model has {sides(tagger.cells)}"
            )
        cells = [tagger.cell(name) for name in cell]
        for target_cell in cells:
            if target_cell in tagger.adapted or target_cell.language in tagger.model.inventory.newcomers:
                typer.echo(f"{target_cell}: {tagger.status(target_cell)}", err=True)
        unit = shared_unit(tagger, cells)
        cutting = "words" if tokenised else "lines" if lines or unit is not Unit.WORD else "raw"
        name, blank_lines = str(path or "standard input"), target == "text"
        items = read_items(stream, name, source, cells[0].language, cutting, blank_lines, unit)
        waiting: list[Item] = []
        n_tagged = 0

        def sentences() -> "Iterator":
            for item in items:
                waiting.append(item)
                yield item.sentence

        at_once = 1 if path is None and stream.isatty() else CHUNK_SENTENCES
        with writer(written, target, distribution, deprel_without_head) as write:
            for taggings in tagger.tag_cells(sentences(), cells, samples, options, at_once):
                write(waiting.pop(0), taggings)
                n_tagged += 1
    if not n_tagged:
        typer.echo(f"{name}: nothing to tag: no sentence was found in it", err=True)


@contextmanager
def opened(path: Path | None) -> Iterator[BufferedIOBase]:
    """The file to read, or standard input."""
    from crossfill.errors import DataError

    if path is None:
        yield cast(BufferedIOBase, sys.stdin.buffer)
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: expected a readable file; {error.strerror}; check the path") from None
    with file:
        yield file


@contextmanager
def writer(
    out: Path | None, form: str, whole: bool, deprel_without_head: bool
) -> "Iterator[Callable[[Item, Sequence[Tagging]], None]]":
    """A function that writes one tagged sentence after the other."""
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
            case "conllu":
                put(render.conllu(item, taggings, whole, n_written + 1, deprel_without_head))
            case "bio":
                put(("" if n_written else render.header(taggings, whole)) + render.columns(taggings, whole))
            case _:
                put(render.json_line(item, taggings, whole))
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
