"""The surface of words: what their written form says in any language and script, next to an encoder's vector.

Case, digits, punctuation, length, place in the sentence, and frequency in unlabelled text: some thirty numbers that
need no training and mean the same everywhere (`encoder.surface`).
"""

import copy
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossfill.encoders.base import Dropout
from crossfill.grid.sentence import Corpus

BUCKETS = 8192
"""Counters of words for each language; words that share one are counted together."""
DROPOUT = 0.1
"""Dropout on the surface of a word."""
SCALE = 3.0
"""Factor on the surface, so that some thirty numbers weigh something next to an encoder's hundreds."""
FORM = (
    "upper first", "upper all", "upper within", "cased", "digit", "digits only", "punctuation", "punctuation only",
    "symbol", "hyphen", "apostrophe", "full stop", "mark", "length", "1 character", "2 characters", "3–4 characters",
    "5–7 characters", "8–11 characters", "12 characters or more",
)  # fmt: skip
PLACE = (
    "first", "last", "position", "sentence length", "upper, not first", "after punctuation", "before punctuation",
    "after upper", "before upper", "before upper, and upper", "after upper, and upper",
)  # fmt: skip
COUNT = ("frequency", "never counted", "frequent", "rare, upper, not first")
NAMES = (*FORM, *PLACE, *COUNT)
"""What each number is, in order."""


class Surface(nn.Module):
    """dropout(SCALE (s − mean of the language)), s the surface of a word."""

    counts: Int[Tensor, "languages buckets"]
    """How often the words of each bucket occur in a language's unlabelled text."""
    mean: Float[Tensor, "languages surface"]

    def __init__(self, n_languages: int) -> None:
        super().__init__()
        self.register_buffer("counts", torch.zeros(n_languages, BUCKETS, dtype=torch.int32))
        self.register_buffer("mean", torch.zeros(n_languages, len(NAMES)))
        self.dropout = Dropout(DROPOUT)

    def forward(
        self, forms: Float[Tensor, "words forms"], buckets: Int[Tensor, "words"], rows: Int[Tensor, "words"]
    ) -> Float[Tensor, "words surface"]:
        """Compute the surface of each word as one of the language in this row, by its form and its counter.

        In training, whose text was counted, a word is counted without this occurrence, so that words are as often new
        there as in other text.
        """
        return self.dropout(SCALE * (self._surface(forms, buckets, rows, counted=self.training) - self.mean[rows]))

    @torch.no_grad()
    def fit(self, row: int, corpora: Sequence[Corpus]) -> None:
        """Count words, and average surfaces, on a language's unlabelled text."""
        texts = [corpus for corpus in corpora if len(corpus)]
        if not texts:
            return
        buckets = torch.cat([word_buckets(text) for text in texts])
        self.counts[row] = buckets.bincount(minlength=BUCKETS).to(self.counts)
        forms, rows = torch.cat([word_forms(text) for text in texts]), torch.full_like(buckets, row)
        self.mean[row] = self._surface(forms, buckets, rows.to(self.mean.device), counted=True).mean(0)

    def with_language(self, text: Corpus) -> "Surface":
        """Copy the surface with one more language, of which there is this text; all others stay as they are."""
        grown = self._with(lambda rows: torch.cat([rows, torch.zeros_like(rows[:1])]))
        grown.fit(len(self.counts), [text])
        return grown

    def of_language(self, row: int) -> "Surface":
        """Copy the surface with the language of this row alone."""
        return self._with(lambda rows: rows[row : row + 1])

    def _with(self, change: Callable[[Tensor], Tensor]) -> "Surface":
        changed = copy.copy(self)
        changed._buffers = {name: change(buffer) for name, buffer in self.named_buffers()}
        return changed

    def _surface(
        self,
        forms: Float[Tensor, "words forms"],
        buckets: Int[Tensor, "words"],
        rows: Int[Tensor, "words"],
        counted: bool,
    ) -> Float[Tensor, "words surface"]:
        known = forms.to(self.mean)
        totals = self.counts.sum(1).to(self.mean)
        others = (self.counts[rows, buckets.to(rows.device)] - int(counted)).clamp(min=0)
        share = others / totals[rows].clamp(min=1)
        rare_name = known[:, NAMES.index("upper, not first")] * (share < 5e-4)
        frequency = (share + 1e-6).log10() / 3 + 1.5  # −0.5 for a word that was never counted, 1.5 for every word
        numbers = torch.stack([frequency, (share == 0).float(), (share > 5e-3).float(), rare_name], 1)
        return torch.cat([known, numbers * (totals[rows] > 0)[:, None]], 1)


