"""Active learning: choose the sentences that are most worth annotating."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Literal

import numpy as np
from jaxtyping import Float

from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.prediction.predict import Prediction, encode, predict_features
from crossfill.tagger.tagger import Tagger

Strategy = Literal["coverage", "entropy", "bald"]
"""`coverage`: doubtful words that come often and are in no sentence chosen yet. `entropy`: highest entropy. `bald`:
highest mutual information."""
Cost = Literal["sentences", "words"]
"""Unit of annotation effort: with `words`, uncertainty is taken per word, so long sentences have no advantage."""
_AT_ONCE = 256
_NUMBERS = ("entropy", "mutual_information", "doubts")


@dataclass(frozen=True)
class Candidates:
    """Sentences that could be annotated, with the values that the choice is based on."""

    sentences: list[Sentence]
    entropy: Float[np.ndarray, "sentences"]
    """Sum over words, averaged prediction."""
    mutual_information: Float[np.ndarray, "sentences"]
    doubts: Float[np.ndarray, "words"]
    """The entropy of every word; where sentences are labelled, words have equal shares of theirs."""

    def __len__(self) -> int:
        return len(self.sentences)

    @classmethod
    def of(cls, sentences: Sequence[Sentence], prediction: Prediction) -> "Candidates":
        """Make candidates with this prediction of words, or of whole sentences or pairs; none of them may be empty."""
        words = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        entropy, information = prediction.entropy.cpu().numpy(), prediction.mutual_information.cpu().numpy()
        if len(entropy) == len(sentences):
            return cls(list(sentences), entropy, information, np.repeat(entropy / words, words))
        first = np.cumsum(words) - words
        return cls(list(sentences), np.add.reduceat(entropy, first), np.add.reduceat(information, first), entropy)


def candidates(tagger: Tagger, sentences: Iterable[Sentence], cell: Cell, samples: int | None = None) -> Candidates:
    """Take the sentences with the model's uncertainty about them in a cell; empty ones are left out."""
    model, settings = tagger.model, tagger.config.prediction
    n_samples = settings.samples if samples is None else samples
    waiting = (sentence for sentence in sentences if len(sentence))
    parts = [Candidates([], *np.zeros((3, 0)))]
    while chunk := list(islice(waiting, _AT_ONCE)):
        text = Corpus.from_text(chunk)
        features, cues = encode(model, model.encoder.prepare(text, cell.language), cell.task), model.cues(cell, text)
        parts.append(Candidates.of(chunk, predict_features(model, features, cell, n_samples, settings.seed, cues)))
    joined = (np.concatenate([getattr(part, name) for part in parts]) for name in _NUMBERS)
    return Candidates([sentence for part in parts for sentence in part.sentences], *joined)


def choose(pool: Candidates, budget: int, strategy: Strategy = "coverage", cost: Cost = "sentences") -> list[int]:
    """Choose the sentences to annotate, most useful first, as indices; repeated sentences are chosen once.

    `coverage` repeatedly takes the sentence whose words that are new have most doubt (see `_covering`).
    """
    if strategy == "coverage":
        ranked = _covering(pool, cost)
    else:
        doubt = pool.mutual_information if strategy == "bald" else pool.entropy
        if cost == "words":
            doubt = doubt / np.array([len(s) for s in pool.sentences]).clip(1)
        ranked = (int(i) for i in np.argsort(-doubt, kind="stable"))
    first: dict[tuple[str, ...], int] = {}
    for place in ranked:
        first.setdefault(pool.sentences[place].words, place)
        if len(first) == budget:
            break
    return list(first.values())


def _covering(pool: Candidates, cost: Cost) -> Iterator[int]:
    """Rank all sentences: each next one covers the most doubt of words that are in none before it.

    The doubt of a word is the sum of its entropy over the whole pool, upper and lower case alike, so that frequent
    words come first. When nothing new is left, all words count as new again.
    """
    forms = [[word.lower() for word in sentence.words] for sentence in pool.sentences]
    doubt: dict[str, float] = defaultdict(float)
    for form, entropy in zip((form for sentence in forms for form in sentence), pool.doubts.tolist(), strict=True):
        doubt[form] += entropy
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
