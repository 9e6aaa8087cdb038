"""Labels: the CoNLL-U column of a task, and tag schemes normalised to strict IOB2."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from crossfill.errors import DataError

Scheme = Literal["IOB2", "IOB1", "IO", "BIOES", "BILOU", "BMES", "mixed", "none"]
"""How a corpus encodes spans; `mixed`: IOB2 with spans that begin with I- or stray labels; `none`: plain labels."""

_TAG = re.compile(r"(?:([BIESLUM])-(.+)|([BI]))", re.DOTALL)
_BEGINS, _ENDS = frozenset("BSU"), frozenset("ESLU")
_COLUMNS = {"pos": 3, "xpos": 4, "deprel": 7}
_KEYED = {"feats": 5, "misc": 9}


def task_name(text: str) -> str:
    """The canonical name of a task: `upos` is `pos`, and the folder name `feats_Case` is `feats:Case`."""
    keyed = re.fullmatch(r"(feats|misc)[:_=-](.+)", text)
    return f"{keyed[1]}:{keyed[2]}" if keyed else {"upos": "pos"}.get(text.lower(), text)


class LabelColumn:
    """Reads a task's label from the ten columns of a CoNLL-U line; `_` where there is none."""

    def __init__(self, task: str) -> None:
        if not self.names(task):
            raise DataError(
                f"expected a task that names a CoNLL-U column ({', '.join(_COLUMNS)}, feats:Case, misc:NER), got "
                f"'{task}'; rename the folder, or give its labels as word<TAB>label in .bio files"
            )
        name, _, self.key = task.partition(":")
        self.task = task
        self.index = _KEYED[name] if self.key else _COLUMNS[name]

    @staticmethod
    def names(task: str) -> bool:
        """Whether a task names a CoNLL-U column."""
        name, _, key = task.partition(":")
        return name in (_KEYED if key else _COLUMNS)

    def __call__(self, columns: Sequence[str]) -> str:
        value = columns[self.index]
        if self.key:
            pairs = (pair.partition("=") for pair in value.split("|"))
            return next((found for key, _, found in pairs if key == self.key and found), "_")
        return (value.partition(":")[0] if self.task == "deprel" else value) or "_"


def split_tag(tag: str) -> tuple[str, str] | None:
    """The prefix and type of a span's tag; none for `O` and for labels that are not span tags."""
    found = _TAG.fullmatch(tag)
    return (found[1] or found[3], found[2] or "") if found else None


def iob2(tags: Sequence[str]) -> list[str]:
    """The tags of a sentence in strict IOB2: a span begins with B- and continues with I- of the same type.

    Spans are read as conlleval does, which covers IOB1, IOB2, IO, BIOES, BILOU and BMES alike.
    """
    strict, inside = [], None
    for tag in tags:
        found = split_tag(tag)
        if found is None:
            strict.append(tag)
            inside = None
            continue
        prefix, kind = found
        begins = prefix in _BEGINS or inside != kind
        strict.append(("B" if begins else "I") + (f"-{kind}" if kind else ""))
        inside = None if prefix in _ENDS else kind
    return strict


def scheme(sentences: Iterable[Sequence[str]]) -> tuple[Scheme, int]:
    """The scheme that these tags follow, and the number of tags that do not fit it (`mixed` only)."""
    seen: Counter[str] = Counter()
    for tags in sentences:
        previous = None
        for tag in tags:
            found = split_tag(tag)
            if found is None and tag != "O":
                seen["label"] += 1
            elif found:
                prefix, kind = found
                seen[prefix] += 1
                seen["I begins"] += prefix == "I" and previous != kind
                seen["B begins"] += prefix == "B" and previous != kind
            previous = found[1] if found else None
    tagged = sum(seen[prefix] for prefix in "BIESLUM")
    if seen["label"] > tagged:
        return "none", 0
    if seen["label"]:
        return "mixed", seen["label"]
    if seen["L"] or seen["U"]:
        return "BILOU", 0
    if seen["M"]:
        return "BMES", 0
    if seen["E"] or seen["S"]:
        return "BIOES", 0
    if not seen["I begins"]:
        return "IOB2", 0
    if not seen["B"]:
        return "IO", 0
    return ("mixed", seen["I begins"]) if seen["B begins"] else ("IOB1", 0)
