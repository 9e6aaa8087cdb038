"""A frozen pretrained encoder: every corpus is encoded once, and its word vectors are cached on disk."""

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.config import EncoderConfig
from crossfill.encoders import hub
from crossfill.encoders.base import Encoder, Inputs, expect, ranges
from crossfill.encoders.cache import Blocks, FeatureCache
from crossfill.encoders.features import Dropout, FeatureInputs
from crossfill.encoders.huggingface import LayerMix, Source, WordEncoder, check_settings
from crossfill.encoders.surface import NAMES, Surface, SurfaceInputs
from crossfill.errors import DataError, EncoderError, unknown
from crossfill.grid.sentence import Corpus
from crossfill.progress import ProgressBar, Report

_LARGEST = float(np.finfo(np.float16).max)
PART_WORDS = 2**12
"""Words of a long corpus that are encoded and stored at a time: seconds of work on two cores."""
_DTYPES = {2: torch.float16, 4: torch.float32}
_NO_SCALE = 1e-6
_ROWS_AT_ONCE = 2**14


@dataclass(frozen=True)
class FrozenInputs(Inputs):
    """The cached vectors of a corpus, the language that each sentence is centred as, and the surface of its words."""

    given: FeatureInputs
    languages: Int[Tensor, "sentences"]
    surface: SurfaceInputs | None = None

    @property
    def lengths(self) -> Int[Tensor, "sentences"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.given.lengths

    def take(self, sentences: Int[Tensor, "chosen"]) -> "FrozenInputs":
        surface = None if self.surface is None else self.surface.take(sentences)
        return FrozenInputs(self.given.take(sentences), self.languages[sentences], surface)

    def followed_by(self, others: Sequence[Inputs]) -> "FrozenInputs":
        parts = [expect(other, FrozenInputs) for other in others]
        given = self.given.followed_by([part.given for part in parts])
        surfaces = [part.surface for part in parts if part.surface is not None]
        surface = None if self.surface is None else self.surface.followed_by(surfaces)
        return FrozenInputs(given, torch.cat([self.languages, *(part.languages for part in parts)]), surface)


@dataclass(frozen=True)
class Moments:
    """Sums over words from which mean and standard deviation are computed."""

    count: int
    total: Float[np.ndarray, "features"]
    squares: Float[np.ndarray, "features"]

    @classmethod
    def of(cls, parts: Iterable[np.ndarray], width: int) -> "Moments":
        count, total, squares = 0, np.zeros(width), np.zeros(width)
        for part in parts:
            for start in range(0, len(part), _ROWS_AT_ONCE):
                rows = part[start : start + _ROWS_AT_ONCE].astype(np.float64)
                count, total, squares = count + len(rows), total + rows.sum(0), squares + (rows**2).sum(0)
        return cls(count, total, squares)

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.count + other.count, self.total + other.total, self.squares + other.squares)

    def summary(self) -> tuple[Float[np.ndarray, "features"], Float[np.ndarray, "features"]]:
        """Compute mean and standard deviation, which is 1 for features that do not vary: they are not scaled."""
        mean = self.total / max(1, self.count)
        scale = np.sqrt(np.maximum(0.0, self.squares / max(1, self.count) - mean**2))
        return mean, np.where(scale > _NO_SCALE, scale, 1.0)


