"""Given features: picked by sentence, and refused where they are not finite."""

import pytest
import torch

from crossfill.encoders.features import FeatureEncoder, FeatureInputs
from crossfill.errors import DataError

LENGTHS = torch.tensor([2, 1, 3])
FEATURES = torch.arange(12.0).view(6, 2)


def test_take_picks_the_words_of_sentences():
    inputs = FeatureInputs(FEATURES, LENGTHS).take(torch.tensor([2, 0]))
    assert FeatureEncoder(2)(inputs)[:, 0].tolist() == [6, 8, 10, 0, 2]
    assert inputs.lengths.tolist() == [3, 2]


def test_features_that_are_not_finite_are_refused_with_their_place():
    broken = FEATURES.clone()
    broken[3, 1] = torch.nan
    with pytest.raises(DataError, match="in 1 of 6 words, first in sentence 3"):
        FeatureInputs(broken, LENGTHS)
    with pytest.raises(DataError, match="expected 6 word vectors, got 5"):
        FeatureInputs(FEATURES[:5], LENGTHS)
