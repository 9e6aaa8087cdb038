"""Labels: the CoNLL-U column of a task, and tag schemes normalised to strict IOB2."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from crossfill.errors import DataError
from crossfill.grid.sentence import UNLABELLED

UPOS = frozenset(re.findall(r"\w+", "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"))
"""The parts of speech of Universal Dependencies."""

_TAG = re.compile(r"(?:([BIESLUM])-(.+)|([BI]))", re.DOTALL)
_BEGINS, _ENDS = frozenset("BSU"), frozenset("ESLU")
_COLUMNS = {"pos": 3, "xpos": 4, "deprel": 7}
_KEYED = {"feats": 5, "misc": 9}
KNOWN_COLUMNS = f"{', '.join(_COLUMNS)}, feats:Case, misc:NER"


def task_name(text: str) -> str:
    """Return the canonical name of a task: `upos` is `pos`, and the folder name `feats_Case` is `feats:Case`."""
    keyed = re.fullmatch(r"(feats|misc)[:_=-](.+)", text)
    return f"{keyed[1]}:{keyed[2]}" if keyed else {"upos": "pos"}.get(text.lower(), text)


def is_ner(task: str) -> bool:
    """Tell whether a task's name says that it labels named entities: `ner`, `ner_news`."""
    return "ner" in re.split(r"[^a-z]+", task.lower())


def unlabelled_marks(task: str) -> frozenset[str]:
    """Return the labels that mean that nobody has labelled a word, unless the user names others.

    In tasks that are not known here `_` and `?` may be labels like others.
    """
    return frozenset("_?") if task in _COLUMNS or is_ner(task) else frozenset()


class LabelColumn:
    """Reads a task's label from the ten columns of a CoNLL-U line; `_` where there is none."""

    def __init__(self, task: str) -> None:
        if not self.names(task):
            raise DataError(f"expected a task that names a CoNLL-U column ({KNOWN_COLUMNS}), got '{task}'; rename it")
        name, _, self.key = task.partition(":")
        self.task = task
        self.index = _KEYED[name] if self.key else _COLUMNS[name]

    @staticmethod
    def names(task: str) -> bool:
        """Tell whether a task names a CoNLL-U column."""
        name, _, key = task.partition(":")
        return name in (_KEYED if key else _COLUMNS)

    def __call__(self, columns: Sequence[str]) -> str:
        value = columns[self.index]
        if self.key:
            pairs = (pair.partition("=") for pair in value.split("|"))
            return next((feature for key, _, feature in pairs if key == self.key and feature), "_")
        return (value.partition(":")[0] if self.task == "deprel" else value) or "_"


@lru_cache(maxsize=10_000)
def split_tag(tag: str) -> tuple[str, str] | None:
    """Return prefix and type of a span's tag; none for `O` and for labels that are not span tags."""
    match = _TAG.fullmatch(tag)
    return (match[1] or match[3], match[2] or "") if match else None


def recased(counts: Mapping[str, int], task: str) -> dict[str, str]:
    """Map tags in another case than is usual to what they mean: `b-per` to B-PER, `o` to O, `noun` to NOUN.

    Types that are not all in lower case stay as they are (`B-OtherPER`), and so do labels of other tasks.
    """
    if task == "pos" and all(tag.upper() in UPOS or tag == "_" for tag in counts):
        return {tag: tag.upper() for tag in counts if not tag.isupper() and tag != "_"}
    spans: dict[str, str] = {}
    for tag in counts:
        prefix, dash, kind = tag.partition("-")
        upper = prefix.upper() + dash + (kind.upper() if kind.islower() else kind)
        if upper == "O" or split_tag(upper):
            spans[tag] = upper
    if sum(counts[tag] for tag in spans) < 0.9 * sum(counts.values()):
        return {}
    return {tag: upper for tag, upper in spans.items() if upper != tag}


def iob2(tags: Sequence[str]) -> list[str]:
    """Rewrite the tags of a sentence in strict IOB2: a span begins with B- and continues with I- of the same type.

    Spans are read as conlleval does, which covers IOB1, IOB2, IO, BIOES, BILOU and BMES alike. A word without a label
    may be in a span that goes on after it.
    """
    strict, inside, unknown = [], None, False
    for tag in tags:
        parts = split_tag(tag)
        if parts is None:
            strict.append(tag)
            inside, unknown = None, tag == UNLABELLED
            continue
        prefix, kind = parts
        begins = prefix in _BEGINS or (inside != kind and not unknown)
        unknown = False
        strict.append(("B" if begins else "I") + (f"-{kind}" if kind else ""))
        inside = None if prefix in _ENDS else kind
    return strict
