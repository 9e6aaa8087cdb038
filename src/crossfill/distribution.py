"""Which of several processes this is."""

import os
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def is_first_process() -> bool:
    """Whether this process is the one that writes and shows, among those that were launched together."""
    return int(os.environ.get("RANK", "0")) == 0


def first_process_first(work: Callable[[], Result]) -> Result:
    return work()
