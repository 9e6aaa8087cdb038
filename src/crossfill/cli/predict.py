"""`crossfill predict MODEL --cell ner/wol [FILE|-]`: tags with confidence."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    check_file,
    find_cells,
    opened,
)
from crossfill.cli.output import visible

if TYPE_CHECKING:
    from rich.console import Console

    from crossfill.data.streams import Item
    from crossfill.prediction.tagging import Span, Tagging

FINDING = 0.5
"""Spans with a lower confidence are written as guesses, `(PER? 0.31 …)`, and not as findings, `[PER 0.82 …]`."""
SURE = 0.9
"""Numbers from here on are green, from `FINDING` on yellow, and red below, on a terminal."""
SHOWN = 0.05
"""Other labels of a sentence or pair are named if they are at least so probable."""
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_COLOURS = ("cyan", "magenta", "blue", "bright_cyan", "bright_magenta", "bright_blue")

Piece = tuple[str, str]
"""Text, and the style it has on a terminal."""


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
        cells, unit = find_cells(tagger, cell)
        for target in cells:
            if target in tagger.adapted or target.language in tagger.model.inventory.newcomers:
                typer.echo(f"{target}: {tagger.status(target)}", err=True)
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
    """Give a function that writes one tagged sentence after the other, `whole` with every label's probability."""
    from rich.console import Console

    from crossfill.tagger import render

    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
    target = sys.stdout if out is None else out.open("w", encoding="utf-8", newline="")
    running = RunningText(Console(file=target, highlight=False))
    n_written = 0

    def write(item: "Item", taggings: "Sequence[Tagging]") -> None:
        nonlocal n_written
        if form == "text":
            running.write(item, taggings)
        elif item.sentence or form != "conllu":
            header = render.header(taggings, whole) if form == "bio" and not n_written else ""
            text = header + render.tagged(form, item, taggings, whole, n_written + 1)
            target.write(visible(text) if target.isatty() else text)
        else:
            return
        n_written += 1
        if target.isatty():
            target.flush()

    try:
        yield write
        running.flush()
    finally:
        target.flush() if out is None else target.close()


class RunningText:
    """Writes text as it was, with labels and confidences put into it.

    With several cells, each line is written once for every cell, after the cell's name.
    """

    def __init__(self, console: "Console") -> None:
        self.console = console
        self._line: list[tuple[Item, Sequence[Tagging]]] = []

    def write(self, item: "Item", taggings: "Sequence[Tagging]") -> None:
        """Add a sentence to its line; the line is written when it ends."""
        self._line.append((item, taggings))
        if item.after:
            self.flush()

    def flush(self) -> None:
        """Write what is left of the current line: the last line of a text may have no line end."""
        items, taggings_of = [item for item, _ in self._line], [taggings for _, taggings in self._line]
        self._line = []
        if not any(item.sentence for item in items):
            self._print([(item.after, "") for item in items])
            return
        several = len(taggings_of[0]) > 1
        for taggings in zip(*taggings_of, strict=True):  # of one cell
            line = [(f"{taggings[0].cell}  ", "bold")] if several else []
            for item, tagging in zip(items, taggings, strict=True):
                line += [(item.before, ""), *pieces(tagging), (item.after, "")]
            if several and not items[-1].after:
                line.append(("\n", ""))
            self._print(line)

    def _print(self, line: Sequence[Piece]) -> None:
        from rich.segment import Segment, Segments
        from rich.style import Style
        from rich.text import Text

        if self.console.file.isatty():  # lines are broken between words
            shown = [(visible(text.replace("\r\n", "\n")), style) for text, style in line]
            self.console.print(Text.assemble(*shown, end=""), end="")
        else:  # not a character is changed
            segments = [Segment(text, Style.parse(style)) for text, style in line]
            self.console.print(Segments(segments), soft_wrap=True, end="")


def pieces(tagging: "Tagging") -> Iterator[Piece]:
    """Yield a sentence as it was: spans in brackets with type and confidence, other labels after a slash.

    The confidence of words outside brackets stands after them, in percent and in superscript, 99 at most.
    """
    from crossfill.grid.task import TaskKind, Unit
    from crossfill.measures.metrics import span_types

    names = span_types(tagging.label_names) if tagging.kind is TaskKind.SPANS else sorted(tagging.label_names)
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    if tagging.unit is not Unit.WORD:
        yield from _labelled(tagging, colours)
        return
    text, offsets = tagging.sentence.original, tagging.sentence.offsets
    first = {span.start: span for span in tagging.spans}
    last = {span.end - 1: span for span in tagging.spans}
    inside = {i for span in tagging.spans for i in range(span.start, span.end)}
    place = offsets[0][0] if offsets else 0
    for i, (start, end) in enumerate(offsets):
        yield text[place:start], ""
        if i in first:
            guess = "" if first[i].confidence >= FINDING else "?"
            yield f"{'(' if guess else '['}{first[i].type}{guess} {first[i].confidence:.2f} ", _style(first[i], colours)
        yield text[start:end], ""
        if tagging.kind is not TaskKind.SPANS:
            yield f"/{tagging.labels[i]}", colours.get(tagging.labels[i], "")
        if i not in inside:
            confidence = float(tagging.confidence[i])
            yield f"{min(99, round(100 * confidence))}".translate(_SUPERSCRIPTS), _sureness(confidence)
        yield _doubt(tagging, i), "red"
        if i in last:
            yield "]" if last[i].confidence >= FINDING else ")", _style(last[i], colours)
        place = end


def _labelled(tagging: "Tagging", colours: Mapping[str, str]) -> Iterator[Piece]:
    """Yield a sentence or pair after its label and the probabilities of its likeliest labels, with tabs between."""
    label, confidence = tagging.labels[0], float(tagging.confidence[0])
    yield label, f"bold {colours.get(label, '')}".strip()
    marked = tagging.doubtful is not None and bool(tagging.doubtful[0])
    label_set = f" {{{','.join(tagging.label_sets[0])}}}" if tagging.sets is not None else ""
    yield ("?" if marked else "") + label_set, "red"
    yield f"\t{confidence:.2f}", _sureness(confidence)
    others = [(name, p) for name, p in tagging.distribution(0).items() if name != label and p >= SHOWN]
    yield "\t" + (", ".join(f"{name} {p:.2f}" for name, p in others) or "–") + "\t", "bright_black"
    yield tagging.sentence.text, ""


def _doubt(tagging: "Tagging", word: int) -> str:
    """Mark a doubtful word, and name its label set where that has several labels."""
    marked = tagging.doubtful is not None and bool(tagging.doubtful[word])
    shown = tagging.sets is not None and (marked or len(tagging.label_sets[word]) > 1)
    return ("?" if marked else "") + (f"{{{','.join(tagging.label_sets[word])}}}" if shown else "")


def _style(span: "Span", colours: Mapping[str, str]) -> str:
    return "red" if span.confidence < FINDING else f"bold {colours.get(span.type, '')}"


def _sureness(confidence: float) -> str:
    return "green" if confidence >= SURE else "yellow" if confidence >= FINDING else "bold red"
