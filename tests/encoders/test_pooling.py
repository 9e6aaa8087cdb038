"""Vectors of sentences and pairs against a loop over words."""

import pytest
import torch

from crossfill.encoders.base import pool, sentences_of
from crossfill.grid.task import Unit

LENGTHS = torch.tensor([3, 1, 0, 2])
WORDS = torch.randn(6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def means() -> list[torch.Tensor]:
    """The mean of each sentence's words; zero where it has none."""
    found, start = [], 0
    for length in LENGTHS.tolist():
        rows = WORDS[start : start + length]
        found.append(sum(rows) / length if length else torch.zeros(5, dtype=torch.float64))
        start += length
    return found


def test_words_stay_as_they_are():
    assert pool(WORDS, LENGTHS, Unit.WORD) is WORDS


def test_a_sentence_is_the_mean_of_its_words():
    torch.testing.assert_close(pool(WORDS, LENGTHS, Unit.SENTENCE), torch.stack(means()))


def test_or_a_mean_that_attention_weighs():
    query = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    rows = [WORDS[:3], WORDS[3:4], WORDS[4:]]
    a, b, d = ((part @ query).softmax(0) @ part for part in rows)
    found = pool(WORDS, LENGTHS, Unit.SENTENCE, query)
    torch.testing.assert_close(found, torch.stack([a, b, torch.zeros(5, dtype=torch.float64), d]))


def test_attention_begins_as_the_mean_and_learns():
    query = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    found = pool(WORDS, LENGTHS, Unit.SENTENCE, query)
    torch.testing.assert_close(found, torch.stack(means()))
    assert torch.autograd.gradcheck(
        lambda q: pool(WORDS, LENGTHS, Unit.SENTENCE, q), torch.randn_like(query).requires_grad_()
    )
    huge = pool(1e6 * WORDS, LENGTHS, Unit.SENTENCE, torch.ones(5, dtype=torch.float64))
    assert huge.isfinite().all()


def test_a_pair_is_u_v_their_distance_and_their_product():
    a, b, c, d = means()
    expected = [torch.cat([u, v, (u - v).abs(), u * v]) for u, v in ((a, b), (c, d))]
    torch.testing.assert_close(pool(WORDS, LENGTHS, Unit.PAIR), torch.stack(expected))


@pytest.mark.parametrize("unit", list(Unit))
def test_the_width_of_a_unit_is_that_of_its_vectors(unit: Unit):
    assert pool(WORDS, LENGTHS, unit).shape[1] == unit.width(5)


def test_sentences_of_pairs_come_in_twos():
    assert sentences_of(torch.tensor([2, 0]), Unit.PAIR).tolist() == [4, 5, 0, 1]
    assert sentences_of(torch.tensor([2, 0]), Unit.SENTENCE).tolist() == [2, 0]
