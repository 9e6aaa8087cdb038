"""Which language is a sentence in? How often runs of one to four letters occur in each language answers it.

p(l | x) ∝ exp(s Σ_g ln p(g | l)), over the runs g of letters in a sentence x; before, all languages are equally likely.
Runs overlap, so that each tells less than it seems: s < 1 is chosen on held-out sentences. A model folder keeps no
text, but counts of hashed runs. A sentence that may be in several languages is tagged by all of them:
p(y | x) = Σ_l p(l | x) p(y | x, l).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int

from crossfill import checkpoint
from crossfill.errors import CheckpointError
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.model import AS_ITS_TASK, Model
from crossfill.prediction.predict import Prediction, entropy
from crossfill.prediction.queries import Query, decide
from crossfill.prediction.tagging import Tagging

UNKNOWN = "und"
"""The language of a cell in which each sentence is tagged in its own language: ISO 639's code for one unknown."""
_BUCKETS = 2**15
_LONGEST_RUN = 4
_SMOOTHING = 0.05
_MOST_SENTENCES = 1000
"""Sentences of a language that are counted; more change nothing."""
_LEAST, _MOST = 0.02, 5
"""Languages of a lower probability are left out of a mixture, and so are all but so many."""
_SHARPNESS = tuple(0.02 * 1.25**i for i in range(18))
_NO_LETTER = re.compile(r"[\W\d_]+")


@dataclass(frozen=True, eq=False)
class LanguageProfiles:
    """Counts of hashed runs of letters in the text of languages."""

    languages: tuple[str, ...]
    counts: Int[np.ndarray, "languages buckets"]
    sharpness: float
    """The share s of what runs of letters seem to tell."""

    @classmethod
    def of(cls, texts: Mapping[str, Sequence[Corpus]]) -> "LanguageProfiles | None":
        """Count the runs in the text of each language that has any; every fifth sentence chooses s first."""
        sentences = {language: _sample(corpus.text() for corpus in corpora) for language, corpora in texts.items()}
        languages = tuple(sorted(language for language, of_language in sentences.items() if of_language))
        if not languages:
            return None
        counted = [[s for i, s in enumerate(sentences[name]) if i % 5] or sentences[name] for name in languages]
        first = cls(languages, np.stack([_count(of_language) for of_language in counted]), 1.0)
        held_out = [(i, first.evidence(s)) for i, name in enumerate(languages) for s in sentences[name][::5]]
        evidence, right = np.stack([of_sentence for _, of_sentence in held_out]), [i for i, _ in held_out]
        losses = [-_log_shares(s * evidence)[range(len(right)), right].mean() for s in _SHARPNESS]
        counts = np.stack([_count(sentences[name]) for name in languages])
        return cls(languages, counts, _SHARPNESS[int(np.argmin(losses))])

    def with_language(self, language: str, text: Corpus) -> "LanguageProfiles":
        """Count the text of one more language."""
        counts = np.concatenate([self.counts, _count(_sample([text.text()]))[None]])
        return replace(self, languages=(*self.languages, language), counts=counts)

    @cached_property
    def _log_likelihood(self) -> Float[np.ndarray, "buckets languages"]:
        smoothed = self.counts.T + np.float32(_SMOOTHING)
        return np.log(smoothed / smoothed.sum(0)).astype(np.float32, order="C")

    def evidence(self, sentence: str) -> Float[np.ndarray, "languages"]:
        """Add up ln p(g | l) over the runs g of a sentence, for each language l."""
        return self._log_likelihood[_runs(sentence)].sum(0)

    def probabilities(self, sentence: Sentence) -> dict[str, float]:
        """Compute p(l | x) of the likeliest languages of a sentence, largest first; they add up to one."""
        shares = np.exp(_log_shares(self.sharpness * self.evidence(" ".join(sentence.words))[None])[0])
        order = [i for i in np.argsort(-shares, kind="stable")[:_MOST].tolist() if shares[i] >= _LEAST * shares.max()]
        total = sum(float(shares[i]) for i in order)
        return {self.languages[i]: float(shares[i]) / total for i in order}

    def save(self, folder: Path) -> None:
        """Write the profiles into a model folder."""
        tensors = {"counts": torch.from_numpy(self.counts.clip(max=2**15 - 1).astype(np.int16))}
        notes = {"languages": list(self.languages), "sharpness": self.sharpness}
        checkpoint.write_tensors(folder / checkpoint.LANGUAGES, tensors, notes)

    @classmethod
    def load(cls, folder: Path) -> "LanguageProfiles | None":
        """Read the profiles in a model folder; none if it has none."""
        path = folder / checkpoint.LANGUAGES
        if not path.exists():
            return None
        tensors, notes = checkpoint.read_tensors(path)
        counts, languages = tensors.get("counts", torch.empty(0)), tuple(notes.get("languages", ()))
        if counts.dtype is not torch.int16 or counts.shape != (len(languages), _BUCKETS) or "sharpness" not in notes:
            raise CheckpointError(f"{path}: expected counts of languages, got something else; train the model again")
        return cls(languages, counts.numpy().astype(np.int32), float(notes["sharpness"]))


