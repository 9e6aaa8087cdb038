"""A frozen pretrained encoder: every corpus is encoded once, and its word vectors are cached on disk."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossfill.config import EncoderConfig
from crossfill.encoders import hub
from crossfill.encoders.base import Dropout, Encoder, EncoderParts, Inputs, expect, ranges
from crossfill.encoders.cache import FeatureCache, Key
from crossfill.encoders.huggingface import Source, WordEncoder, check_settings, quantise
from crossfill.encoders.surface import NAMES, Surface, word_buckets, word_forms
from crossfill.errors import DataError, EncoderError, unknown
from crossfill.grid.sentence import Corpus
from crossfill.progress import ProgressBar, Report

_LARGEST = float(np.finfo(np.float16).max)
PART_WORDS = 2**12
"""Words of a long corpus that are encoded and stored at a time: seconds of work on two cores."""
_NO_SCALE = 1e-6
_ROWS_AT_ONCE = 2**14


class StoredVectors:
    """The vectors of words by a pretrained network that never trains: computed once for each text, and cached."""

    def __init__(self, config: EncoderConfig, cache: Path | bool = True, quiet: bool = True) -> None:
        self.config, self.quiet = config.pretrained, quiet
        self.source = Source.find(config.name)
        check_settings(self.source, self.config)
        self.cache = FeatureCache(cache)
        self.identity = hub.identity(self.source.folder)
        self.width = self.source.size
        self.device = torch.device("cpu")
        """Where the network runs if the cache lacks a text."""
        self.keep_open = False
        """Whether to keep the vectors of all corpora open, for processes that train several models on them."""
        self._opened: dict[str, np.ndarray] = {}
        names = ("layer", "pooling", "max_pieces", "overlap", "precision")
        # all that a word's vector depends on, besides the text
        self._about = {"encoder": self.identity.hex()} | {name: getattr(self.config, name) for name in names}
        self.settings_hash = blake2b(json.dumps(self._about, sort_keys=True).encode(), digest_size=4).hexdigest()

    def of(self, corpus: Corpus, report: Report | None = None) -> np.ndarray:
        """Return the word vectors of a corpus: in float16 from the cache, or in float32 if there is no cache.

        If it is not in the cache, `report` is called with the number of words done; without one, a bar shows them.
        """
        corpus, text = corpus.text(), corpus.text_hash
        if text in self._opened:
            return self._opened[text]
        stored: list[Corpus] = []
        vectors = self._fetch(corpus, True, lambda: self._encode_in_parts(corpus, stored, report))
        for part in stored:
            self.cache.drop(self._key(part, whole=False))
        if self.keep_open:
            self._opened[text] = vectors
        return vectors

    def is_stored(self, corpus: Corpus, whole: bool = True) -> bool:
        """Tell whether the vectors of a corpus, or of a part of a long one, are in the cache."""
        return (whole and corpus.text_hash in self._opened) or self.cache.holds(self._key(corpus, whole))

    def parts(self, corpus: Corpus) -> list[Corpus]:
        """Split a corpus into parts that can be encoded in any order and by any process; one, if it is short."""
        which = np.array(corpus.offsets[1:]) // PART_WORDS
        ends = np.flatnonzero(np.diff(which, append=-1)) + 1
        bounds = pairwise([0, *ends.tolist()])
        return [corpus if end - start == len(corpus) else corpus[start:end] for start, end in bounds]

    def store(self, corpus: Corpus, whole: bool, report: Report | None = None) -> None:
        """Encode a corpus, or a part of a long one, into the cache; `of` puts the long one together."""
        self._fetch(corpus, whole, lambda: self._encode(corpus, report))

    def _key(self, corpus: Corpus, whole: bool) -> Key:
        """Describe the vectors of a corpus, or of a part of one, to the cache."""
        about = {**self._about, "text" if whole else "part": corpus.text_hash}
        return Key(about, corpus.n_words, self.width, "<f2" if self.cache.folder is not None else "<f4")

    def _fetch(self, corpus: Corpus, whole: bool, blocks: Callable[[], Iterator[np.ndarray]]) -> np.ndarray:
        return self.cache.fetch(self._key(corpus, whole), blocks, label=self.source.name)

    def _encode_in_parts(self, corpus: Corpus, stored: list[Corpus], report: Report | None) -> Iterator[np.ndarray]:
        """Encode a corpus part by part.

        Each part of a long corpus is `stored` by itself, so that a process that is killed loses only one of them.
        """
        parts = self.parts(corpus) if self.cache.folder is not None else [corpus]
        with ProgressBar(self.quiet or report is not None) as bars:
            update = report or bars.add(f"Encoding {len(corpus):,} sentences", corpus.n_words)
            done = 0
            update(done, "words")
            for part in parts:

                def blocks(part: Corpus = part, before: int = done) -> Iterator[np.ndarray]:
                    return self._encode(part, lambda words, note: update(before + words, note))

                if len(parts) == 1:
                    yield from blocks()
                else:
                    yield self._fetch(part, False, blocks)
                    stored.append(part)
                done += part.n_words
                update(done, "words")

    @cached_property
    def network(self) -> WordEncoder:
        """The network, loaded when the cache lacks a text."""
        precision = torch.bfloat16 if self.config.precision == "bfloat16" else torch.float32
        network = WordEncoder(self.source, self.config, precision).eval().to(self.device)
        if self.config.precision == "int8" and self.device.type == "cpu":
            quantise(network.network.layers)
        return network

    def _encode(self, corpus: Corpus, report: Report | None = None) -> Iterator[np.ndarray]:
        """Compute the vectors of all words, in one block; `report` is called with the number of words done."""
        inputs, done = self.network.cutter.cut(corpus), 0
        starts = torch.from_numpy(np.array(corpus.offsets[:-1]))  # a copy, as the corpus is mapped read-only
        rows = np.zeros((corpus.n_words, self.width), self._key(corpus, whole=True).dtype)
        for sentences, vectors in self.network.encode(inputs):
            if not bool((vectors.abs() <= _LARGEST).all()):
                problem = f"expected features of at most {_LARGEST:.0f}, got {float(vectors.abs().max()):.0f}"
                raise EncoderError(f"encoder '{self.source.name}': {problem}; take another layer, or float32")
            places = ranges(starts[sentences], inputs.lengths[sentences]).numpy()
            rows[places] = vectors.cpu().numpy()
            done += len(places)
            if report is not None:
                report(done, "words")
        yield rows


@dataclass(frozen=True)
class FrozenInputs(Inputs):
    """The stored vectors of a corpus, the row of the language that each sentence is centred as, and words' surface."""

    vectors: Float[Tensor, "words width"]
    lengths: Int[Tensor, "sentences"]
    languages: Int[Tensor, "sentences"]
    forms: Float[Tensor, "words forms"] | None = None
    buckets: Int[Tensor, "words"] | None = None

    def rows(self) -> dict[str, Int[Tensor, "sentences"] | None]:
        surface = () if self.forms is None else ("forms", "buckets")
        return {**dict.fromkeys(("vectors", *surface), self.lengths), **dict.fromkeys(("lengths", "languages"))}


