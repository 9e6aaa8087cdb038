"""Dependency relations of words whose heads are known."""

from crossfill.prediction.tagging import Tagging

ROOT = "root"


def relation_to(head: str, tagging: Tagging, word: int) -> str:
    """The relation of a word to a head in CoNLL-U: `root` to 0, and only to 0, as trees have it."""
    label = tagging.labels[word]
    if ROOT not in tagging.label_names or (label == ROOT) == (head == "0"):
        return label
    return ROOT if head == "0" else next(other for other in tagging.distribution(word) if other != ROOT)