def mixed(model: Model, query: Query, shares: Mapping[str, float], taggings: Sequence[Tagging]) -> Tagging:
    """Average a sentence's taggings in several languages, p(y | x) = Σ_l p(l | x) p(y | x, l), and decide again."""
    if len(taggings) == 1:
        return replace(taggings[0], languages=dict(shares))
    weights, first = list(shares.values()), taggings[0]

    def average(name: str) -> torch.Tensor:
        return torch.from_numpy(sum(w * getattr(tagging, name) for w, tagging in zip(weights, taggings, strict=True)))

    probabilities = average("probabilities")
    total = entropy(probabilities)
    within = average("entropy") - average("mutual_information")  # what knowing parameters and language leaves
    bounds = None
    if first.bounds is not None:
        every = np.stack([tagging.bounds for tagging in taggings if tagging.bounds is not None])
        bounds = torch.from_numpy(np.stack([every[:, 0].min(0), every[:, 1].max(0)]))
    prediction = Prediction(probabilities, total, (total - within).clamp_min(0), bounds)
    lengths = np.array([len(probabilities)])
    chosen = replace(query, cell=first.cell)
    of_cell = model.heads.decisions.get(first.cell, AS_ITS_TASK)
    (tagging,) = decide([chosen], lengths, first.task, prediction, of_cell)
    return replace(tagging, languages=dict(shares))


def _sample(corpora: Iterable[Corpus]) -> list[str]:
    """Join the words of sentences, at most so many of a language, spread evenly over its text."""
    text = Corpus.joined(corpora)
    step = max(1, len(text) / _MOST_SENTENCES)
    return [" ".join(s.words) for s in text.take(int(i * step) for i in range(min(len(text), _MOST_SENTENCES)))]


def _count(sentences: Iterable[str]) -> Int[np.ndarray, "buckets"]:
    return np.bincount(_runs(" ".join(sentences)), minlength=_BUCKETS).astype(np.int32)


def _runs(text: str) -> Int[np.ndarray, "runs"]:
    """Hash the runs of one to four letters of a text, in lower case, with a space at both ends of words."""
    letters = f" {_NO_LETTER.sub(' ', text.lower()).strip()} "
    points = np.frombuffer(letters.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    hashes, runs = np.zeros(len(points), dtype=np.uint64), []
    for n in range(1, min(_LONGEST_RUN, len(points)) + 1):
        hashes = hashes[: len(points) - n + 1] * np.uint64(0x100000001B3) + points[n - 1 :] + np.uint64(1)
        mixed_bits = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        runs.append((mixed_bits >> np.uint64(64 - _BUCKETS.bit_length() + 1)).astype(np.int64))
    return np.concatenate(runs)


def _log_shares(evidence: Float[np.ndarray, "sentences languages"]) -> Float[np.ndarray, "sentences languages"]:
    shifted = evidence - evidence.max(1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
