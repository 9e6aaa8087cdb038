"""How corpora are split: random splits, limits on their size, and no evaluation text of a language in training.

A grid has the same sentences in several cells when one treebank gives several tasks, or when corpora draw on the same
source. One rule holds over all corpora of a language, whichever cells are seen and however they are capped:

1. A corpus that has only a test set trains on it when its cell is seen. If another corpus is tested on some of the same
   text, that is no longer possible: it is parted in two halves by a hash of each sentence, the same in every task; one
   half becomes training text wherever it is test text, the other half is for evaluation.
2. Text of a test set is left out of every dev and training set; text of a dev set out of every training set.
3. What is left of corpora with only a test set shares no text with other test sets: where 1 and 2 do not bring that
   about (corpora of very few sentences), the shared text is left out of them.

Sentences are the same text if their letters are the same, however they were cut into words. A pair has the text of both
of its sentences: it is left out of training if either is evaluation text. Where pairs are parted in halves, it is by
their first sentence.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crossfill.grid.cells import Cell, Grid, Splits, without_script
from crossfill.grid.sentence import Corpus
from crossfill.grid.text_keys import fraction, letters

_TRAINING = ("train", "surplus")


def eighty_ten_ten(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus, Corpus]:
    """Split a corpus at random into train, dev and test, as the paper does with WikiANN; order is kept.

    Sentences are drawn by a hash of their text, so that the same text is split in the same way in every task.
    """
    drawn = [fraction(f"{seed} {first}") for first, *_ in letters(corpus)]
    order = sorted(range(len(corpus)), key=drawn.__getitem__)
    first, second = len(order) * 8 // 10, len(order) * 9 // 10
    train, dev, test = (corpus.take(sorted(part)) for part in (order[:first], order[first:second], order[second:]))
    return train, dev, test


def capped(corpus: Corpus, most: int | None, seed: int) -> Corpus:
    """Keep at most this many sentences, chosen at random; order is kept."""
    if most is None or len(corpus) <= most:
        return corpus
    order = list(range(len(corpus)))
    random.Random(seed).shuffle(order)  # noqa: S311 - a seeded experiment, not a secret
    return corpus.take(sorted(order[:most]))


def capped_grid(grid: Grid, max_dev: int | None, max_test: int | None, seed: int) -> Grid:
    """Keep at most this many dev and test sentences in each corpus, chosen at random; order is kept."""
    return grid.map(lambda s: replace(s, dev=capped(s.dev, max_dev, seed), test=capped(s.test, max_test, seed)))


@dataclass
class LeakageReport:
    """How one corpus was changed because of the text that it shares with others of its language."""

    cell: Cell
    corpus: str
    left_out: Counter[str] = field(default_factory=Counter)
    """Sentences that were left out of each split."""
    tasks: set[str] = field(default_factory=set)
    """Tasks in whose dev or test sets they are."""
    moved: int = 0
    """Test sentences that became training sentences."""


def separate_evaluation_text(
    corpora: Mapping[Cell, Sequence[Splits]],
) -> tuple[dict[Cell, tuple[Splits, ...]], list[LeakageReport]]:
    """Keep evaluation text out of training text; returns the corpora of a grid, and what was changed for it.

    Corpora that share no text are returned as they are. One of which nothing is left is returned empty.
    """
    languages: dict[str, list[_Member]] = defaultdict(list)
    members = [_Member(cell, splits) for cell, several in corpora.items() for splits in several]
    for member in members:
        languages[without_script(member.cell.language)].append(member)
    for group in languages.values():
        _split_test_only(group)
        _leave_out(group, "dev", ["test"])
        for split in _TRAINING:
            _leave_out(group, split, ["test", "dev"])
        _drop_shared_tests(group)
    apart: dict[Cell, tuple[Splits, ...]] = dict.fromkeys(corpora, ())
    reports = []
    for member in members:
        splits, n_left_out = member.splits, member.report.left_out.total()
        if n_left_out or member.report.moved:
            splits = replace(splits, **member.parts, left_out=splits.left_out + n_left_out)
            reports.append(member.report)
        apart[member.cell] = (*apart[member.cell], splits)
    return apart, reports


class _Member:
    """A corpus of a language, with the text of its sentences."""

    def __init__(self, cell: Cell, splits: Splits) -> None:
        self.cell, self.splits, self.report = cell, splits, LeakageReport(cell, splits.name)
        self.parts = splits.parts
        self.texts = {name: list(letters(corpus)) for name, corpus in self.parts.items()}

    @property
    def is_test_only(self) -> bool:
        """Whether it has a test set and nothing to train on but that."""
        return bool(self.texts["test"]) and not any(self.texts[split] for split in _TRAINING)

    @property
    def tested(self) -> set[str]:
        return {text for sentence in self.texts["test"] for text in sentence}

    def keep(self, split: str, positions: Sequence[int]) -> None:
        """Keep these sentences of a split only."""
        self.parts[split] = self.parts[split].take(positions)
        self.texts[split] = [self.texts[split][i] for i in positions]

    def leave_out(self, split: str, held_out: Mapping[str, Collection[str]]) -> None:
        """Leave out what is held out, which maps a text to the tasks that hold it out."""
        texts = self.texts[split]
        shared = {i: held for i, sentence in enumerate(texts) if (held := [t for t in sentence if t in held_out])}
        if shared:
            self.report.left_out[split] += len(shared)
            self.report.tasks.update(task for held in shared.values() for text in held for task in held_out[text])
            self.keep(split, [i for i in range(len(texts)) if i not in shared])

    def train_on(self, chosen: Collection[str]) -> None:
        """Move test sentences with these texts to the training set."""
        texts = self.texts["test"]
        if taken := [i for i, sentence in enumerate(texts) if sentence[0] in chosen]:
            self.report.moved += len(taken)
            self.parts["train"] = Corpus.joined((self.parts["train"], self.parts["test"].take(taken)))
            self.texts["train"] += [texts[i] for i in taken]
            self.keep("test", [i for i, sentence in enumerate(texts) if sentence[0] not in chosen])


def _split_test_only(members: Sequence[_Member]) -> None:
    """Part corpora with only a test set in halves by their text, where others are tested on some of the same."""
    shared = _shared_tests(members)
    parted = [member for member in members if member.is_test_only and not shared.keys().isdisjoint(member.tested)]
    chosen = {sentence[0] for member in parted for sentence in member.texts["test"] if fraction(sentence[0]) < 0.5}
    for member in members:
        member.train_on(chosen)


def _leave_out(members: Sequence[_Member], split: str, held_out_in: Sequence[str]) -> None:
    """Leave out of a split of every corpus what is in these splits of any corpus."""
    held_out: dict[str, set[str]] = defaultdict(set)
    for member in members:
        for text in (text for other in held_out_in for sentence in member.texts[other] for text in sentence):
            held_out[text].add(member.cell.task)
    for member in members:
        member.leave_out(split, held_out)


def _drop_shared_tests(members: Sequence[_Member]) -> None:
    """Leave out of corpora with only a test set, one after the other, what others are tested on."""
    for member in members:
        if member.is_test_only:
            shared = _shared_tests(members)
            others = {text: {m.cell.task for m in testing if m is not member} for text, testing in shared.items()}
            member.leave_out("test", {text: tasks for text, tasks in others.items() if tasks})


def _shared_tests(members: Sequence[_Member]) -> dict[str, list[_Member]]:
    """Find texts that would be trained on and tested on at once in some partition, with the corpora they test."""
    tested: dict[str, list[_Member]] = defaultdict(list)
    for member in members:
        for text in member.tested:
            tested[text].append(member)
    return {  # corpora of one cell with only a test set are all trained on, or all tested on
        text: testing
        for text, testing in tested.items()
        if any(member.is_test_only for member in testing)
        and len({(member.cell, member.is_test_only) for member in testing}) > 1
    }
