"""Spans of characters in a text, and tags of its words in IOB2: one from the other."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from crossfill.data.labels import split_tag
from crossfill.data.segmentation import split_text
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence

Bounds = tuple[int, int]
"""Start and end (exclusive) of a word, in characters of its text."""


class TextSpan(NamedTuple):
    """A labelled stretch of a text, from `start` to `end` (exclusive), in characters."""

    start: int
    end: int
    label: str


def sentences_with_spans(text: str, spans: Sequence[TextSpan], language: str, split: list[str]) -> Iterator[Sentence]:
    """Yield the sentences of a text with the IOB2 tags of its spans; sentences that a span joins are one.

    A word in which a span begins or ends is split there, and added to the list `split`.
    """
    for bounds in cut_into_sentences(text, language, spans):
        inside = [span for span in spans if bounds[0][0] < span.end and bounds[-1][1] > span.start]
        cut = cut_at_spans(bounds, inside)
        split += [text[start:end] for start, end in bounds if (start, end) not in cut] if len(cut) > len(bounds) else []
        yield cut_with_spans(text, cut, inside)


def cut_into_sentences(text: str, language: str, spans: Sequence[TextSpan]) -> list[list[Bounds]]:
    """Cut a text into the words of each sentence; sentences that a span joins are one."""
    joined: list[list[Bounds]] = []
    for sentence in split_text(text, language):
        bounds = list(sentence.offsets)
        if joined and any(span.start < joined[-1][-1][1] and span.end > bounds[0][0] for span in spans):
            joined[-1] += bounds
        else:
            joined.append(bounds)
    return joined


def cut_with_spans(text: str, bounds: Sequence[Bounds], spans: Sequence[TextSpan]) -> Sentence:
    """Make the sentence of these words, with the IOB2 tags of spans."""
    cut = Sentence.cut(text, bounds)
    return Sentence(cut.words, tags_of(bounds, spans, text), cut.spaces)


def cut_at_spans(bounds: Iterable[Bounds], spans: Sequence[TextSpan]) -> list[Bounds]:
    """Cut the words in which a span begins or ends in two there."""
    places = sorted({place for span in spans for place in (span.start, span.end)})
    cut = []
    for start, end in bounds:
        inside = [place for place in places if start < place < end]
        cut += zip([start, *inside], [*inside, end], strict=True)
    return cut


def tags_of(bounds: Sequence[Bounds], spans: Sequence[TextSpan], text: str) -> tuple[str, ...]:
    """Tag words in IOB2; an error if spans overlap, hold no word, or begin or end within one."""
    tags = ["O"] * len(bounds)
    for span in sorted(spans):
        shown = f"'{text[span.start : span.end][:40]}' ({span.label}, {span.start} to {span.end})"
        inside = [i for i, (start, end) in enumerate(bounds) if start < span.end and end > span.start]
        if not inside:
            raise DataError(f"expected words in the span {shown}, got none; correct its start and end")
        if bounds[inside[0]][0] < span.start or bounds[inside[-1]][1] > span.end:
            start, end = next(
                b for b in (bounds[inside[0]], bounds[inside[-1]]) if b[0] < span.start or b[1] > span.end
            )
            raise DataError(
                f"expected spans of whole words, got {shown}, which cuts '{text[start:end][:40]}'; correct the span, "
                "or split the word"
            )
        if any(tags[i] != "O" for i in inside):
            raise DataError(f"expected spans that do not overlap, got {shown} over another; keep one of them")
        tags[inside[0]] = f"B-{span.label}"
        for i in inside[1:]:
            tags[i] = f"I-{span.label}"
    return tuple(tags)


def spans_of(tags: Sequence[str], bounds: Sequence[Bounds]) -> list[TextSpan]:
    """Return the spans that IOB2 tags of words stand for."""
    spans: list[TextSpan] = []
    for tag, (start, end) in zip(tags, bounds, strict=True):
        prefix, kind = split_tag(tag) or ("O", "")
        if prefix == "I" and spans:
            spans[-1] = spans[-1]._replace(end=end)
        elif prefix != "O":
            spans.append(TextSpan(start, end, kind))
    return spans
