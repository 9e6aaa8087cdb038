"""The compact encoder: batches do not matter, sentences do not leak into each other, and any text passes."""

import torch

from crossfill.config import EncoderConfig
from crossfill.encoders.compact import CompactEncoder, neighbours
from crossfill.grid.sentence import Corpus, Sentence

SENTENCES = [Sentence(("a", "bcd", "é")), Sentence(("你好",)), Sentence(("x" * 50, "", "🙂", "bcd", "a"))]
CORPUS = Corpus.from_sentences(SENTENCES)


def encoder() -> CompactEncoder:
    torch.manual_seed(0)
    return CompactEncoder(EncoderConfig(hidden=12, buckets=64)).double().eval()


def test_a_sentence_has_the_same_vectors_alone_and_in_a_batch():
    made = encoder()
    together = made(made.prepare(CORPUS))
    alone = torch.cat([made(made.prepare(Corpus.from_sentences([sentence]))) for sentence in SENTENCES])
    torch.testing.assert_close(together, alone)
    assert together.shape == (9, 12)
    assert torch.isfinite(together).all()


def test_take_and_followed_by_pick_and_join_sentences():
    made = encoder()
    inputs = made.prepare(CORPUS)
    picked = made(inputs.take(torch.tensor([2, 0])))
    alone = made(made.prepare(CORPUS.take([2, 0])))
    torch.testing.assert_close(picked, alone)
    joined = inputs.take(torch.tensor([2])).followed_by([inputs.take(torch.tensor([0]))])
    torch.testing.assert_close(made(joined), picked)


def test_words_see_their_neighbours():
    made = encoder()
    one, two = (made(made.prepare(Corpus.from_sentences([Sentence(("a", word))])))[0] for word in ("b", "c"))
    assert not torch.allclose(one, two)


def test_neighbours_stay_within_a_sentence():
    words, sentences = torch.arange(1.0, 7.0).unsqueeze(1), torch.tensor([0, 0, 0, 1, 2, 2])
    assert neighbours(words, sentences, 1).flatten().tolist() == [2, 3, 0, 0, 6, 0]
    assert neighbours(words, sentences, -2).flatten().tolist() == [0, 0, 1, 0, 0, 0]
    assert neighbours(words[:1], sentences[:1], 2).flatten().tolist() == [0]
