"""Mean and standard deviation of word vectors, from sums that add up over corpora."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

_NO_SCALE = 1e-6
_ROWS_AT_ONCE = 2**14


@dataclass(frozen=True)
class Moments:
    """Sums over words from which mean and standard deviation are computed."""

    count: int
    total: Float[np.ndarray, "features"]
    squares: Float[np.ndarray, "features"]

    @classmethod
    def of(cls, parts: Iterable[np.ndarray], width: int) -> "Moments":
        count, total, squares = 0, np.zeros(width), np.zeros(width)
        for part in parts:
            for start in range(0, len(part), _ROWS_AT_ONCE):
                rows = part[start : start + _ROWS_AT_ONCE].astype(np.float64)
                count, total, squares = count + len(rows), total + rows.sum(0), squares + (rows**2).sum(0)
        return cls(count, total, squares)

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(self.count + other.count, self.total + other.total, self.squares + other.squares)

    def summary(self) -> tuple[Float[np.ndarray, "features"], Float[np.ndarray, "features"]]:
        """Mean and standard deviation; the latter is 1 for features that do not vary, so that they are not scaled."""
        mean = self.total / max(1, self.count)
        scale = np.sqrt(np.maximum(0.0, self.squares / max(1, self.count) - mean**2))
        return mean, np.where(scale > _NO_SCALE, scale, 1.0)
