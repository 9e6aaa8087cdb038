"""`crossfill annotate MODEL --cell ner/wol FILE`: the sentences most worth annotating, with the model's guess."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crossfill.cli.options import Force, ModelFolder
from crossfill.cli.outputs import check_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crossfill.data.streams import Item
    from crossfill.prediction.tagging import Tagging


def annotate(
    model: ModelFolder,
    file: Annotated[Path, typer.Argument(help="Text to choose from; - is standard input.")] = Path("-"),
    cell: Annotated[str, typer.Option(help="Cell to annotate, as ner/wol.")] = "",
    budget: Annotated[int, typer.Option(min=1, help="How many sentences to choose.")] = 100,
    strategy: Annotated[
        Literal["coverage", "entropy", "bald"],
        typer.Option(help="coverage: doubt of new words; entropy: total doubt; bald: epistemic."),
    ] = "coverage",
    cost: Annotated[
        Literal["sentences", "words"], typer.Option(help="What effort is counted in; words favours short sentences.")
    ] = "sentences",
    read: Annotated[
        str | None, typer.Option("--from", help="text, conllu, bio or jsonl. [default: by the file's ending]")
    ] = None,
    form: Annotated[Literal["bio", "conllu"] | None, typer.Option("--format", help="Format of the output.")] = None,
    tokenised: Annotated[
        bool, typer.Option("--tokenised", help="Text is one sentence a line, words separated by spaces.")
    ] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Text is one sentence a line.")] = False,
    samples: Annotated[int | None, typer.Option(min=1, help="Posterior samples. [default: the model's]")] = None,
    encoder: Annotated[str | None, typer.Option(help="Name or folder of the encoder, if it has moved.")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write. [default: standard output]")] = None,
    force: Force = False,
) -> None:
    """Choose the sentences most worth annotating in a cell, as a file to correct."""
    from crossfill.cli.predict import opened
    from crossfill.cli.terminal import visible
    from crossfill.data.streams import format_of, read_items
    from crossfill.errors import DataError
    from crossfill.files import write_atomically
    from crossfill.grid.unit import Unit
    from crossfill.tagger.annotation import candidates, choose
    from crossfill.tagger.tagger import load

    if out is not None:
        check_file(out, force)
    tagger = load(model, encoder)
    if not cell:
        raise DataError("expected --cell, such as ner/wol, to choose sentences for")
    target, path = tagger.cell(cell), None if str(file) == "-" else file
    unit = tagger.model.inventory.unit(target.task)
    if unit is not Unit.WORD and form is not None:
        raise DataError(f"expected no --format for {target}, which labels {unit}s: they are written as a table (TSV)")
    cutting = "words" if tokenised else "lines" if lines or unit is not Unit.WORD else "raw"
    with opened(path) as stream:
        source = format_of(path, read)
        found = read_items(stream, str(path or "standard input"), source, target.language, cutting, unit=unit)
        items = [item for item in found if item.sentence]
    pool = candidates(tagger, (item.sentence for item in items), target, samples)
    chosen = choose(pool, budget, strategy, cost)
    taggings = tagger.tag_many([items[i].sentence for i in chosen], target, samples)
    own_form = form or ("conllu" if source == "conllu" else "bio")
    if unit is Unit.WORD:
        text = "".join(_render(items[i], t, own_form, i + 1) for i, t in zip(chosen, taggings, strict=True))
    else:
        text = _table(taggings)
    if out is None:
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
    else:
        write_atomically(out, text.encode())
    counted = "pairs" if unit is Unit.PAIR else "sentences"
    typer.echo(f"{len(chosen)} of {len(pool)} {counted} chosen for {target} by {strategy}", err=True)


def _render(item: "Item", tagging: "Tagging", form: str, number: int) -> str:
    """The sentence with predicted labels in the plain format of a corpus, ready to be corrected and trained on."""
    from crossfill.data import bio
    from crossfill.tagger import render

    if form == "conllu":  # labels go where they are read in training, so DEPREL needs no HEAD
        return render.conllu(item, [tagging], whole=False, number=number, deprel_without_head=True)
    return bio.render([replace(tagging.sentence, labels=tagging.labels)])


def _table(taggings: "Iterable[Tagging]") -> str:
    """Sentences or pairs with predicted labels under a header, ready to be corrected and trained on."""
    from crossfill.data.tables import as_row, render

    return render(({**as_row(t.sentence), "label": t.labels[0]} for t in taggings), "\t").decode()
