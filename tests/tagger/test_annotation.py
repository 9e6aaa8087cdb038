"""Choosing sentences: against definitions written out, and that choice needs no luck."""

import numpy as np
import pytest

import crossfill
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Sentence
from crossfill.tagger.annotation import Candidates, candidates, choose
from tests.scenarios import SMALL, small_grid

GRID = small_grid()[0].grid
LANGUAGE = GRID.languages[0]


def pool(n: int, seed: int = 0) -> Candidates:
    rng = np.random.default_rng(seed)
    sentences = [Sentence((f"w{i}",) * int(rng.integers(1, 9))) for i in range(n)]
    doubts = rng.random(sum(map(len, sentences)))
    return Candidates(sentences, rng.random(n), rng.random(n), doubts)


@pytest.fixture(scope="module")
def tagger():
    return crossfill.train(GRID, "pf-lr", "compact", None, SMALL.change({}), hold_out=[f"ner/{LANGUAGE}"])


def test_doubts_are_sums_over_words(tagger):
    texts = [Sentence(s.words) for s in GRID.training(Cell("pos", LANGUAGE))]
    cell = Cell("ner", LANGUAGE)
    found = candidates(tagger, [texts[0], Sentence(()), *texts[1:]], cell)
    taggings = list(tagger.tag_many(texts, cell))
    np.testing.assert_allclose(found.entropy, [t.entropy.sum() for t in taggings], rtol=1e-5)
    np.testing.assert_allclose(found.mutual_information, [t.mutual_information.sum() for t in taggings], rtol=1e-4)
    assert found.sentences == texts
    assert len(candidates(tagger, [], cell)) == 0


def test_the_plain_strategies_are_rankings():
    made = pool(50)
    assert choose(made, 7, "entropy") == np.argsort(-made.entropy)[:7].tolist()
    assert choose(made, 7, "bald") == np.argsort(-made.mutual_information)[:7].tolist()
    per_word = made.entropy / np.array([len(s) for s in made.sentences])
    assert choose(made, 7, "entropy", "words") == np.argsort(-per_word)[:7].tolist()


@pytest.mark.parametrize("cost", ["sentences", "words"])
def test_coverage_against_a_naive_loop(cost):
    rng = np.random.default_rng(2)
    vocabulary = [*"abcdefghijklm", "A", "B"]
    sentences = [Sentence(tuple(rng.choice(vocabulary, int(rng.integers(1, 6))).tolist())) for _ in range(25)]
    sentences = list(dict.fromkeys(sentences))
    doubts = rng.random(sum(map(len, sentences)))
    made = Candidates(sentences, np.ones(25), np.ones(25), doubts)
    words = [word.lower() for sentence in sentences for word in sentence.words]
    doubt = {form: sum(d for word, d in zip(words, doubts, strict=True) if word == form) for form in words}
    chosen: list[int] = []
    covered: set[str] = set()
    while len(chosen) < len(sentences):
        gains = {}
        for place, sentence in enumerate(sentences):
            if place not in chosen:
                new = {word.lower() for word in sentence.words} - covered
                gains[place] = sum(doubt[form] for form in new) / (len(sentence) if cost == "words" else 1)
        best = max(gains, key=lambda place: (round(gains[place], 9), -place))
        if not gains[best]:
            covered = set()
            continue
        chosen.append(best)
        covered |= {word.lower() for word in sentences[best].words}
    assert choose(made, 500, "coverage", cost) == chosen
    assert choose(made, 4, "coverage", cost) == chosen[:4]


def test_recurring_and_alike_sentences():
    one, other = Sentence(("a", "b")), Sentence(("c",))
    made = Candidates([one, one, other], np.array([3.0, 3.0, 1.0]), np.ones(3), np.ones(5))
    for strategy in ("coverage", "entropy", "bald"):
        assert {made.sentences[i] for i in choose(made, 2, strategy)} == {one, other}
        assert len(choose(made, 3, strategy)) == 2
