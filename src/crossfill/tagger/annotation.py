"""Active learning: choose the sentences that are most worth annotating."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Literal

import numpy as np
from jaxtyping import Float
from torch import Tensor

from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.prediction.predict import Prediction
from crossfill.tagger.tagger import Tagger

Strategy = Literal["coverage", "entropy", "bald", "diversity"]
"""`coverage`: doubtful words that come often and are in no sentence chosen yet. `entropy`: highest entropy. `bald`:
highest mutual information. `diversity`: high entropy, and far apart."""
Cost = Literal["sentences", "words"]
"""Unit of annotation effort: with `words`, uncertainty is taken per word, so long sentences have no advantage."""
SKETCH = 64
"""Size of the sentence vectors that distances are computed from."""
_AT_ONCE = 256


@dataclass(frozen=True)
class Candidates:
    """Sentences that could be annotated, with the values that the choice is based on."""

    sentences: list[Sentence]
    entropy: Float[np.ndarray, "sentences"]
    """Sum over words, averaged prediction."""
    mutual_information: Float[np.ndarray, "sentences"]
    sketches: Float[np.ndarray, "sentences sketch"]
    """The mean features of each sentence, randomly projected to `SKETCH` dimensions."""
    doubts: Float[np.ndarray, "words"]
    """The entropy of every word; where sentences are labelled, words have equal shares of theirs."""

    def __len__(self) -> int:
        return len(self.sentences)

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sentence],
        features: Float[Tensor, "words features"],
        prediction: Prediction,
        seed: int = 0,
    ) -> "Candidates":
        """Sentences whose words have these features and predictions; none of them may be empty.

        If the features are those of the sentences or pairs, so are the predictions.
        """
        whole = len(features) == len(sentences)
        lengths = np.array([1 if whole else len(sentence) for sentence in sentences], dtype=np.int64)
        first = np.cumsum(lengths) - lengths
        projection = np.random.default_rng(seed).standard_normal((features.shape[1], SKETCH))
        means = np.add.reduceat(features.cpu().numpy(), first, axis=0) / lengths[:, None]
        own, shared = prediction.entropy.cpu().numpy(), prediction.mutual_information.cpu().numpy()
        entropy, information = (np.add.reduceat(values, first) for values in (own, shared))
        words = np.array([len(sentence) for sentence in sentences])
        doubts = np.repeat(own / words, words) if whole else own
        return cls(list(sentences), entropy, information, means @ projection, doubts)

    def take(self, places: Sequence[int]) -> "Candidates":
        """Some of the sentences, in this order."""
        chosen = np.array(places, dtype=np.int64)
        parts = np.split(self.doubts, np.cumsum([len(sentence) for sentence in self.sentences])[:-1])
        return Candidates(
            [self.sentences[i] for i in places],
            self.entropy[chosen],
            self.mutual_information[chosen],
            self.sketches[chosen],
            np.concatenate([parts[i] for i in places]) if len(chosen) else self.doubts[:0],
        )


def candidates(
    tagger: Tagger, sentences: Iterable[Sentence], cell: Cell, samples: int | None = None, seed: int = 0
) -> Candidates:
    """The sentences with the model's uncertainty about them in a cell; empty ones are left out."""
    n_samples = tagger.config.prediction.samples if samples is None else samples
    waiting = (sentence for sentence in sentences if len(sentence))
    parts = []
    while chunk := list(islice(waiting, _AT_ONCE)):
        features = tagger.features(chunk, cell)
        prediction = tagger.predict(features, cell, n_samples)
        plain = features[:, : features.shape[1] - tagger.model.encoder.n_extra]  # which word it is says no distance
        parts.append(Candidates.of(chunk, plain, prediction, seed))
    if not parts:
        return Candidates([], np.zeros(0), np.zeros(0), np.zeros((0, SKETCH)), np.zeros(0))
    return Candidates(
        [sentence for part in parts for sentence in part.sentences],
        np.concatenate([part.entropy for part in parts]),
        np.concatenate([part.mutual_information for part in parts]),
        np.concatenate([part.sketches for part in parts]),
        np.concatenate([part.doubts for part in parts]),
    )


def choose(pool: Candidates, budget: int, strategy: Strategy = "coverage", cost: Cost = "sentences") -> list[int]:
    """The indices of the sentences to annotate, most useful first; repeated sentences are chosen once.

    `coverage` repeatedly takes the sentence whose words that are new have most doubt (see `_covering`).
    `diversity` repeatedly takes the sentence with the largest entropy × distance to the nearest one already chosen.
    The distance is √(1 − cos), from 0 to √2, between mean-centred sentence vectors.
    """
    if budget < 1:
        raise DataError(f"expected a budget of at least 1 sentence, got {budget}")
    if not len(pool):
        return []
    worth = pool.mutual_information if strategy == "bald" else pool.entropy
    if cost == "words":
        worth = worth / np.array([len(s) for s in pool.sentences]).clip(1)
    known: set[tuple[str, ...]] = set()
    if strategy == "coverage":
        return list(islice(_distinct(_covering(pool, cost), pool.sentences, known), budget))
    if strategy != "diversity":
        ranked = (int(i) for i in np.argsort(-worth, kind="stable"))
        return list(islice(_distinct(ranked, pool.sentences, known), budget))
    directions = pool.sketches - pool.sketches.mean(0)
    directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-9)
    chosen: list[int] = []
    nearest = np.full(len(pool), 2.0)
    left = np.ones(len(pool), dtype=np.bool_)
    while left.any() and len(chosen) < budget:
        best = int(np.argmax(np.where(left, (worth + 1e-12) * np.sqrt(nearest), -1.0)))
        left[best] = False
        if next(_distinct([best], pool.sentences, known), None) is None:
            continue
        chosen.append(best)
        nearest = np.minimum(nearest, np.maximum(0.0, 1 - directions @ directions[best]))
    return chosen


def _covering(pool: Candidates, cost: Cost) -> Iterator[int]:
    """All sentences: each next one covers the most doubt of words that are in none before it.

    The doubt of a word is the sum of its entropy over the whole pool, upper and lower case alike, so that frequent
    words come first. When nothing new is left, all words count as new again.
    """
    forms = [[word.lower() for word in sentence.words] for sentence in pool.sentences]
    doubt: dict[str, float] = defaultdict(float)
    for form, own in zip((form for sentence in forms for form in sentence), pool.doubts.tolist(), strict=True):
        doubt[form] += own
    covered: set[str] = set()

    def gain(place: int) -> float:
        new = sum(doubt[form] for form in dict.fromkeys(forms[place]) if form not in covered)
        return new / len(forms[place]) if cost == "words" else new

    waiting = [(-gain(place), place) for place in range(len(pool))]
    heapify(waiting)
    while waiting:
        before, place = heappop(waiting)
        now = -gain(place)  # gains only fall, so that the best of those before is the best if its gain has not fallen
        if now > before and waiting and (now, place) > waiting[0]:
            heappush(waiting, (now, place))
        elif now == 0 and covered:
            covered.clear()
            waiting = [(-gain(other), other) for other in (place, *(other for _, other in waiting))]
            heapify(waiting)
        else:
            covered.update(forms[place])
            yield place


def _distinct(ranked: Iterable[int], sentences: Sequence[Sentence], known: set[tuple[str, ...]]) -> Iterator[int]:
    for place in ranked:
        if sentences[place].words not in known:
            known.add(sentences[place].words)
            yield place