class FrozenEncoder(Encoder):
    """x = dropout((v − mean of the language) / scale of the language), v the cached vector of a word.

    With `encoder.surface`, the surface of the word follows it. Means and scales are estimated on unlabelled text.
    They are saved with the model, and so is the encoder's identity, so that a model is never used with another encoder.
    """

    mean: Float[Tensor, "languages features"]
    scale: Float[Tensor, "languages features"]
    identity: Int[Tensor, "bytes"]
    is_centred = True

    def __init__(
        self,
        config: EncoderConfig,
        languages: Sequence[str],
        cache: Path | bool = True,
        quiet: bool = True,
        source: Source | None = None,
    ) -> None:
        """`source`: the pretrained model, if it was found before."""
        super().__init__()
        self.config, self.languages, self.quiet = config.pretrained, tuple(languages), quiet
        self.source = source or Source.find(config.name)
        check_settings(self.source, self.config)
        self.cache = FeatureCache(cache)
        self.mix = LayerMix(self.source.n_layers + 1) if self.config.layer == "mix" else None
        self.surface = Surface(len(languages)) if config.surface else None
        self.n_features = self.source.size + (len(NAMES) if config.surface else 0)
        self.width = self.source.size * (self.source.n_layers + 1 if self.mix else 1)
        self.own_identity = hub.identity(self.source.folder)
        self.register_buffer("mean", torch.zeros(len(languages), self.width))
        self.register_buffer("scale", torch.ones(len(languages), self.width))
        self.register_buffer("identity", torch.tensor(list(self.own_identity), dtype=torch.uint8))
        self.dropout = Dropout(config.dropout)
        self.n_without_piece = 0
        """Number of words encoded so far that the tokenizer produced no piece for."""
        self.keep_open = False
        """Whether to keep the vectors of all corpora open, for processes that train several models on them."""
        self._opened: dict[str, np.ndarray] = {}
        self._moments: dict[str, Moments] = {}
        self._encoder: list[WordEncoder] = []  # a list, so that it is no submodule; loaded if the cache lacks a corpus

    def prepare(self, corpus: Corpus, language: str = "") -> FrozenInputs:
        row = self._row(language)
        features = torch.from_numpy(self.vectors(corpus))
        given = FeatureInputs(features, torch.from_numpy(corpus.lengths), checked=True)
        surface = None if self.surface is None else SurfaceInputs.of(corpus)
        return FrozenInputs(given, torch.full((len(corpus),), row), surface)

    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        inputs = expect(inputs, FrozenInputs)
        vectors = inputs.given.features.to(self.mean.device, self.mean.dtype)
        rows = torch.repeat_interleave(inputs.languages, inputs.lengths).to(self.mean.device)
        if self.config.centring != "none":
            vectors = vectors - self.mean[rows]
        if self.config.centring == "standard":
            vectors = vectors / self.scale[rows]
        if self.mix is not None:
            vectors = self.mix(vectors.unflatten(1, (-1, self.source.size)))
        vectors = self.dropout(vectors)
        if self.surface is None or inputs.surface is None:
            return vectors
        return torch.cat([vectors, self.surface(inputs.surface, rows)], dim=1)

    @torch.no_grad()
    def centre_on(self, texts: Mapping[str, Sequence[Corpus]]) -> None:
        """Estimate each language's mean and standard deviation on its unlabelled text; without any, on all text."""
        if self.surface is not None:
            for language, corpora in texts.items():
                self.surface.fit(self._row(language), corpora)
        if self.config.centring == "none":
            return
        of_language = {language: self._moments_of(corpora) for language, corpora in texts.items()}
        everything = sum(of_language.values(), start=Moments.of((), self.width))
        for language in self.languages:
            moments = of_language.get(language, everything)
            moments = moments if moments.count else everything
            mean, scale = moments.summary()
            self.mean[self._row(language)] = torch.from_numpy(mean)
            if self.config.centring == "standard":
                self.scale[self._row(language)] = torch.from_numpy(scale)

    @torch.no_grad()
    def with_language(self, language: str, text: Corpus) -> "FrozenEncoder":
        """Copy the encoder with one more language, centred on this text of it; all others stay as they are."""
        grown = copy.copy(self)
        grown._buffers, grown.languages = dict(self._buffers), (*self.languages, language)
        mean, scale = self._moments_of([text]).summary()
        centred, standard = self.config.centring != "none", self.config.centring == "standard"
        rows = torch.from_numpy(np.stack([mean * centred, scale if standard else np.ones_like(scale)])).to(self.mean)
        grown.mean, grown.scale = (
            torch.cat([old, new[None]]) for old, new in zip((self.mean, self.scale), rows, strict=True)
        )
        if self.surface is not None:
            grown._modules = self._modules | {"surface": self.surface.with_language(text)}
        return grown

    def recentred(self, inputs: Inputs, language: str) -> FrozenInputs:
        inputs = expect(inputs, FrozenInputs)
        return FrozenInputs(inputs.given, torch.full_like(inputs.languages, self._row(language)), inputs.surface)

    def centroids(self) -> dict[str, Float[np.ndarray, "width"]]:
        if self.config.centring == "none":
            return {}
        return {language: self.mean[row].cpu().numpy() for row, language in enumerate(self.languages)}

    def _moments_of(self, corpora: Sequence[Corpus]) -> "Moments":
        total = Moments.of((), self.width)
        for corpus in corpora:
            text = corpus.text_hash
            if text not in self._moments:
                self._moments[text] = Moments.of([self.vectors(corpus)], self.width)
            total = total + self._moments[text]
        return total

    def vectors(self, corpus: Corpus) -> np.ndarray:
        """Return the word vectors of a corpus: in float16 from the cache, or in float32 if there is no cache."""
        if bytes(self.identity.tolist()) != self.own_identity:
            raise EncoderError(
                f"encoder '{self.source.name}': expected the one this model was trained over, found other weights in "
                f"{self.source.folder}; name the right one or train again"
            )
        corpus, text = corpus.text(), corpus.text_hash
        if text in self._opened:
            return self._opened[text]
        stored: list[Corpus] = []
        vectors = self._fetch(corpus, {"text": text}, lambda: self._encode_in_parts(corpus, stored))
        for part in stored:
            self.cache.drop(*self._entry(part, {"part": part.text_hash}))
        if self.keep_open:
            self._opened[text] = vectors
        return vectors

    def is_cached(self, corpus: Corpus, whole: bool = True) -> bool:
        """Whether the vectors of a corpus, or of a part of a long one, are in the cache."""
        text = corpus.text_hash
        name = {"text" if whole else "part": text}
        return (whole and text in self._opened) or self.cache.holds(*self._entry(corpus, name))

    def parts(self, corpus: Corpus) -> list[Corpus]:
        """Split a corpus into parts that can be encoded in any order and by any process; one, if it is short."""
        return list(_parts(corpus))

    def store(self, corpus: Corpus, whole: bool, report: Report | None = None) -> None:
        """Encode a corpus, or a part of a long one, into the cache; `vectors` puts the long one together."""

        def count(words: int) -> None:
            if report is not None:
                report(words, "words")

        name = {"text" if whole else "part": corpus.text_hash}
        self._fetch(corpus, name, lambda: [self._encode(corpus, count)])

    def _entry(
        self, corpus: Corpus, name: Mapping[str, str]
    ) -> tuple[dict[str, Any], tuple[int, int], Literal["<f2", "<f4"]]:
        """Describe the features of a corpus, or of a part of one, to the cache."""
        return {**self._about(), **name}, (corpus.n_words, self.width), self._dtype

    @property
    def _dtype(self) -> Literal["<f2", "<f4"]:
        return "<f2" if self.cache.folder is not None else "<f4"

    def _fetch(self, corpus: Corpus, name: Mapping[str, str], blocks: Blocks) -> np.ndarray:
        return self.cache.fetch(*self._entry(corpus, name), blocks, label=self.source.name)

    def _encode_in_parts(self, corpus: Corpus, stored: list[Corpus]) -> Iterator[np.ndarray]:
        """Encode a corpus part by part.

        Each part of a long corpus is `stored` by itself, so that a process that is killed loses only one of them.
        """
        parts = self.parts(corpus) if self.cache.folder is not None else [corpus]
        with ProgressBar(self.quiet) as bars:
            update = bars.add(f"Encoding {len(corpus):,} sentences", corpus.n_words)
            done = 0
            update(done, "words")
            for part in parts:

                def blocks(part: Corpus = part, before: int = done) -> list[np.ndarray]:
                    return [self._encode(part, lambda words: update(before + words, "words"))]

                if len(parts) == 1:
                    yield from blocks()
                else:
                    yield self._fetch(part, {"part": part.text_hash}, blocks)
                    stored.append(part)
                done += part.n_words
                update(done, "words")

    def _about(self) -> dict[str, Any]:
        """List all that a word's vector depends on, besides the text."""
        names = ("layer", "pooling", "max_pieces", "overlap", "precision")
        return {"encoder": self.own_identity.hex()} | {name: getattr(self.config, name) for name in names}

    @property
    def settings_hash(self) -> str:
        """Hash all that a word's vector depends on, besides the text."""
        return blake2b(json.dumps(self._about(), sort_keys=True).encode(), digest_size=4).hexdigest()

    def _network(self) -> WordEncoder:
        if not self._encoder:
            precision = torch.bfloat16 if self.config.precision == "bfloat16" else torch.float32
            self._encoder.append(WordEncoder(self.source, self.config, precision).eval().to(self.mean.device))
        return self._encoder[0]

    def _encode(self, corpus: Corpus, report: Callable[[int], None] = lambda _words: None) -> np.ndarray:
        """Compute the vectors of all words; `report` is called with the number of words done."""
        encoder = self._network()
        inputs = encoder.cutter.cut(corpus)
        self.n_without_piece += inputs.n_without_piece
        starts = np.array(corpus.offsets[:-1])  # a copy, as the corpus is mapped read-only
        rows = np.zeros((corpus.n_words, self.width), self._dtype)
        done = 0
        for sentences, vectors in encoder.encode(inputs):
            places = ranges(torch.from_numpy(starts)[sentences], inputs.lengths[sentences]).numpy()
            rows[places] = _checked(vectors, self.source.name).to(_DTYPES[rows.dtype.itemsize]).cpu().numpy()
            done += len(places)
            report(done)
        return rows

    def _row(self, language: str) -> int:
        if language in self.languages:
            return self.languages.index(language)
        if self.config.centring == "none" and self.surface is None:
            return 0
        raise DataError(unknown("language", language, self.languages) + "; centring needs to know it")


def _parts(corpus: Corpus) -> Iterator[Corpus]:
    """Cut a corpus into runs of sentences of about `PART_WORDS` words, in their order."""
    which = np.array(corpus.offsets[1:]) // PART_WORDS
    ends = np.flatnonzero(np.diff(which, append=-1)) + 1
    for start, end in pairwise([0, *ends.tolist()]):
        yield corpus if end - start == len(corpus) else corpus[start:end]


def _checked(vectors: Float[Tensor, "words features"], name: str) -> Float[Tensor, "words features"]:
    """Check that vectors fit into float16, and return them."""
    if not bool((vectors.abs() <= _LARGEST).all()):
        largest = "NaN or infinity" if not bool(torch.isfinite(vectors).all()) else f"{float(vectors.abs().max()):.0f}"
        raise EncoderError(
            f"encoder '{name}': expected features of at most {_LARGEST:.0f}, got {largest}; "
            "choose another encoder.pretrained.layer, or precision float32"
        )
    return vectors
