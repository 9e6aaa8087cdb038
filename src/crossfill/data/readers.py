"""Readers of corpus files, by file suffix. To add a format, write a reader and add its suffix to `READERS`."""

from collections.abc import Callable
from dataclasses import replace
from unicodedata import is_normalized

from crossfill.data import bio, conllu
from crossfill.data.labels import LabelColumn, iob2, scheme
from crossfill.data.storage import Reading
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus, Sentence

Reader = Callable[[bytes, str, str], Reading]
"""Reads a corpus from the bytes of a file, its name for error messages, and the task to read."""
VERSION = "2"
"""To be raised when the same bytes would be read differently, so that older cache entries are ignored."""


def read_conllu(data: bytes, where: str, task: str) -> Reading:
    """Read the words of a CoNLL-U file, with labels from the column that the task names."""
    try:
        label = LabelColumn(task)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    return composed(Corpus.from_sentences(sentence.sentence(label) for sentence in conllu.parse(data, where)))


def read_columns(data: bytes, where: str, task: str) -> Reading:  # noqa: ARG001
    """Read words and labels from the first and last token column; span tags of any scheme become IOB2."""
    tagged, prefix = bio.without_prefix(list(bio.parse(data, where)))
    found, repaired = scheme(sentence.tags for sentence in tagged)
    tags = (sentence.tags if found == "none" else tuple(iob2(sentence.tags)) for sentence in tagged)
    corpus = Corpus.from_sentences(Sentence(s.words, t) for s, t in zip(tagged, tags, strict=True))
    return replace(composed(corpus), scheme=found, repaired=repaired, prefix=prefix)


def composed(corpus: Corpus) -> Reading:
    """The corpus with its words in composed form (NFC), and the number of words that were not."""
    found = corpus.composed()
    changed = {} if found is corpus else corpus.words.counts()
    return Reading(found, normalised=sum(n for word, n in changed.items() if not is_normalized("NFC", word)))


COLUMNS = (".bio", ".iob", ".iob1", ".iob2", ".bioes", ".bilou", ".conll")
PLAIN = (".tsv", ".txt", "")
"""Suffixes of corpora only if the file is named after a split."""
READERS: dict[str, Reader] = {".conllu": read_conllu, **dict.fromkeys((*COLUMNS, *PLAIN), read_columns)}
