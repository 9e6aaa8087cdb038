"""Decision rules against all sequences one by one, and offsets against cells whose best one is known."""

from itertools import pairwise, product

import numpy as np
import pytest

from crossfill.grid.task import Task
from crossfill.measures.metrics import Labelling
from crossfill.prediction.rules import (
    FARTHEST,
    TASK_WORDS,
    WEIGHT,
    Rule,
    Sample,
    count_pairs,
    decode_spans,
    fit_offsets,
    pair_shares,
    transitions,
)

SPANS = Task("ner", ("B-PER", "I-PER", "O"))
VALUES = Task("feats:Case", ("Nom", "Acc", "_"))
TAGS = Task("pos", ("ADJ", "NOUN", "VERB"))


def cell(rng: np.random.Generator, n_sentences: int, shift: float, task: Task = VALUES) -> Sample:
    """Words whose right labels are drawn from the probabilities with `shift` added to the log-odds of none."""
    p = rng.dirichlet([0.4, 0.4, 1.2], size=4 * n_sentences)
    true = p * np.where([label in ("O", "_") for label in task.labels], np.exp(shift), 1.0)
    true /= true.sum(1, keepdims=True)
    gold = np.array([rng.choice(3, p=row) for row in true])
    return Sample(p, gold, np.full(n_sentences, 4))


@pytest.mark.parametrize("offset", [-1.5, 0.0, 2.0])
def test_a_rule_takes_the_best_valid_sequence(offset: float):
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = rng.dirichlet(np.ones(3), size=4)
        best = max(
            (s for s in product(range(3), repeat=4) if all(y != 1 or (i and s[i - 1] != 2) for i, y in enumerate(s))),
            key=lambda s: sum(np.log(p[i, y]) + offset * (y == 2) for i, y in enumerate(s)),
        )
        np.testing.assert_array_equal(Rule(offset).choose(p, np.array([4]), SPANS), best)


@pytest.mark.parametrize("offset", [-2.0, 0.0, 2.0])
def test_confidence_is_the_probability_under_the_rule_that_decided(offset: float):
    rng, lengths = np.random.default_rng(9), np.array([4])
    pairs = pair_shares([cell(rng, 50, 0.0, SPANS)], SPANS)
    table = transitions(pairs)
    for rule in (Rule(offset, pairs=pairs), Rule(offset)):
        p = rng.dirichlet(np.ones(3), size=4)
        weights = {}
        for s in product(range(3), repeat=4):
            log = sum(np.log(p[i, y]) + offset * (y == 2) for i, y in enumerate(s))
            steps = sum(table[i, j] for i, j in pairwise([-1, *s])) if rule.pairs else 0.0
            weights[s] = np.exp(log + steps) * all(y != 1 or (i and s[i - 1] != 2) for i, y in enumerate(s))
        chosen = rule.choose(p, lengths, SPANS)
        assert tuple(chosen) == max(weights, key=weights.__getitem__)
        decoded = decode_spans(rule.weighed(p, SPANS), chosen, lengths, SPANS.labels, rule.transitions)
        total = sum(weights.values())
        for start, end, _, confidence in decoded:
            inside = (0, *[1] * (end - start - 1))
            mass = sum(w for s, w in weights.items() if s[start:end] == inside and (s[end:] or (2,))[0] != 1)
            assert confidence == pytest.approx(mass / total)
        if rule.pairs:
            expected = [sum(w for s, w in weights.items() if s[i] == y) / total for i, y in enumerate(chosen)]
        else:  # words alone, as their probabilities are shown
            factors = np.where(np.arange(3) == 2, np.exp(offset), 1.0)
            expected = (p * factors / (p @ factors)[:, None])[np.arange(4), chosen]
        np.testing.assert_allclose(rule.confidence(p, chosen, lengths, SPANS), expected)


def test_words_are_decided_one_by_one_where_all_count_or_where_asked():
    p = np.random.default_rng(1).dirichlet(np.ones(3), size=50)
    lengths = np.array([20, 30])
    np.testing.assert_array_equal(Rule(valid=False).choose(p, lengths, SPANS), p.argmax(1))
    np.testing.assert_array_equal(Rule(3.0).choose(p, lengths, TAGS), p.argmax(1))
    assert (Rule(3.0).choose(p, lengths, VALUES) == 2).sum() > (p.argmax(1) == 2).sum()


