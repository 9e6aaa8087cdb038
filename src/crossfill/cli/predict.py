"""`crossfill predict MODEL --cell ner/wol [FILE|-]`: tags with confidence."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, get_args

import typer
from typer import Argument, Option

from crossfill.cli import options
from crossfill.cli.output import visible

if TYPE_CHECKING:
    from rich.console import Console

    from crossfill.data.streams import Item
    from crossfill.prediction.tagging import Tagging

    TaggedItems = Iterable[tuple[Item, Sequence[Tagging]]]

FINDING = 0.5
"""Spans with a lower confidence are written as guesses, `(PER? 0.31 …)`, and not as findings, `[PER 0.82 …]`."""
SURE = 0.9
"""Labels with a confidence from here on are green on a terminal, from `FINDING` on yellow, and red below."""
SHOWN = 0.05
"""Other labels of a sentence or pair are named if they are at least so probable."""
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

Piece = tuple[str, str]
"""Text, and the style it has on a terminal."""


def predict(
    model: options.ModelFolder,
    file: Annotated[Path, Argument(help="Text to tag; - is standard input.")] = Path("-"),
    cell: options.Cells = None,
    read: options.ReadAs = None,
    form: options.WriteAs = None,
    samples: options.Samples = None,
    distribution: options.Distribution = False,
    alpha: options.Alpha = None,
    abstain: options.Abstain = None,
    prefer: options.Prefer = "f1",
    tier: Annotated[
        str, Option(help="Tier of an .eaf file that has the words or sentences, or writing system of a .flextext file.")
    ] = "",
    out: Annotated[
        Path | None, Option(help="New file to write; its ending names its format. [default: standard output]")
    ] = None,
) -> None:
    """Tag text in any cell of a model's grid, seen or not, and say how sure every label is."""
    from crossfill.data.streams import FIELD_TEXTS, Format, field_items, input_form, output_form, read_items
    from crossfill.errors import DataError
    from crossfill.grid.task import Unit
    from crossfill.prediction.tagging import TaggingOptions
    from crossfill.tagger import render
    from crossfill.tagger.tagger import CHUNK_SENTENCES, load

    path = None if str(file) == "-" else file
    name = str(path or "standard input")
    if path is not None and path.is_dir():
        raise DataError(f"{path}: expected a file, got a folder; tag its files with crossfill predict-files")
    if out is not None:
        options.check_file(out)
    with options.opened(path) as stream:
        tagger = load(model)
        cells, unit = options.find_cells(tagger, cell)
        for target in cells:
            if target in tagger.adapted or target.language in tagger.model.inventory.newcomers:
                typer.echo(f"{target}: {tagger.status(target)}", err=True)
        source, cutting = input_form(path, read, unit)
        form = output_form(out, form, source, get_args(Format))
        typed = path is None and stream.isatty()  # each line is answered at once
        at_once = 1 if typed else CHUNK_SENTENCES
        if cutting == "raw" and (form == "text" or typed):
            cutting = "texts" if typed else "layout"
        if form in FIELD_TEXTS and form != source:
            raise DataError(f"{name}: expected a file of {form} to write {form}, got {source}; choose another --format")
        if tier and source not in FIELD_TEXTS:
            raise DataError(f"{name}: expected no --tier for {source}; it names a part of .eaf and .flextext files")
        text = None
        if source in FIELD_TEXTS and unit is not Unit.PAIR:
            text = FIELD_TEXTS[source](stream.read(), name, cells[0].language, tier)
            typer.echo(f"{name}: {text.how}", err=True)
        segmenter = tagger.segmenter(cells[0])
        read_in = read_items(stream, name, source, segmenter, cutting, unit) if text is None else field_items(text)
        items, to_tag = tee(read_in)
        tagging = TaggingOptions(alpha=alpha, abstain=abstain, prefer=prefer)
        tagged = tagger.tag_cells((item.sentence for item in to_tag), cells, samples, tagging, at_once)
        tagged_items = zip(items, tagged, strict=True)
        in_place = None
        if text is not None and form in FIELD_TEXTS:
            columns = [render.values_by_name(taggings, distribution) for _, taggings in tagged_items]
            in_place = text.tagged(columns, unit).decode()
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
        with nullcontext(sys.stdout) if out is None else out.open("w", encoding="utf-8", newline="") as target:
            if text is not None and in_place is not None:
                n_tagged = len(text.sentences)
                target.write(in_place)
            elif form == "text":
                n_tagged = _write_text(target, tagged_items)
            else:
                n_tagged = _write_records(target, tagged_items, form, distribution)
            target.flush()
    if not n_tagged:
        typer.echo(f"{name}: nothing to tag: no sentence was found in it", err=True)


