"""Text that crosses tasks: evaluation text of a language trains in none of its tasks.

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

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crossfill.grid.cells import Cell, Splits
from crossfill.grid.sentence import Corpus
from crossfill.grid.text_keys import fraction, letters

_TRAINING = ("train", "surplus")


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

    def __bool__(self) -> bool:
        return bool(self.left_out.total() or self.moved)


def separate_evaluation_text(
    corpora: Mapping[Cell, Sequence[Splits]],
) -> tuple[dict[Cell, tuple[Splits, ...]], list[LeakageReport]]:
    """Keep evaluation text out of training text; returns the corpora of a grid, and what was changed for it.

    Corpora that share no text are returned as they are. One of which nothing is left is returned empty.
    """
    languages: dict[str, list[_Member]] = defaultdict(list)
    members = [_Member(cell, splits) for cell, several in corpora.items() for splits in several]
    for member in members:
        languages[member.cell.language].append(member)
    for group in languages.values():
        _split_test_only(group)
        _leave_out(group, "dev", ["test"])
        for split in _TRAINING:
            _leave_out(group, split, ["test", "dev"])
        _drop_shared_tests(group)
    apart: dict[Cell, tuple[Splits, ...]] = dict.fromkeys(corpora, ())
    for member in members:
        apart[member.cell] = (*apart[member.cell], member.result())
    return apart, [member.report for member in members if member.report]


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
        """Text that it tests."""
        return {text for sentence in self.texts["test"] for text in sentence}

    def trains_with(self, other: "_Member") -> bool:
        """Tell whether the two train on their test sets, or are tested on them, always together."""
        return self.is_test_only and other.is_test_only and self.cell == other.cell

    def keep(self, split: str, positions: Sequence[int]) -> None:
        """Keep these sentences of a split only."""
        self.parts[split] = self.parts[split].take(positions)
        self.texts[split] = [self.texts[split][i] for i in positions]

    def leave_out(self, split: str, held_out: Mapping[str, Collection[str]]) -> None:
        """Leave out what is held out, which maps a text to the tasks that hold it out."""
        shared = {
            i: held for i, sentence in enumerate(self.texts[split]) if (held := [t for t in sentence if t in held_out])
        }
        if shared:
            self.report.left_out[split] += len(shared)
            self.report.tasks.update(task for held in shared.values() for text in held for task in held_out[text])
            self.keep(split, [i for i in range(len(self.texts[split])) if i not in shared])

    def train_on(self, chosen: Collection[str]) -> None:
        """Move test sentences with these texts to the training set."""
        taken = [i for i, sentence in enumerate(self.texts["test"]) if sentence[0] in chosen]
        if taken:
            self.report.moved += len(taken)
            self.parts["train"] = Corpus.joined((self.parts["train"], self.parts["test"].take(taken)))
            self.texts["train"] += [self.texts["test"][i] for i in taken]
            self.keep("test", [i for i, sentence in enumerate(self.texts["test"]) if sentence[0] not in chosen])

    def result(self) -> Splits:
        """Return the splits as they are now; those it was made from if nothing was changed."""
        if not self.report:
            return self.splits
        return replace(self.splits, **self.parts, left_out=self.splits.left_out + self.report.left_out.total())


def _split_test_only(members: Sequence[_Member]) -> None:
    """Part corpora with only a test set in halves by their text, where others are tested on some of the same."""
    shared = _shared_tests(members)
    parted = [member for member in members if member.is_test_only and not shared.keys().isdisjoint(member.tested)]
    chosen = {sentence[0] for member in parted for sentence in member.texts["test"] if fraction(sentence[0]) < 0.5}
    for member in members:
        member.train_on(chosen)


def _leave_out(members: Sequence[_Member], split: str, held_out_in: Iterable[str]) -> None:
    """Leave out of a split of every corpus what is in these splits of any corpus."""
    held_out: dict[str, set[str]] = defaultdict(set)
    for member in members:
        for other in held_out_in:
            for sentence in member.texts[other]:
                for text in sentence:
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
    """Texts that would be trained on and tested on at once in some partition, with the corpora they test."""
    tested: dict[str, list[_Member]] = defaultdict(list)
    for member in members:
        for text in member.tested:
            tested[text].append(member)
    return {
        text: testing
        for text, testing in tested.items()
        if len(testing) > 1
        and any(member.is_test_only for member in testing)
        and not all(testing[0].trains_with(member) for member in testing)
    }
