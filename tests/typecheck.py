"""The run-time type checker of the tests: beartype, with an int accepted where a float is asked for.

A function is checked in its first calls in each test only: some are called a hundred thousand times, and checks of all
these calls took two fifths of the suite's time.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype

MOST_CALLS = 50
"""Calls of a function that are checked in one test."""

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
_every_call = jaxtyping.jaxtyped
_counts: list[list[int]] = []


def first_calls(*, typechecker: Any) -> Callable[[Any], Any]:
    """As `jaxtyping.jaxtyped`, which the hook decorates with, but for the first calls of a function alone."""
    decorate = _every_call(typechecker=typechecker)

    def decorated(made: Any) -> Any:
        checked = decorate(made)
        if not inspect.isfunction(made):
            return checked
        count = [0]
        _counts.append(count)

        @functools.wraps(made)
        def called(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if count[0] >= MOST_CALLS:
                return made(*args, **kwargs)
            count[0] += 1
            return checked(*args, **kwargs)

        return called

    return decorated


def begin_test() -> None:
    """Every function is checked anew."""
    for count in _counts:
        count[0] = 0
