"""Wrong labels: the noise of a corpus against simulated noise, the ranking against cleanlab's."""

from itertools import pairwise

import numpy as np
import pytest

from crossfill.evaluation.label_errors import (
    FEWEST_USES,
    compare_uses,
    estimate_noise,
    find_errors,
)
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence

LABELS = ("ADJ", "NOUN", "PUNCT", "VERB")


def softmax(logits: np.ndarray) -> np.ndarray:
    exponents = np.exp(logits - logits.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)


def labels_with_noise(n: int, share: float, temperature: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits of words, and labels drawn from softmax(logits / T), so many of them changed to any other."""
    draws = np.random.default_rng(seed)
    logits = draws.normal(0, 4, (n, len(LABELS)))
    right = np.array([draws.choice(len(LABELS), p=p) for p in softmax(logits / temperature)])
    flipped = draws.random(n) < share
    return logits, np.where(flipped, (right + draws.integers(1, len(LABELS), n)) % len(LABELS), right)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.05, 0.2])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_the_share_of_errors_and_the_temperature_are_found_again(share, temperature):
    noise = estimate_noise(*labels_with_noise(4000, share, temperature))
    assert noise.share == pytest.approx(share, abs=0.015)
    assert noise.temperature == pytest.approx(temperature, rel=0.15)


def corpus_of(given: np.ndarray, lengths: list[int]) -> Corpus:
    bounds = pairwise(np.cumsum([0, *lengths]).tolist())
    labels = [tuple(LABELS[i] for i in given[start:end]) for start, end in bounds]
    return Corpus.from_sentences(Sentence(tuple(f"w{i}" for i in range(len(of))), of) for of in labels)


def test_errors_are_ranked_as_cleanlab_ranks_tokens():
    from cleanlab.token_classification.rank import get_label_quality_scores

    lengths = [3, 5, 1, 7, 4] * 20
    logits, given = labels_with_noise(sum(lengths), 0.1, 1.0)
    errors, noise = find_errors(Cell("pos", "wol"), "x", corpus_of(given, lengths), logits, LABELS, 10_000)
    ends = np.cumsum(lengths)[:-1]
    probabilities = np.split(softmax(logits / noise.temperature), ends)
    _, scores = get_label_quality_scores([part.tolist() for part in np.split(given, ends)], probabilities)
    theirs = np.concatenate([of_tokens.to_numpy() for of_tokens in scores])
    best = np.concatenate(probabilities).argmax(1)
    order = [i for i in np.argsort(theirs, kind="stable").tolist() if best[i] != given[i]]
    starts = np.concatenate([[0], ends])
    texts = [error.sentence for error in errors]
    assert [(e.given, e.expected) for e in errors] == [
        (LABELS[given[i]], LABELS[best[i]]) for i in order[: len(errors)]
    ]
    assert np.allclose([np.exp(-e.surprise) for e in errors], theirs[order[: len(errors)]])
    assert len(texts) == len({id(e) for e in errors}) > 20
    places = [int(np.searchsorted(starts, i, side="right")) - 1 for i in order]
    assert [e.word for e in errors] == [i - int(starts[s]) for i, s in zip(order, places, strict=True)][: len(errors)]


def test_the_probability_of_an_error_is_that_of_all_other_right_labels():
    logits, given = labels_with_noise(300, 0.1, 1.0)
    errors, noise = find_errors(Cell("pos", "wol"), "x", corpus_of(given, [300]), logits, LABELS, 50)
    for error in errors:
        q = softmax(logits[error.word] / noise.temperature)
        of = LABELS.index(error.given)
        joint = [  # of each right label with the one that is given
            q[right] * ((1 - noise.share) if right == of else noise.share / (len(LABELS) - 1))
            for right in range(len(LABELS))
        ]
        assert error.wrong == pytest.approx(1 - joint[of] / sum(joint))


def test_words_without_a_label_are_no_errors():
    logits, given = labels_with_noise(40, 0.5, 1.0)
    corpus = corpus_of(given, [40])
    known = tuple(label for label in LABELS if label != "ADJ")
    errors, _ = find_errors(Cell("pos", "wol"), "x", corpus, logits[:, 1:], known, 100)
    assert errors
    assert "ADJ" not in {error.given for error in errors}


def use(*pairs: tuple[str, str]) -> Corpus:
    """A corpus in which each of these words comes as often as a comparison needs."""
    return Corpus.from_sentences(Sentence((word,), (label,)) for word, label in pairs for _ in range(FEWEST_USES))


def test_forms_are_compared_within_a_language_and_signs_between_all():
    corpora = [
        ("wol", "one", use(("ki", "DET"), ("%", "SYM"), ("2019", "NUM"), ("a", "X"))),
        ("wol", "two", use(("Ki", "PRON"), ("%", "SYM"), ("1984", "NUM"), ("a", "X"))),
        ("fin", "three", use(("ki", "NOUN"), ("%", "NOUN"), ("2020", "ADJ"), ("ki", "VERB"))),
    ]
    uses = {use.form: use.corpora for use in compare_uses("pos", corpora)}
    assert uses == {
        "ki": {"DET": ("one",), "PRON": ("two",)},
        "%": {"SYM": ("one", "two"), "NOUN": ("three",)},
        "0000": {"NUM": ("one", "two"), "ADJ": ("three",)},
    }


def test_tags_of_spans_are_compared_by_their_types():
    same = [("wol", "one", use(("Dakar", "B-LOC"))), ("wol", "two", use(("Dakar", "I-LOC")))]
    assert compare_uses("ner", same) == []
    (different,) = compare_uses("ner", [*same, ("wol", "three", use(("Dakar", "B-ORG"), ("Dakar", "B-ORG")))])
    assert different.corpora == {"LOC": ("one", "two"), "ORG": ("three",)}
    assert different.words == 2 * FEWEST_USES
