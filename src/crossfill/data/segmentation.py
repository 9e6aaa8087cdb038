"""Split raw text into sentences (with sentencex) and words (with ICU), in any language.

Both know many languages and fall back to general rules for the rest. ICU splits scripts without spaces (Thai, Khmer,
Chinese, Japanese, …) by dictionary.
"""

from collections.abc import Iterator

from crossfill.data.codes import language_tag
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence


def split_text(text: str, language: str) -> Iterator[Sentence]:
    """The sentences of raw text, each split into words; no sentence spans two lines."""
    for line in text.splitlines():
        for sentence in split_sentences(line, language) if line.strip() else ():
            if words := split_words(sentence, language):
                yield words


def split_sentences(text: str, language: str) -> Iterator[str]:
    """The sentences of a paragraph."""
    try:
        from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError:
        raise _missing() from None
    for sentence in segment(language_tag(language), text):
        if stripped := sentence.strip():
            yield stripped


def split_words(text: str, language: str) -> Sentence:
    """The words of a sentence and the spaces between them, so that `Sentence.text` gives the text back.

    Runs of white space count as one space.
    """
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        raise _missing() from None
    words: list[str] = []
    spaces: list[bool] = []
    for piece in WordBreaker(" ".join(text.split()), language_tag(language)):
        if piece.isspace():
            if spaces:
                spaces[-1] = True
        else:
            words.append(piece)
            spaces.append(False)
    return Sentence(tuple(words), (), tuple(spaces))


def _missing() -> DataError:
    return DataError(
        "expected a sentence splitter and word tokenizer for raw text, found none; install them "
        "(pip install 'crossfill[text]'), or pass words separated by spaces with --tokenised"
    )
