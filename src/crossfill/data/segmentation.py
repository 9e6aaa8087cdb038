"""Split raw text into sentences and words, in any language, and at labelled spans.

The rules are those of sentencex and ICU, which know many languages and have general rules for the rest. ICU splits
scripts without spaces (Thai, Khmer, Chinese, Japanese, …) by dictionary. A model knows more of the languages that it
was trained on (`boundaries`).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from crossfill.data.boundaries import Bounds, Segmentation, Token, icu_places, sentence_lengths
from crossfill.data.labels import split_tag
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence

LONGEST_WINDOW = 50_000  # most characters that are split into sentences at a time
_WORD = re.compile(r"\S+")
_BLANK_LINE = re.compile(r"\n\s*\n|[\f\u2029]")


class TextSpan(NamedTuple):
    """A labelled stretch of a text, from `start` to `end` (exclusive), in characters."""

    start: int
    end: int
    label: str


class SpanIndex:
    """The spans of a text by their places, to find those of a sentence without a look at all others."""

    def __init__(self, spans: Iterable[TextSpan]) -> None:
        self._spans = sorted(spans)
        self._starts = [span.start for span in self._spans]
        self._ends = list(accumulate((span.end for span in self._spans), max))  # the last up to each span

    def between(self, start: int, end: int) -> list[TextSpan]:
        """List the spans that have a part between two places."""
        some = self._spans[bisect_right(self._ends, start) : bisect_left(self._starts, end)]
        return [span for span in some if span.end > start]

    def join(self, before: int, after: int) -> bool:
        """Tell whether a span begins before the first place and ends after the second."""
        n_begun = bisect_left(self._starts, before)
        return n_begun > 0 and self._ends[n_begun - 1] > after


@dataclass(frozen=True)
class Segmenter:
    """Splits raw text of a language into sentences and words: by rules, or as treebanks teach."""

    language: str
    learnt: Segmentation | None = None
    whole: bool = False
    """Whether a contraction stays one word unless its words are parts of it."""

    def split_text(self, text: str) -> Iterator[Sentence]:
        """Split a text into its sentences; none spans a blank line."""
        ends = [*(blank.end() for blank in _BLANK_LINE.finditer(text)), len(text)]
        for start, end in pairwise((0, *ends)):
            for offset, tokens in self._sentences(text, start, end):
                yield self._sentence(text, offset, tokens)

    def split_words(self, text: str, start: int = 0, end: int | None = None) -> Sentence:
        """Split the words of a sentence, `text` from `start` to `end`; they hold all its characters but white space."""
        parts = self._sentences(text, start, len(text) if end is None else end, one=True)
        return self._sentence(text, 0, [((o + a, o + b), words) for o, tokens in parts for (a, b), words in tokens])

    def _sentences(self, text: str, start: int, end: int, one: bool = False) -> Iterator[tuple[int, list[Token]]]:
        """Yield the tokens of each sentence of a paragraph, or of `one`, and where these are counted from.

        A long paragraph is looked at in windows, each from where the last whole sentence ended: with quotes and
        brackets, the time that sentencex takes grows with the square of the length.
        """
        while start < end:
            window = text[start : min(end, start + LONGEST_WINDOW)]
            sentences, length = self._cut(window, one), len(window)
            if start + length < end:  # the last sentence may go on
                length = sentences[-1][0][0][0] if len(sentences) > 1 else window.rfind(" ") + 1 or length
                sentences = sentences[:-1] or self._cut(window[:length], one)
            yield from ((start, tokens) for tokens in sentences)
            start += length

    def _cut(self, window: str, one: bool) -> list[list[Token]]:
        if self.learnt is not None:
            return self.learnt.cut(window, self.language, one)
        sentences, start = list[list[Token]](), 0
        for length in [len(window)] if one else sentence_lengths(window, self.language):
            places = icu_places(window[start : start + length], self.language)
            # a piece can begin or end with a space: before a combining mark, or if the space must not break
            pieces = (_WORD.finditer(window, start + a, start + b) for a, b in pairwise(places))
            sentences.append([(word.span(), []) for piece in pieces for word in piece])
            start += length
        return [tokens for tokens in sentences if tokens]

    def _sentence(self, text: str, start: int, tokens: Sequence[Token]) -> Sentence:
        bounds = [(start + a, start + b) for (a, b), _ in tokens]
        contractions = {start + a: words for (a, _), words in tokens if words}
        if self.whole:
            contractions = {a: words for a, words in contractions.items() if text.startswith("".join(words), a)}
        return Sentence.cut(text, bounds, contractions)


def split_at_spaces(text: str, start: int = 0, end: int | None = None) -> Sentence:
    """Split the words of a sentence, `text` from `start` to `end`, that has white space between all its words."""
    words = list(_WORD.finditer(text, start, len(text) if end is None else end))
    return Sentence(tuple(word[0] for word in words), (), (), text, tuple(word.start() for word in words))


def sentences_with_spans(text: str, spans: Sequence[TextSpan], language: str, split: list[str]) -> Iterator[Sentence]:
    """Yield the sentences of a text with the IOB2 tags of its spans; sentences that a span joins are one.

    A word in which a span begins or ends is split there, and added to the list `split`.
    """
    index = SpanIndex(spans)
    for bounds in cut_into_sentences(text, language, index):
        inside = index.between(bounds[0][0], bounds[-1][1])
        cut = cut_at_spans(bounds, inside)
        whole = {*cut}
        split += [text[start:end] for start, end in bounds if (start, end) not in whole]
        yield cut_with_spans(text, cut, inside)


def cut_into_sentences(text: str, language: str, spans: SpanIndex) -> list[list[Bounds]]:
    """Cut a text into the words of each sentence; sentences that a span joins are one."""
    joined: list[list[Bounds]] = []
    for sentence in Segmenter(language).split_text(text):
        bounds = list(sentence.offsets)
        if joined and spans.join(joined[-1][-1][1], bounds[0][0]):
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
        inside = places[bisect_right(places, start) : bisect_left(places, end)]
        cut += zip([start, *inside], [*inside, end], strict=True)
    return cut


def tags_of(bounds: Sequence[Bounds], spans: Sequence[TextSpan], text: str) -> tuple[str, ...]:
    """Tag words in IOB2; an error if spans overlap, hold no word, or begin or end within one."""
    tags, starts, ends = ["O"] * len(bounds), [start for start, _ in bounds], [end for _, end in bounds]
    for span in sorted(spans):
        shown = f"'{text[span.start : span.end][:40]}' ({span.label}, {span.start} to {span.end})"
        inside = range(bisect_right(ends, span.start), bisect_left(starts, span.end))
        if not inside:
            raise DataError(f"expected words in the span {shown}, got none; correct its start and end")
        if cut := [text[a:b] for a, b in (bounds[i] for i in inside) if a < span.start or b > span.end]:
            raise DataError(
                f"expected spans of whole words, got {shown}, which cuts '{cut[0][:40]}'; correct the span, or split "
                "the word"
            )
        if any(tags[i] != "O" for i in inside):
            raise DataError(f"expected spans that do not overlap, got {shown} over another; keep one of them")
        for i in inside:
            tags[i] = f"{'B' if i == inside[0] else 'I'}-{span.label}"
    return tuple(tags)


def spans_of(tags: Sequence[str], bounds: Sequence[Bounds]) -> list[TextSpan]:
    """Return the spans that IOB2 tags of words stand for."""
    spans: list[TextSpan] = []
    for previous, tag, (start, end) in zip(("", *tags), tags, bounds, strict=False):
        prefix, kind = split_tag(tag) or ("O", "")
        if prefix == "I" and spans and split_tag(previous):
            spans[-1] = spans[-1]._replace(end=end)
        elif prefix != "O":
            spans.append(TextSpan(start, end, kind))
    return spans
