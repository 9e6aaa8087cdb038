"""A frozen pretrained encoder: every corpus is encoded once, and its word vectors are cached on disk."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.config import EncoderConfig
from crossfill.encoders import hub
from crossfill.encoders.base import CentredEncoder, Inputs, expect, ranges
from crossfill.encoders.cache import FeatureCache
from crossfill.encoders.features import Dropout, FeatureInputs
from crossfill.encoders.huggingface import Source, WordEncoder, check_settings
from crossfill.encoders.transformer import LayerMix
from crossfill.errors import DataError, EncoderError, unknown
from crossfill.grid.sentence import Corpus
from crossfill.progress import ProgressBar

_LARGEST = float(np.finfo(np.float16).max)
_NO_SCALE = 1e-6
_ROWS_AT_ONCE = 2**14
_DTYPES = {2: torch.float16, 4: torch.float32}


@dataclass(frozen=True)
class FrozenInputs(Inputs):
    """The cached vectors of a corpus, and the language that each sentence is centred as."""

    given: FeatureInputs
    languages: Int[Tensor, "sentences"]

    @property
    def lengths(self) -> Int[Tensor, "sentences"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.given.lengths

    def take(self, sentences: Int[Tensor, "chosen"]) -> "FrozenInputs":
        return FrozenInputs(self.given.take(sentences), self.languages[sentences])

    def followed_by(self, others: Sequence[Inputs]) -> "FrozenInputs":
        parts = [expect(other, FrozenInputs) for other in others]
        given = self.given.followed_by([part.given for part in parts])
        return FrozenInputs(given, torch.cat([self.languages, *(part.languages for part in parts)]))


class FrozenEncoder(CentredEncoder):
    """x = dropout((v − mean of the language) / scale of the language), v the cached vector of a word.

    Means and scales are estimated on unlabelled text. They are saved with the model, and so is the encoder's identity,
    so that a model is never used with another encoder.
    """

    mean: Float[Tensor, "languages features"]
    scale: Float[Tensor, "languages features"]
    identity: Int[Tensor, "bytes"]

    def __init__(
        self, config: EncoderConfig, languages: Sequence[str], cache: Path | bool = True, quiet: bool = True
    ) -> None:
        super().__init__()
        self.config, self.languages, self.quiet = config.pretrained, tuple(languages), quiet
        self.source = Source.find(config.name)
        check_settings(self.source, self.config)
        self.cache = FeatureCache(cache)
        self.mix = LayerMix(self.source.n_layers + 1) if self.config.layer == "mix" else None
        self.n_features = self.source.size
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
        self._moments: dict[str, _Moments] = {}
        self._encoder: list[WordEncoder] = []  # a list, so that it is no submodule; loaded if the cache lacks a corpus

    def prepare(self, corpus: Corpus, language: str = "") -> FrozenInputs:
        row = self._row(language)
        features = torch.from_numpy(self.vectors(corpus))
        given = FeatureInputs(features, torch.from_numpy(corpus.lengths), checked=True)
        return FrozenInputs(given, torch.full((len(corpus),), row))

    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        inputs = expect(inputs, FrozenInputs)
        vectors = inputs.given.features.to(self.mean.device, self.mean.dtype)
        rows = torch.repeat_interleave(inputs.languages, inputs.lengths).to(self.mean.device)
        if self.config.centring != "none":
            vectors = vectors - self.mean[rows]
        if self.config.centring == "standard":
            vectors = vectors / self.scale[rows]
        if self.mix is not None:
            vectors = self.mix(vectors.unflatten(1, (-1, self.n_features)))
        return self.dropout(vectors)

    @torch.no_grad()
    def centre_on(self, texts: Mapping[str, Sequence[Corpus]]) -> None:
        """Estimate each language's mean and standard deviation on its unlabelled text; without any, on all text."""
        if self.config.centring == "none":
            return
        found = {language: self._moments_of(corpora) for language, corpora in texts.items()}
        everything = sum(found.values(), start=_Moments.of((), self.width))
        for language in self.languages:
            moments = found.get(language, everything)
            moments = moments if moments.count else everything
            mean, scale = moments.summary()
            self.mean[self._row(language)] = torch.from_numpy(mean)
            if self.config.centring == "standard":
                self.scale[self._row(language)] = torch.from_numpy(scale)

    def recentred(self, inputs: Inputs, language: str) -> FrozenInputs:
        inputs = expect(inputs, FrozenInputs)
        return FrozenInputs(inputs.given, torch.full_like(inputs.languages, self._row(language)))

    def centroids(self) -> dict[str, Float[np.ndarray, "width"]]:
        if self.config.centring == "none":
            return {}
        return {language: self.mean[row].cpu().numpy() for row, language in enumerate(self.languages)}

    def _moments_of(self, corpora: Sequence[Corpus]) -> "_Moments":
        total = _Moments.of((), self.width)
        for corpus in corpora:
            text = corpus.text_hash()
            if text not in self._moments:
                self._moments[text] = _Moments.of([self.vectors(corpus)], self.width)
            total = total + self._moments[text]
        return total

    def vectors(self, corpus: Corpus) -> np.ndarray:
        """The word vectors of a corpus: in float16 from the cache, or in float32 if there is no cache."""
        if bytes(self.identity.tolist()) != self.own_identity:
            raise EncoderError(
                f"encoder '{self.source.name}': expected the one this model was trained over, found other weights in "
                f"{self.source.folder}; name the right one or train again"
            )
        text = corpus.text_hash()
        if text in self._opened:
            return self._opened[text]
        found = self.cache.fetch(
            {**self._about(), "text": text},
            (corpus.n_words, self.width),
            "<f2" if self.cache.folder is not None else "<f4",
            lambda rows: self._encode(corpus, rows),
            label=self.source.name,
        )
        if self.keep_open:
            self._opened[text] = found
        return found

    def _about(self) -> dict[str, Any]:
        """All that a word's vector depends on, besides the text."""
        names = ("layer", "pooling", "max_pieces", "overlap", "precision")
        return {"encoder": self.own_identity.hex()} | {name: getattr(self.config, name) for name in names}

    def _encode(self, corpus: Corpus, rows: np.ndarray) -> None:
        """Write the vectors of all words to `rows`."""
        if not self._encoder:
            precision = torch.bfloat16 if self.config.precision == "bfloat16" else torch.float32
            self._encoder.append(WordEncoder(self.source, self.config, precision).eval().to(self.mean.device))
        encoder = self._encoder[0]
        inputs = encoder.cutter.cut(corpus)
        self.n_without_piece += inputs.n_without_piece
        starts = np.array(corpus.offsets[:-1])  # a copy, as the corpus is mapped read-only
        with ProgressBar(self.quiet) as bars:
            update = bars.add(f"Encoding {len(corpus):,} sentences", len(inputs.ids))
            update(0, "pieces")
            for sentences, vectors in encoder.encode(inputs, lambda done: update(done, "pieces")):
                places = ranges(torch.from_numpy(starts)[sentences], inputs.lengths[sentences]).numpy()
                rows[places] = _checked(vectors, self.source.name).to(_DTYPES[rows.dtype.itemsize]).cpu().numpy()

    def _row(self, language: str) -> int:
        if language in self.languages:
            return self.languages.index(language)
        if self.config.centring == "none":
            return 0
        raise DataError(unknown("language", language, self.languages) + "; centring needs to know it")


