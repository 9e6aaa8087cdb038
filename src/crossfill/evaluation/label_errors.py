"""Labels that are probably wrong: those that heads fitted without their sentence find unlikely.

With s the logits of a word by such a head, K labels and a temperature T, a label is taken to be the right one, or with
probability ε any other one:

    p(given | x) = (1 − ε) q(given | x) + ε (1 − q(given | x)) / (K − 1)        q = softmax(s / T)

ε, the estimated share of errors of a corpus, and T make the given labels most likely; to the corpus `AS_IF` words are
added of which one is wrong. A label is wrong with probability

    ε (1 − q(given | x)) / (K − 1) / p(given | x)

Errors are taken to be as frequent everywhere and to be any label. Errors that a corpus makes always are not found: a
head learns them. Confident learning instead counts words whose q exceeds the mean of its label; it takes much of what
is merely hard to predict for errors (`benchmarks/check.py` measures this share).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax, softmax

from crossfill.data.labels import split_tag
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import UNLABELLED, Column, Corpus, Sentence

TEMPERATURES = np.geomspace(0.25, 4, 25)
_ROUNDS = 50
AS_IF = 100
"""Words that are added to a corpus, one of them with a wrong label, so that no share is zero."""
FEWEST_USES, SAME = 5, 0.9
"""A corpus uses a form in one way if it has it so often, and with one label for this share at least."""


class LabelNoise(NamedTuple):
    """ε and T of a corpus."""

    share: float
    temperature: float


def estimate_noise(logits: Float[np.ndarray, "words labels"], given: Int[np.ndarray, "words"]) -> LabelNoise:
    """Estimate ε by expectation maximisation, at the T where the given labels are most likely."""
    others, best = max(1, logits.shape[1] - 1), (-np.inf, LabelNoise(0.0, 1.0))
    for temperature in TEMPERATURES.tolist():
        q, share = softmax(logits / temperature, axis=1)[np.arange(len(given)), given], 0.05
        for _ in range(_ROUNDS):
            share = float(_wrong(q, share, others).sum() + 1) / (len(given) + AS_IF)
        likelihood = float(np.log((1 - share) * q + share * (1 - q) / others + 1e-300).sum())
        best = max(best, (likelihood, LabelNoise(share, temperature)))
    return best[1]


def _wrong(q: Float[np.ndarray, "words"], share: float, others: int) -> Float[np.ndarray, "words"]:
    wrong = share * (1 - q) / others
    return wrong / np.maximum(wrong + (1 - share) * q, 1e-300)


@dataclass(frozen=True)
class LabelError:
    """A label that is probably wrong."""

    cell: Cell
    corpus: str
    where: str
    """`file:line` of the word; empty for a corpus that was read from no file."""
    sentence: Sentence
    """With all labels as they are given."""
    word: int
    """The place of the word, from 0; 0 for a label of a sentence or pair."""
    given: str
    expected: str
    surprise: float
    """−ln q(given), which errors are ranked by."""
    wrong: float
    """The probability that the given label is wrong."""


def find_errors(
    cell: Cell, name: str, corpus: Corpus, logits: Float[np.ndarray, "labels kinds"], labels: Sequence[str], most: int
) -> tuple[list[LabelError], LabelNoise]:
    """Rank at most so many labels of a corpus, and estimate its share of errors.

    logits: Of each word (or sentence, or pair), by the head without it, as influence says.
    labels: What the columns of the logits stand for; words with any other label are left out.
    """
    all_given = corpus.labels.positions_in({label: i for i, label in enumerate(labels)})
    places = np.flatnonzero(all_given >= 0)
    given, logits = all_given[places], logits[places]
    noise = estimate_noise(logits, given)
    logs = log_softmax(logits / noise.temperature, axis=1)
    surprise, expected = -logs[np.arange(len(given)), given], logs.argmax(1)
    wrong = _wrong(np.exp(-surprise), noise.share, max(1, len(labels) - 1))
    starts = corpus.offsets if len(corpus.labels) == corpus.n_words else np.arange(len(corpus) + 1)
    errors = []
    for i in np.argsort(-surprise, kind="stable").tolist():
        if len(errors) == most or expected[i] == given[i]:
            break
        sentence = int(np.searchsorted(starts, places[i], side="right")) - 1
        word = int(places[i] - starts[sentence])
        errors.append(
            LabelError(
                cell=cell,
                corpus=name,
                where=corpus.place(sentence, word),
                sentence=corpus[sentence],
                word=word,
                given=labels[int(given[i])],
                expected=labels[int(expected[i])],
                surprise=float(surprise[i]),
                wrong=float(wrong[i]),
            )
        )
    return errors, noise


@dataclass(frozen=True)
class FormUse:
    """A form that corpora of a task label differently, each of them nearly always in its own way."""

    task: str
    form: str
    """In lower case; with 0 for every digit."""
    corpora: Mapping[str, tuple[str, ...]]
    """The corpora by the label that they use, the usual one first."""
    words: int
    """Words with other labels than the usual one."""


def compare_uses(task: str, corpora: Iterable[tuple[str, str, Corpus]]) -> list[FormUse]:
    """Find forms that corpora label differently, those of most words first; corpora come as language, name, words.

    Forms with letters are compared between corpora of one language, others (`%`, `2020`) between all.
    """
    uses: dict[tuple[str, str], dict[str, Counter[str]]] = {}
    for language, name, corpus in corpora:
        for (form, label), n in _pair_counts(corpus).items() if len(corpus) else ():
            if label == UNLABELLED:
                continue
            key = (language if any(map(str.isalpha, form)) else "", form)
            uses.setdefault(key, {}).setdefault(name, Counter())[label] += n
    differing = []
    for (_, form), by_corpus in uses.items():
        totals: Counter[str] = Counter()
        named: dict[str, list[str]] = {}
        for name, counts in by_corpus.items():
            (label, n), total = counts.most_common(1)[0], counts.total()
            if total >= FEWEST_USES and n >= SAME * total:
                totals[label] += total
                named.setdefault(label, []).append(name)
        if len(named) > 1:
            usual = {label: tuple(sorted(named[label])) for label, _ in totals.most_common()}
            differing.append(FormUse(task, form, usual, totals.total() - max(totals.values())))
    return sorted(differing, key=lambda use: (-use.words, use.form))


def _pair_counts(corpus: Corpus) -> Counter[tuple[str, str]]:
    """Count the pairs of a form and a label; of a tag of a span, its type."""
    forms = corpus.words.map(lambda word: re.sub(r"\d", "0", word.lower()))
    labels = corpus.labels.map(lambda label: (split_tag(label) or ("", label))[1])
    pairs, counts = np.unique(np.stack([forms.codes, labels.codes]), axis=1, return_counts=True)
    named = zip(Column(forms.vocabulary, pairs[0]), Column(labels.vocabulary, pairs[1]), strict=True)
    return Counter(dict(zip(named, counts.tolist(), strict=True)))
