"""How far people agree who labelled the same sentences, and where they do not.

Krippendorff's α is of the labels of words, from all names at once; a word that one left open counts for the others.
F1 is of two names. Intervals are of 95 %, from sentences drawn again with replacement (bootstrap).
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, combinations, count, pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float

from crossfill.data.folder import load_grid
from crossfill.errors import DataError, listed
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import UNLABELLED, Column, Sentence
from crossfill.grid.task import Task, TaskKind, Unit
from crossfill.grid.text_keys import text_key
from crossfill.measures.metrics import Labelling, krippendorff_alpha, pairable_values
from crossfill.teaching.estimate import Score
from crossfill.teaching.journal import Journal, JournalState

N_DRAWS = 1000
Version = dict[str, Sentence]
"""A sentence as each name has labelled it."""


@dataclass(frozen=True)
class Pair:
    """Two names that labelled the same sentences; the score is F1 of what is not none, for tags the share of words."""

    first: str
    second: str
    sentences: int
    score: Score


@dataclass(frozen=True)
class Disagreement:
    """A word of a sentence that names label differently."""

    sentence: Sentence
    """With the labels that all agree on; the other words are open."""
    word: int
    labels: Mapping[str, str]
    """By name."""


@dataclass(frozen=True)
class Agreement:
    """What people agree on in a cell."""

    cell: Cell
    names: tuple[str, ...]
    sentences: int
    """Those that two names or more have labelled."""
    words: int
    alpha: Score
    pairs: tuple[Pair, ...]
    differences: tuple[Disagreement, ...]


def agreements(folders: Sequence[Path]) -> list[Agreement]:
    """Compare what people labelled in each cell: the names in folders of the Teach page, one name in a data folder."""
    found: dict[Cell, dict[str, Version]] = {}
    for folder in folders:
        journals = sorted(path for path in folder.glob("*.bio") if path.read_bytes()[:2] == b"# ")
        for path in journals:
            cell = Cell.of_file(path.stem)
            journal = Journal(folder, cell)
            state = JournalState()
            state.apply(journal.read())
            if journal.damage:
                raise DataError(journal.damage)
            _add(found, cell, ((entry.who or folder.name, entry.sentence) for entry in state.versions.values()))
        for cell, corpora in () if journals else load_grid(folder).corpora.items():
            parts = [part for splits in corpora for part in splits.parts.values() if part.unit is Unit.WORD]
            _add(found, cell, ((folder.name, sentence) for part in parts for sentence in part))
    shared = {cell: [one for one in found[cell].values() if len(one) > 1] for cell in sorted(found)}
    if not any(shared.values()):
        names = sorted({name for versions in found.values() for one in versions.values() for name in one})
        raise DataError(
            f"{', '.join(map(str, folders))}: expected sentences that two people have labelled, got none, of "
            f"{listed(names) or 'nobody'}; tick 'again what others did' in the Teach page, or name a folder of each"
        )
    return [agreement_of(cell, versions) for cell, versions in shared.items() if versions]


def _add(found: dict[Cell, dict[str, Version]], cell: Cell, sentences: Iterable[tuple[str, Sentence]]) -> None:
    for name, sentence in sentences:
        if not any(sentence.labels):
            continue
        found.setdefault(cell, {}).setdefault(text_key(sentence), {})[name] = sentence


def agreement_of(cell: Cell, versions: Sequence[Version]) -> Agreement:
    """Compare the labels of sentences that two names or more have labelled."""
    names = tuple(sorted({name for one in versions for name in one}))
    labels = {label for one in versions for sentence in one.values() for label in sentence.labels} - {UNLABELLED}
    task = Task(cell.task, tuple(sorted(labels)))
    shared = [_cut_alike(one, task.kind is TaskKind.SPANS) for one in versions]
    lengths = np.array([len(words) for words, _ in shared])
    columns = [[of.get(name, (UNLABELLED,) * len(words)) for words, of in shared] for name in names]
    given = np.stack([Column.of(chain(*column)).positions_in(dict(zip(task.labels, count()))) for column in columns])
    n, sentence = len(shared), np.repeat(np.arange(len(shared)), lengths)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), N_DRAWS)
    rows = np.zeros((n, 1 + len(labels)))
    np.add.at(rows, sentence, pairable_values(np.stack([(given == i).sum(0) for i in range(len(labels))], axis=1)))
    pairs = []
    for i, j in combinations(range(len(names)), 2):
        both = (given[i] >= 0) & (given[j] >= 0)
        first, second = np.where(both, given[[i, j]], -1)
        items = Labelling(first, second, task, lengths).counts()
        if both.any():
            score = _interval(_f1(items.sum(0)), _f1(drawn @ items))
            pairs.append(Pair(names[i], names[j], len(np.unique(sentence[both])), score))
    alpha = _interval(krippendorff_alpha(rows.sum(0)), krippendorff_alpha(drawn @ rows))
    differences = tuple(chain(*(_differences(words, of) for words, of in shared)))
    return Agreement(cell, names, n, len(sentence), alpha, tuple(pairs), differences)


def _differences(words: tuple[str, ...], labels: Mapping[str, Sequence[str]]) -> Iterator[Disagreement]:
    given = [{name: own[i] for name, own in labels.items() if own[i] != UNLABELLED} for i in range(len(words))]
    agreed = tuple(next(iter(of.values())) if len({*of.values()}) == 1 else UNLABELLED for of in given)
    for i, of_word in enumerate(given):
        if len({*of_word.values()}) > 1:
            yield Disagreement(Sentence(words, agreed), i, of_word)


def _f1(hits: np.ndarray) -> Float[np.ndarray, "*draws"]:
    return 2 * hits[..., 0] / np.maximum(1, hits[..., 1] + hits[..., 2])


def _interval(value: np.ndarray, draws: Float[np.ndarray, "draws"]) -> Score:
    known = draws[~np.isnan(draws)]
    low, high = np.quantile(known, [0.025, 0.975]).tolist() if len(known) else (None, None)
    return Score(float(value), low, high)


def _cut_alike(version: Version, is_spans: bool) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Cut a sentence where a word of anyone ends: the words, and their labels by name, which parts of a word share."""
    letters = "".join("".join(next(iter(version.values())).words).split())
    ends = {name: [*accumulate(len("".join(word.split())) for word in s.words)] for name, s in version.items()}
    cuts = sorted({0, *chain(*ends.values())})
    words = tuple(letters[start:end] for start, end in pairwise(cuts))
    labels = {}
    for name, sentence in version.items():
        starts = {0, *ends[name]}
        of_cuts = [sentence.labels[bisect_right(ends[name], start)] for start in cuts[:-1]]
        labels[name] = tuple(
            f"I-{label[2:]}" if is_spans and label.startswith("B-") and start not in starts else label
            for start, label in zip(cuts, of_cuts, strict=False)
        )
    return words, labels