def word_buckets(corpus: Corpus) -> Int[Tensor, "words"]:
    """Find the counter of every word."""
    buckets = np.array([bucket(word) for word in corpus.words.vocabulary], dtype=np.int64)
    return torch.from_numpy(buckets[np.array(corpus.words.codes)])


def word_forms(corpus: Corpus) -> Float[Tensor, "words forms"]:
    """Compute the form and place of every word."""
    vocabulary, codes = corpus.words.vocabulary, corpus.words.codes
    of_form = np.array([form(word) for word in vocabulary], dtype=np.float32).reshape(len(vocabulary), len(FORM))[codes]
    return torch.from_numpy(with_places(of_form, corpus.lengths))


def with_places(of_form: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Put the place of each word beside its form (words × numbers), in sentences of these lengths."""
    upper, closing = of_form[:, FORM.index("upper first")], of_form[:, FORM.index("punctuation only")]
    size = np.repeat(lengths, lengths)
    position = np.arange(len(of_form)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first, last = position == 0, position == size - 1
    before, after = np.where(first, 0, np.roll(upper, 1)), np.where(last, 0, np.roll(upper, -1))
    place = (
        first, last, position / np.maximum(1, size - 1), np.log1p(size) / 4, upper * ~first,
        np.where(first, 0, np.roll(closing, 1)), np.where(last, 0, np.roll(closing, -1)),
        before, after, after * upper, before * upper,
    )  # fmt: skip
    return np.column_stack([of_form, *place]).astype(np.float32)


def surface_of(sentences: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
    """Compute the inputs `forms` and `buckets` of an exported graph: sentences × words, with zeros after the last."""
    shape = len(sentences), max(map(len, sentences))
    buckets = np.zeros(shape, np.int64)
    forms = np.zeros((*shape, len(FORM) + len(PLACE)), np.float32)
    for row, words in enumerate(sentences):
        buckets[row, : len(words)] = [bucket(word) for word in words]
        of_form = np.array([form(word) for word in words], np.float32).reshape(len(words), len(FORM))
        forms[row, : len(words)] = with_places(of_form, np.array([len(words)]))
    return {"forms": forms, "buckets": buckets}


@lru_cache(maxsize=2**18)
def bucket(word: str) -> int:
    """Find the counter of a word; upper and lower case are one."""
    return zlib.crc32(word.casefold().encode("utf-8", "surrogatepass")) % BUCKETS


@lru_cache(maxsize=2**18)
def form(word: str) -> tuple[float, ...]:
    """Compute the features of a word's form, by Unicode's categories of its characters."""
    categories = [unicodedata.category(character) for character in word]
    n = len(word)
    letters = [i for i, category in enumerate(categories) if category[0] == "L"]
    upper = [category in ("Lu", "Lt") for category in categories]
    digits, marks, signs, symbols = (sum(category[0] == kind for category in categories) for kind in "NMPS")
    base = n - marks
    all_upper = len(letters) > 1 and all(upper[i] for i in letters)
    return (
        bool(upper and upper[0]), all_upper, any(upper[1:]) and not all_upper,
        any(word[i].lower() != word[i].upper() for i in letters),
        digits > 0, digits > 0 and not letters,
        signs > 0, 0 < signs == n, symbols > 0,
        n > 1 and "Pd" in categories, n > 1 and any(c in "'’ʼ`ʻ" for c in word), n > 1 and "." in word,
        marks > 0, float(np.log1p(base)) / 2,
        base == 1, base == 2, 3 <= base <= 4, 5 <= base <= 7, 8 <= base <= 11, base >= 12,
    )  # fmt: skip