def _write_records(target: TextIO, tagged_items: "TaggedItems", form: str, whole: bool) -> int:
    """Write one tagged sentence after the other, `whole` with every label's probability; return how many there were."""
    from crossfill.tagger import render

    n_items = n_written = 0
    for item, taggings in tagged_items:
        n_items += 1
        if not item.sentence and form == "conllu":
            continue
        header = render.header(taggings, whole) if form == "bio" and not n_written else ""
        n_written += 1
        text = header + render.tagged(form, item, taggings, whole, n_written)
        if target.isatty():
            target.write(visible(text))
            target.flush()
        else:
            target.write(text)
    return n_items


def _write_text(target: TextIO, tagged_items: "TaggedItems") -> int:
    """Write text as it was, with labels and confidences put into it, line by line; return its number of sentences.

    With several cells, each line is written once for every cell, after the cell's name.
    """
    from rich.console import Console

    console, n_items = Console(file=target, highlight=False), 0
    line: list[tuple[Item, Sequence[Tagging]]] = []
    for item, taggings in tagged_items:
        n_items += 1
        line.append((item, taggings))
        if item.after:
            _print_line(console, line)
            line = []
    if line:  # the last line of a text may have no line end
        _print_line(console, line)
    return n_items


def _print_line(console: "Console", line: "Sequence[tuple[Item, Sequence[Tagging]]]") -> None:
    from rich.text import Text

    if any(item.sentence for item, _ in line):
        text: list[Piece] = []
        several = len(line[0][1]) > 1
        for i, first in enumerate(line[0][1]):
            text += [(f"{first.cell_asked}  ", "bold")] if several else []
            for item, taggings in line:
                chosen = taggings[i].languages is not None and item.sentence
                text += [(f"{taggings[i].cell.language}  ", "bold")] if chosen else []
                text += [(item.before, ""), *pieces(taggings[i]), (item.after, "")]
            if several and not line[-1][0].after:
                text.append(("\n", ""))
    else:
        text = [(item.after, "") for item, _ in line]
    if console.file.isatty():  # lines are broken between words
        shown = [(visible(piece.replace("\r\n", "\n")), style) for piece, style in text]
        console.print(Text.assemble(*shown, end=""), end="")
        console.file.flush()
    else:  # not a character is changed
        console.file.write("".join(piece for piece, _ in text))


def pieces(tagging: "Tagging") -> Iterator[Piece]:
    """Yield a sentence as it was: spans in brackets with type and confidence, other labels after a slash.

    The confidence of words outside brackets stands after them, in percent and in superscript, 99 at most.
    """
    from crossfill.grid.task import TaskKind, Unit

    if tagging.task.unit is not Unit.WORD:
        yield _label_first(tagging), ""
        return
    text, offsets = tagging.sentence.original, tagging.sentence.offsets
    first = {span.start: span for span in tagging.spans}
    last = {span.end - 1: span for span in tagging.spans}
    inside = {i for span in tagging.spans for i in range(span.start, span.end)}
    place = offsets[0][0] if offsets else 0
    for i, (start, end) in enumerate(offsets):
        yield text[place:start], ""
        if span := first.get(i):
            guess = "" if span.confidence >= FINDING else "?"
            yield f"{'(' if guess else '['}{span.type}{guess} {span.confidence:.2f} ", _style(span.confidence)
        yield text[max(place, start) : end], ""  # the words of a contraction have one place
        confidence = float(tagging.confidence[i])
        label = "" if tagging.task.kind is TaskKind.SPANS else f"/{tagging.labels[i]}"
        percent = "" if i in inside else f"{min(99, round(100 * confidence))}".translate(_SUPERSCRIPTS)
        yield label + percent + _doubt(tagging, i), _style(confidence)
        if span := last.get(i):
            yield "]" if span.confidence >= FINDING else ")", _style(span.confidence)
        place = end


def _label_first(tagging: "Tagging") -> str:
    """Write a sentence or pair after its label and the probabilities of its likeliest labels, with tabs between."""
    label, confidence = tagging.labels[0], float(tagging.confidence[0])
    marked = tagging.doubtful is not None and bool(tagging.doubtful[0])
    label_set = f" {{{','.join(tagging.label_sets[0])}}}" if tagging.sets is not None else ""
    others = [(name, p) for name, p in tagging.distribution(0).items() if name != label and p >= SHOWN]
    likely = ", ".join(f"{name} {p:.2f}" for name, p in others) or "–"
    return f"{label}{'?' if marked else ''}{label_set}\t{confidence:.2f}\t{likely}\t{tagging.sentence.text}"


def _doubt(tagging: "Tagging", word: int) -> str:
    """Mark a doubtful word, and name its label set where that has several labels."""
    marked = tagging.doubtful is not None and bool(tagging.doubtful[word])
    shown = tagging.sets is not None and (marked or len(tagging.label_sets[word]) > 1)
    return ("?" if marked else "") + (f"{{{','.join(tagging.label_sets[word])}}}" if shown else "")


def _style(confidence: float) -> str:
    return "green" if confidence >= SURE else "yellow" if confidence >= FINDING else "bold red"
