"""Labelled sentences and pairs of sentences: what their columns are called, and how a row of them becomes an item."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossfill.data.segmentation import split_words
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence
from crossfill.grid.unit import Unit

TEXT_NAMES = ("text", "sentence", "utterance", "utt", "review", "tweet", "question", "content")
PAIR_NAMES = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("text1", "text2"), ("question1", "question2"))
LABEL_NAMES = ("label", "category", "class", "topic", "intent", "sentiment", "gold_label", "labels")
NAMED_LABELS = ("label_text", "label_name", "label_names")
"""Columns with the names of labels that are numbers, beside a column of numbers."""
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")


@dataclass(frozen=True)
class ItemColumns:
    """The names of the columns that hold the text of an item, or the two texts of a pair, and its label."""

    texts: tuple[str, ...]
    label: str

    @property
    def unit(self) -> Unit:
        return Unit.PAIR if len(self.texts) == 2 else Unit.SENTENCE


def find_columns(names: Iterable[str], task: str) -> ItemColumns | None:
    """The columns of sentences or pairs among these; none if they do not hold both texts and labels."""
    known = {name.strip().lower(): name for name in reversed(list(names))}
    label = next((known[n] for n in (*NAMED_LABELS, task.lower(), *LABEL_NAMES) if n in known), None)
    pair = next((tuple(known[n] for n in both) for both in PAIR_NAMES if all(n in known for n in both)), None)
    text = next((known[n] for n in TEXT_NAMES if n in known and known[n] != label), None)
    if label is None or not (pair or text):
        return None
    return ItemColumns(pair or (text or "",), label)


def read_item(texts: Sequence[Any], label: Any, names: Sequence[str], language: str) -> Sentence:
    """A sentence, or a pair, with its label; `names` are those of labels that are numbers, or all labels there are."""
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            missing = "two sentences, got one" if len(texts) == 2 and any(texts) else "text, got nothing"
            raise DataError(f"expected {missing}")
    own = read_label(label, names)
    cut = [split_words(text, language) for text in texts]
    if len(cut) == 2:
        return Sentence.pair(cut[0], cut[1], own)
    return Sentence(cut[0].words, (own,), cut[0].spaces, unit=Unit.SENTENCE)


def read_label(value: Any, names: Sequence[str]) -> str:
    """A label; a number is the place of its name, from 0, where there are names."""
    text = str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    if not text or set(text) & set("\t\n"):
        raise DataError(f"expected one label, got {_shown(value)}")
    if not names or text in names:
        return text
    if _NUMBER.fullmatch(text):
        if 0 <= int(text) < len(names):
            return names[int(text)]
        raise DataError(
            f"expected a label from 0 to {len(names) - 1}, as labels.txt or the file names them; got {text}"
        )
    raise DataError(f"expected one of the labels {', '.join(names)[:80]}; got '{text[:40]}'")


def as_row(sentence: Sentence) -> Mapping[str, str]:
    """An item as it is written: text and label, or premise, hypothesis and label."""
    texts = [part.text for part in sentence.sentences]
    names = PAIR_NAMES[0] if sentence.unit is Unit.PAIR else TEXT_NAMES[:1]
    return {**dict(zip(names, texts, strict=True)), **dict(zip(LABEL_NAMES, sentence.labels, strict=False))}


def _shown(value: Any) -> str:
    text = str(value).strip()
    return f"'{text[:40]}'" if text else "nothing"