def test_the_offset_makes_up_for_a_model_that_expects_too_little():
    rng = np.random.default_rng(2)
    even = fit_offsets([cell(rng, 400, 0.0) for _ in range(6)], VALUES)
    shifted = fit_offsets([cell(rng, 400, -1.5) for _ in range(6)], VALUES)
    assert shifted["f1"] < even["f1"] - 0.5
    assert shifted["recall"] < shifted["f1"] < shifted["precision"]


def test_the_offset_is_the_best_of_all_that_were_tried():
    rng = np.random.default_rng(3)
    cells = [cell(rng, 60, -1.0, SPANS) for _ in range(5)]

    def mean(offset: float) -> float:
        chosen = [Rule(offset).choose(s.probabilities, s.lengths, SPANS) for s in cells]
        scores = [Labelling(s.gold, c, SPANS, s.lengths).scores()["score"] for s, c in zip(cells, chosen, strict=True)]
        return float(np.mean(scores))

    best = max(mean(offset) for offset in np.arange(-FARTHEST, FARTHEST, 0.1))
    assert mean(fit_offsets(cells, SPANS)["f1"]) == pytest.approx(best, abs=0.01)


def test_nothing_to_fit():
    assert fit_offsets([], SPANS) == {}
    assert fit_offsets([cell(np.random.default_rng(4), 5, 0.0, TAGS)], TAGS) == {}


def test_transitions_are_counted_in_sentences_and_cells_count_the_same():
    labels = list(SPANS.labels)
    begin, inside, none = (next(i for i, label in enumerate(labels) if label[0] == first) for first in "BIO")
    uniform = np.full((1, len(labels)), 1 / len(labels))
    one = Sample(uniform.repeat(5, 0), np.array([begin, inside, none, none, begin]), np.array([3, 0, 2]))
    table = transitions(pair_shares([one], SPANS))
    assert table.shape == (len(labels) + 1, len(labels))
    pairs = np.full(table.shape, 0.5)
    for before, label in ((-1, begin), (begin, inside), (inside, none), (-1, none), (none, begin)):
        pairs[before, label] += 200
    expected = np.log(pairs / pairs.sum(1, keepdims=True)) - np.log(pairs.sum(0) / pairs.sum())
    np.testing.assert_allclose(table, WEIGHT * expected, atol=1e-4)
    twice = Sample(uniform.repeat(10, 0), np.tile(one.gold, 2), np.tile(one.lengths, 2))
    np.testing.assert_allclose(transitions(pair_shares([twice], SPANS)), table, atol=1e-4)
    assert pair_shares([one], VALUES) == pair_shares([], SPANS) == ()


def test_pairs_of_a_cell_count_with_those_of_its_task():
    n, rng = len(TAGS.labels), np.random.default_rng(0)
    task, gold = cell(rng, 50, 0.0, TAGS), np.array([0, 1, 0, 1, 1, 0])
    counts, shares = count_pairs(gold, np.array([4, 2]), n), pair_shares([task], TAGS)
    pairs = TASK_WORDS * np.array(shares)
    for before, label in ((-1, 0), (0, 1), (1, 0), (0, 1), (-1, 1), (1, 0)):
        pairs[before, label] += 1
    expected = WEIGHT * np.log(pairs / pairs.sum(1)[:, None] / (pairs.sum(0) / pairs.sum()))
    of_cell = tuple(map(tuple, counts.tolist()))
    np.testing.assert_allclose(transitions(shares, of_cell), expected)
    probabilities, lengths = rng.dirichlet(np.ones(n), size=12), np.array([5, 7])
    np.testing.assert_array_equal(Rule(pairs=shares).choose(probabilities, lengths, TAGS), probabilities.argmax(1))
    chosen = Rule(pairs=shares, counts=of_cell).choose(probabilities, lengths, TAGS)
    for first, length in ((0, 5), (5, 7)):
        totals = {}
        for sequence in product(range(n), repeat=length):
            steps = sum(expected[i, j] for i, j in pairwise([-1, *sequence]))
            totals[sequence] = steps + sum(np.log(probabilities[first + i, l]) for i, l in enumerate(sequence))
        assert tuple(chosen[first : first + length]) == max(totals, key=totals.__getitem__)
