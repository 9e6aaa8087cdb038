"""Names of sentences: short strings that are the same for the same text, whoever labels it."""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise

from crossfill.grid.sentence import Corpus, Sentence


def sentence_hashes(corpus: Corpus) -> tuple[str, ...]:
    """Hash the words of each sentence, so that sentences that were adapted to are recognised in test data."""
    words = list(corpus.words)
    return tuple(_hash("\n".join(words[start:end])).hex() for start, end in pairwise(corpus.offsets.tolist()))


def text_key(sentence: Sentence) -> str:
    """Hash a sentence's characters without white space: it does not matter what words they are cut into."""
    return _hash("".join("".join(sentence.words).split())).hex()


def letters(corpus: Corpus) -> Iterator[tuple[str, ...]]:
    """Yield the letters of each sentence, or of the two of each pair: the same for any cut into words."""
    text = corpus.text()
    words = list(text.words)
    parts = ("".join(words[start:end]) for start, end in pairwise(text.offsets.tolist()))
    return zip(*[parts] * corpus.unit.n_sentences, strict=True)


def fraction(text: str) -> float:
    """Return a number from 0 to 1 that depends on the text alone."""
    return int.from_bytes(_hash(text), "big") / 2**64


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
