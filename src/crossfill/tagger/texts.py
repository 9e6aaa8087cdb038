"""What a tagger takes as text: a sentence or a pair of sentences, as strings or as words, or a stream of them."""

from collections.abc import Iterable, Iterator, Sequence

from crossfill.data.segmentation import split_words
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Unit

Text = str | Sequence[str] | Sentence
"""A sentence, as words or as a string that is split into words; a pair, as two strings or as one with a tab between."""

CHUNK_SENTENCES, CHUNK_WORDS = 256, 8192
"""A stream is processed in chunks that end at this many sentences or words."""


def as_sentence(text: Text, language: str, unit: Unit = Unit.WORD) -> Sentence:
    """Convert words to a sentence; a string is first split into words by the rules of the language."""
    if unit is Unit.PAIR:
        return _as_pair(text, language)
    if isinstance(text, Sentence):
        if text.unit is Unit.PAIR:
            raise DataError(f"expected one sentence, got a pair: {text.text[:60]}")
        return text
    if isinstance(text, str):
        return split_words(text, language)
    words = tuple(text) if isinstance(text, Iterable) and not isinstance(text, bytes) else None
    if words is None or not all(isinstance(word, str) for word in words):
        raise DataError(f"expected a sentence as a string or as a list of words, got {_shown(text)}")
    return Sentence(words)


def chunked(sentences: Iterable[Sentence], most_sentences: int) -> Iterator[list[Sentence]]:
    """Cut the stream into parts of that many sentences, or of `CHUNK_WORDS` words if those are fewer."""
    chunk, n_words = [], 0
    for sentence in sentences:
        chunk.append(sentence)
        n_words += len(sentence)
        if len(chunk) >= most_sentences or n_words >= CHUNK_WORDS:
            yield chunk
            chunk, n_words = [], 0
    if chunk:
        yield chunk


def _as_pair(text: Text, language: str) -> Sentence:
    if isinstance(text, Sentence) and (text.unit is Unit.PAIR or not text.words):
        return text
    parts: Sequence[str] = ()
    if not isinstance(text, Sentence | bytes) and isinstance(text, Sequence):
        parts = text.split("\t") if isinstance(text, str) else text
    if len(parts) != 2 or not all(isinstance(part, str) and part.strip() for part in parts):
        raise DataError(f"expected a pair of sentences, as two strings or one with a tab between; got {_shown(text)}")
    first, second = (split_words(part, language) for part in parts)
    return Sentence.pair(first, second)


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text[:60]}{'…' if len(text) > 60 else ''}"
