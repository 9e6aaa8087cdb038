"""Inputs of one encoder are never taken for those of another."""

import pytest
import torch

from crossfill.config import EncoderConfig
from crossfill.encoders.base import Inputs
from crossfill.encoders.compact import CompactEncoder
from crossfill.encoders.features import FeatureEncoder, FeatureInputs
from crossfill.encoders.frozen import FrozenInputs
from crossfill.encoders.pieces import PieceInputs
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus, Sentence

COMPACT = CompactEncoder(EncoderConfig(hidden=4, buckets=8))
WORDS = COMPACT.prepare(Corpus.from_sentences([Sentence(("a", "b"))]))
GIVEN = FeatureInputs(torch.zeros(2, 4), torch.tensor([2]))
FROZEN = FrozenInputs(torch.zeros(2, 4), torch.tensor([2]), torch.tensor([0]))
NUMBERS = torch.tensor([1])
PIECES = PieceInputs(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS - 1, NUMBERS - 1, NUMBERS)


@pytest.mark.parametrize("inputs", [WORDS, GIVEN, FROZEN, PIECES], ids=lambda inputs: type(inputs).__name__)
def test_inputs_of_another_encoder_are_refused_not_dropped(inputs: Inputs):
    assert len(inputs.followed_by([inputs]).lengths) == 2
    other = WORDS if inputs is not WORDS else GIVEN
    with pytest.raises(DataError, match=f"expected {type(inputs).__name__}, got {type(other).__name__}"):
        inputs.followed_by([inputs, other])


def test_an_encoder_refuses_inputs_that_it_did_not_prepare():
    for encoder, other in ((COMPACT, GIVEN), (FeatureEncoder(4), WORDS)):
        with pytest.raises(DataError, match="inputs of another encoder"):
            encoder(other)
