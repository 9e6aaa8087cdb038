"""The labels of a task as annotation tools name them."""

from collections.abc import Iterable

from crossfill.data.labels import split_tag


def types_of(label_names: Iterable[str]) -> list[str]:
    """What annotators choose from: the types of spans, or the labels other than `_`."""
    found = [tag[1] if (tag := split_tag(name)) else name for name in label_names if name not in ("O", "_")]
    return list(dict.fromkeys(found))