class FrozenEncoder(Encoder):
    """x = dropout((v − mean of the language) / scale of the language), v the stored vector of a word.

    With `encoder.surface`, the surface of the word follows it. Means and scales are estimated on unlabelled text.
    They are saved with the model, and so is the encoder's identity, so that a model is never used with another encoder.
    """

    mean: Float[Tensor, "languages features"]
    scale: Float[Tensor, "languages features"]
    identity: Int[Tensor, "bytes"]
    stored: StoredVectors
    is_centred = True

    def __init__(
        self, config: EncoderConfig, languages: Sequence[str], cache: Path | bool = True, quiet: bool = True
    ) -> None:
        super().__init__()
        self.config, self.languages = config.pretrained, tuple(languages)
        self.stored = StoredVectors(config, cache, quiet)  # pyright: ignore[reportIncompatibleVariableOverride]
        self.source = self.stored.source
        self.surface = Surface(len(languages)) if config.surface else None
        self.n_features = self.source.size + (len(NAMES) if config.surface else 0)
        self.register_buffer("mean", torch.zeros(len(languages), self.stored.width))
        self.register_buffer("scale", torch.ones(len(languages), self.stored.width))
        self.register_buffer("identity", torch.tensor(list(self.stored.identity), dtype=torch.uint8))
        self.dropout = Dropout(config.dropout)
        self._sums: dict[str, Float[np.ndarray, "3 width"]] = {}

    def prepare(self, corpus: Corpus, language: str = "") -> FrozenInputs:
        languages = torch.full((len(corpus),), self._row(language))
        surface = () if self.surface is None else (word_forms(corpus), word_buckets(corpus))
        return FrozenInputs(
            torch.from_numpy(self._vectors(corpus)), torch.from_numpy(corpus.lengths), languages, *surface
        )

    def forward(self, inputs: Inputs) -> Float[Tensor, "words features"]:
        inputs = expect(inputs, FrozenInputs)
        vectors = inputs.vectors.to(self.mean.device, self.mean.dtype)
        rows = torch.repeat_interleave(inputs.languages, inputs.lengths).to(self.mean.device)
        if self.config.centring != "none":
            vectors = vectors - self.mean[rows]
        if self.config.centring == "standard":
            vectors = vectors / self.scale[rows]
        vectors = self.dropout(vectors)
        if self.surface is None or inputs.forms is None or inputs.buckets is None:
            return vectors
        return torch.cat([vectors, self.surface(inputs.forms, inputs.buckets, rows)], dim=1)

    @torch.no_grad()
    def centre_on(self, texts: Mapping[str, Sequence[Corpus]]) -> None:
        """Estimate each language's mean and standard deviation on its unlabelled text; without any, on all text."""
        if self.surface is not None:
            for language, corpora in texts.items():
                self.surface.fit(self._row(language), corpora)
        if self.config.centring == "none":
            return
        sums = {language: self._sums_of(corpora) for language, corpora in texts.items()}
        everything = sum(sums.values(), start=self._sums_of(()))
        for language in self.languages:
            has_text = language in sums and sums[language][0, 0]
            row, moments = self._row(language), self._moments(sums[language] if has_text else everything)
            self.mean[row], self.scale[row] = moments

    @torch.no_grad()
    def with_language(self, language: str, text: Corpus) -> "FrozenEncoder":
        """Copy the encoder with one more language, centred on this text of it; all others stay as they are."""
        grown = copy.copy(self)
        grown._buffers, grown.languages = dict(self._buffers), (*self.languages, language)
        mean, scale = self._moments(self._sums_of([text]))
        grown.mean, grown.scale = torch.cat([self.mean, mean[None]]), torch.cat([self.scale, scale[None]])
        if self.surface is not None:
            grown._modules = self._modules | {"surface": self.surface.with_language(text)}
        return grown

    def recentred(self, inputs: Inputs, language: str) -> FrozenInputs:
        inputs = expect(inputs, FrozenInputs)
        return replace(inputs, languages=torch.full_like(inputs.languages, self._row(language)))

    def centroids(self) -> dict[str, Float[np.ndarray, "width"]]:
        if self.config.centring == "none":
            return {}
        return {language: self.mean[row].cpu().numpy() for row, language in enumerate(self.languages)}

    def parts(self, language: str) -> EncoderParts:
        row, words = self._row(language), WordEncoder(self.stored.source, self.config).eval()
        surface = self.surface and self.surface.of_language(row)
        return EncoderParts(words, self.mean[row], self.scale[row], surface)

    def _vectors(self, corpus: Corpus) -> np.ndarray:
        if bytes(self.identity.tolist()) != self.stored.identity:
            source = self.stored.source
            place = f"encoder '{source.name}' in {source.folder}"
            raise EncoderError(f"{place}: expected the weights this model was trained over, found others; name these")
        self.stored.device = self.mean.device
        return self.stored.of(corpus)

    def _sums_of(self, corpora: Sequence[Corpus]) -> Float[np.ndarray, "3 width"]:
        """Sum over the words of corpora: of ones, of each feature, and of its squares."""
        total = np.zeros((3, self.stored.width))
        for corpus in corpora:
            text = corpus.text_hash
            if text not in self._sums:
                vectors, sums = self._vectors(corpus), np.zeros((3, self.stored.width))
                for start in range(0, len(vectors), _ROWS_AT_ONCE):
                    rows = vectors[start : start + _ROWS_AT_ONCE].astype(np.float64)
                    sums += [np.full(self.stored.width, len(rows)), rows.sum(0), (rows**2).sum(0)]
                self._sums[text] = sums
            total = total + self._sums[text]
        return total

    def _moments(self, sums: Float[np.ndarray, "3 width"]) -> tuple[Float[Tensor, "width"], Float[Tensor, "width"]]:
        """Compute the mean and the standard deviation by which features are centred.

        The deviation is 1 for features that do not vary, and for all if they are not scaled.
        """
        count, total, squares = np.maximum(1, sums[0]), sums[1], sums[2]
        mean, scale = total / count, np.sqrt(np.maximum(0.0, squares / count - (total / count) ** 2))
        centred, scaled = self.config.centring != "none", self.config.centring == "standard"
        return (
            torch.from_numpy(mean if centred else np.zeros_like(mean)).to(self.mean),
            torch.from_numpy(np.where((scale > _NO_SCALE) & scaled, scale, 1.0)).to(self.scale),
        )

    def _row(self, language: str) -> int:
        if language in self.languages:
            return self.languages.index(language)
        if self.config.centring == "none" and self.surface is None:
            return 0
        raise DataError(unknown("language", language, self.languages) + "; centring needs to know it")
