"""Tagged sentences as running text: the input as it was, with labels and confidences put into it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from crossfill.cli.terminal import visible
from crossfill.grid.task import TaskKind, Unit
from crossfill.measures.metrics import span_types

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


class RunningText:
    """Writes tagged text line by line; with several cells, each line once for every cell, after the cell's name."""

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
        line, self._line = self._line, []
        if not any(item.sentence for item, _ in line):
            self._print([(item.after, "") for item, _ in line])
            return
        several = len(line[0][1]) > 1
        for own in zip(*(taggings for _, taggings in line), strict=True):
            found = [(f"{own[0].cell}  ", "bold")] if several else []
            for (item, _), tagging in zip(line, own, strict=True):
                found += [(item.before, ""), *pieces(tagging), (item.after, "")]
            if several and not line[-1][0].after:
                found.append(("\n", ""))
            self._print(found)

    def _print(self, found: list[Piece]) -> None:
        from rich.segment import Segment, Segments
        from rich.style import Style
        from rich.text import Text

        if self.console.file.isatty():  # lines are broken between words
            shown = [(visible(text.replace("\r\n", "\n")), style) for text, style in found]
            self.console.print(Text.assemble(*shown, end=""), end="")
        else:  # not a character is changed
            segments = [Segment(text, Style.parse(style)) for text, style in found]
            self.console.print(Segments(segments), soft_wrap=True, end="")


def pieces(tagging: "Tagging") -> Iterator[Piece]:
    """A sentence as it was: spans in brackets with type and confidence, other labels after a slash.

    The confidence of words outside brackets stands after them, in percent and in superscript, 99 at most.
    """
    if tagging.unit is not Unit.WORD:
        yield from _labelled(tagging)
        return
    text, offsets = tagging.sentence.original, tagging.sentence.offsets
    first = {span.start: span for span in tagging.spans}
    last = {span.end - 1: span for span in tagging.spans}
    inside = {i for span in tagging.spans for i in range(span.start, span.end)}
    place = offsets[0][0] if offsets else 0
    for i, (start, end) in enumerate(offsets):
        yield text[place:start], ""
        if i in first:
            yield _opening(first[i]), _style(first[i], tagging)
        confidence, label = float(tagging.confidence[i]), tagging.labels[i]
        yield text[start:end], ""
        if tagging.kind is not TaskKind.SPANS:
            yield f"/{label}", _colour(label, tagging)
        if i not in inside:
            yield f"{min(99, round(100 * confidence))}".translate(_SUPERSCRIPTS), _sureness(confidence)
        marked = tagging.doubtful is not None and bool(tagging.doubtful[i])
        others = f"{{{','.join(tagging.label_sets[i])}}}" if len(tagging.label_sets[i]) > 1 or marked else ""
        yield "?" * marked + (others if tagging.sets is not None else ""), "red"
        if i in last:
            yield "])"[last[i].confidence < FINDING], _style(last[i], tagging)
        place = end


def _labelled(tagging: "Tagging") -> Iterator[Piece]:
    """A sentence or pair after its label and the probabilities of its likeliest labels, with tabs between."""
    label, confidence = tagging.labels[0], float(tagging.confidence[0])
    yield label, f"bold {_colour(label, tagging)}".strip()
    marked = tagging.doubtful is not None and bool(tagging.doubtful[0])
    yield "?" * marked + (f" {{{','.join(tagging.label_sets[0])}}}" if tagging.sets is not None else ""), "red"
    yield f"\t{confidence:.2f}", _sureness(confidence)
    others = [(name, p) for name, p in tagging.distribution(0).items() if name != label and p >= SHOWN]
    yield "\t" + (", ".join(f"{name} {p:.2f}" for name, p in others) or "–") + "\t", "bright_black"
    yield tagging.sentence.text, ""


def _opening(span: "Span") -> str:
    if span.confidence < FINDING:
        return f"({span.type}? {span.confidence:.2f} "
    return f"[{span.type} {span.confidence:.2f} "


def _style(span: "Span", tagging: "Tagging") -> str:
    return "red" if span.confidence < FINDING else f"bold {_colour(span.type, tagging)}"


def _sureness(confidence: float) -> str:
    return "green" if confidence >= SURE else "yellow" if confidence >= FINDING else "bold red"


def _colour(label: str, tagging: "Tagging") -> str:
    names = span_types(tagging.label_names) if tagging.kind is TaskKind.SPANS else sorted(tagging.label_names)
    return _COLOURS[names.index(label) % len(_COLOURS)] if label in names else ""
