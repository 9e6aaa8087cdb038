"""The unit of a task: what it labels."""

from enum import StrEnum


class Unit(StrEnum):
    """What a task gives a label to."""

    WORD = "word"
    """Every word of a sentence."""
    SENTENCE = "sentence"
    """A sentence as a whole: its topic, intent or sentiment."""
    PAIR = "pair"
    """Two sentences together: whether the first entails the second."""

    @property
    def n_sentences(self) -> int:
        """Sentences that are read together."""
        return 2 if self is Unit.PAIR else 1

    def width(self, n_features: int) -> int:
        """Numbers in the vector of one unit, over an encoder with `n_features` for a word (`encoders.pooling`)."""
        return 4 * n_features if self is Unit.PAIR else n_features
