"""`crossfill annotate MODEL --cell ner/wol FILE`: the sentences most worth annotating, with the model's guess."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from crossfill.cli.options import ModelFolder, OneCell, ReadAs, check_file, opened
from crossfill.cli.output import visible

if TYPE_CHECKING:
    from crossfill.data.streams import Item
    from crossfill.prediction.tagging import Tagging


def annotate(
    model: ModelFolder,
    cell: OneCell,
    file: Annotated[Path, Argument(help="Text to choose from; - is standard input.")] = Path("-"),
    budget: Annotated[int, Option(min=1, help="How many sentences to choose.")] = 100,
    strategy: Annotated[
        Literal["coverage", "entropy", "bald"],
        Option(
            help="coverage: uncertainty about frequent words that no chosen sentence has; entropy: total uncertainty; "
            "bald: mutual information."
        ),
    ] = "coverage",
    cost: Annotated[
        Literal["sentences", "words"], Option(help="Unit of effort; words gives long sentences no advantage.")
    ] = "sentences",
    read: ReadAs = None,
    form: Annotated[
        Literal["bio", "conllu"] | None,
        Option("--format", help="Format of the output. [default: by its ending, else conllu for CoNLL-U, else bio]"),
    ] = None,
    out: Annotated[Path | None, Option(help="New file to write. [default: standard output]")] = None,
) -> None:
    """Choose the sentences most worth annotating in a cell, as a file to correct."""
    from crossfill.data.records import as_row
    from crossfill.data.streams import input_form, output_form, read_items
    from crossfill.data.table_corpora import render_text
    from crossfill.files import write_atomically
    from crossfill.grid.task import Unit
    from crossfill.tagger.annotation import candidates, choose
    from crossfill.tagger.tagger import load

    if out is not None:
        check_file(out)
    tagger = load(model)
    target, path = tagger.cell(cell), None if str(file) == "-" else file
    unit = tagger.model.inventory.task(target.task).unit
    source, cutting = input_form(path, read, unit)
    written = output_form(out, form, "conllu" if source == "conllu" else "bio", ("bio", "conllu"))
    with opened(path) as stream:
        name = str(path or "standard input")
        items = [i for i in read_items(stream, name, source, tagger.segmenter(target), cutting, unit) if i.sentence]
    pool = candidates(tagger, (item.sentence for item in items), target)
    chosen = choose(pool, budget, strategy, cost)
    taggings = tagger.tag_many([items[i].sentence for i in chosen], target)
    if unit is Unit.WORD:
        text = "".join(_render(items[i], t, written, i + 1) for i, t in zip(chosen, taggings, strict=True))
    else:  # under a header, ready to be corrected and trained on
        text = render_text(({**as_row(t.sentence), "label": t.labels[0]} for t in taggings), "\t").decode()
    if out is None:
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
    else:
        write_atomically(out, text.encode())
    counted = "pairs" if unit is Unit.PAIR else "sentences"
    typer.echo(f"{len(chosen)} of {len(pool)} {counted} chosen for {target} by {strategy}", err=True)


def _render(item: "Item", tagging: "Tagging", form: str, number: int) -> str:
    """Write the sentence with predicted labels in the format of a corpus, ready to be corrected; doubts are marked.

    In token columns a comment names the doubtful words, in CoNLL-U their MISC does.
    """
    from crossfill.data import bio
    from crossfill.grid.sentence import on_one_line
    from crossfill.prediction.tagging import MUCH_DOUBT
    from crossfill.tagger import render

    tagging = replace(tagging, doubtful=tagging.confidence < MUCH_DOUBT)
    if form == "conllu":  # labels go where they are read in training, so DEPREL needs no HEAD
        return render.conllu(item, [tagging], whole=False, number=number, deprel_without_head=True)
    doubts = [f"{on_one_line(w.text)} ({w.label} {w.confidence:.2f})" for w in tagging.words if w.doubtful]
    comment = f"# doubtful: {', '.join(doubts)}\n" if doubts else ""
    return comment + bio.render([replace(tagging.sentence, labels=tagging.labels)])