@dataclass(frozen=True)
class _Moments:
    """Sums over words from which mean and standard deviation are computed."""

    count: int
    total: Float[np.ndarray, "features"]
    squares: Float[np.ndarray, "features"]

    @classmethod
    def of(cls, parts: Iterable[np.ndarray], width: int) -> "_Moments":
        count, total, squares = 0, np.zeros(width), np.zeros(width)
        for part in parts:
            for start in range(0, len(part), _ROWS_AT_ONCE):
                rows = part[start : start + _ROWS_AT_ONCE].astype(np.float64)
                count, total, squares = count + len(rows), total + rows.sum(0), squares + (rows**2).sum(0)
        return cls(count, total, squares)

    def __add__(self, other: "_Moments") -> "_Moments":
        return _Moments(self.count + other.count, self.total + other.total, self.squares + other.squares)

    def summary(self) -> tuple[Float[np.ndarray, "features"], Float[np.ndarray, "features"]]:
        """Mean and standard deviation; the latter is 1 for features that do not vary, so that they are not scaled."""
        mean = self.total / max(1, self.count)
        scale = np.sqrt(np.maximum(0.0, self.squares / max(1, self.count) - mean**2))
        return mean, np.where(scale > _NO_SCALE, scale, 1.0)


def _checked(vectors: Float[Tensor, "words features"], name: str) -> Float[Tensor, "words features"]:
    """The vectors, after a check that they fit into float16."""
    if not bool((vectors.abs() <= _LARGEST).all()):
        found = "NaN or infinity" if not bool(torch.isfinite(vectors).all()) else f"{float(vectors.abs().max()):.0f}"
        raise EncoderError(
            f"encoder '{name}': expected features of at most {_LARGEST:.0f}, got {found}; "
            "choose another encoder.pretrained.layer, or precision float32"
        )
    return vectors
