"""Shapes are checked while tests run: in every function's first calls in each test, and again in the next."""

import pytest
import torch
from jaxtyping import TypeCheckError

from crossfill.model import Head
from crossfill.prediction.predict import entropy
from tests.typecheck import MOST_CALLS, begin_test

RIGHT, WRONG = torch.full((3, 4), 0.25), "not a tensor"


def test_a_wrong_argument_is_told_and_told_again_in_the_next_test():
    for _ in range(MOST_CALLS):
        entropy(RIGHT)
    with pytest.raises((AttributeError, TypeError)):
        entropy(WRONG)  # type: ignore[arg-type]
    begin_test()
    with pytest.raises(TypeCheckError):
        entropy(WRONG)  # type: ignore[arg-type]


def test_a_wrong_field_is_told():
    with pytest.raises(TypeCheckError):
        Head(WRONG)  # type: ignore[arg-type]
