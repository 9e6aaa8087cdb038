"""Problems with data, and checks for data that can be read but looks wrong."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from crossfill.data.labels import UPOS
from crossfill.data.splits import all_letters
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import EMPTY
from crossfill.grid.unit import Unit

Level = Literal["error", "warning", "recognised", "note", "unread"]
"""`error`: data that had to be left out; `warning`: data that looks wrong; `recognised`: columns that were not obvious;
`note`: what was changed while reading; `unread`: files that are no corpora, or are not asked for."""
MOST_DUPLICATES = 0.05
"""Largest share, without a warning, of sentences that repeat an earlier one of the same split."""
MOST_OTHER_SCRIPT = 0.1
"""Largest share, without a warning, of letters outside a cell's main script."""
MOST_OTHER_LABELS = 0.1
"""Largest share, without a warning, of words whose part of speech is none of UD's."""
MOST_MISSING = 0.05
"""Largest share, without a warning, of words that are `_`, as in treebanks distributed without their text."""

# scripts that count as one because they are used together
_WRITING = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK", "BOPOMOFO": "CJK", "IDEOGRAPHIC": "CJK"}


@dataclass(frozen=True, order=True)
class Problem:
    """One problem with a cell or a file, or a note on it."""

    level: Level
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


def check_grid(grid: Grid) -> list[Problem]:
    """Warnings about every cell, and about languages whose tasks are written in different scripts."""
    warnings = []
    main_scripts: dict[str, dict[str, list[str]]] = {}
    for cell, corpora in grid.corpora.items():
        letters: Counter[str] = Counter()
        for splits in corpora:
            found = _scripts(splits)
            letters += found
            told = (
                *_unseen_labels(splits),
                *_not_upos(cell, splits),
                *_duplicates(splits),
                *_missing(cell, splits),
                *_mixed(found),
            )
            warnings += [Problem("warning", _where(cell, splits, corpora), message) for message in told]
        for script, _ in letters.most_common(1):
            main_scripts.setdefault(cell.language, {}).setdefault(script, []).append(cell.task)
    for language, scripts in sorted(main_scripts.items()):
        if len(scripts) > 1:
            told = "; ".join(f"{', '.join(tasks)} in {script}" for script, tasks in scripts.items())
            warnings.append(Problem("warning", language, f"different scripts: {told}"))
    return warnings


def of_one_unit(
    corpora: Mapping[Cell, tuple[Splits, ...]],
) -> tuple[dict[Cell, tuple[Splits, ...]], list[Problem]]:
    """The cells of each task with the unit that most of them have, and an error for each of the others."""
    units = {cell: _unit(found) for cell, found in corpora.items()}
    kept: dict[Cell, tuple[Splits, ...]] = {}
    errors = []
    for cell, found in corpora.items():
        others = Counter(unit for other, unit in units.items() if other.task == cell.task)
        usual = max(sorted(others), key=others.__getitem__)
        if units[cell] is usual:
            kept[cell] = found
            continue
        message = f"expected labels of {usual}s, as other corpora of {cell.task} have; got labels of {units[cell]}s; "
        errors.append(Problem("error", str(cell), message + "give it a task of its own"))
    return kept, errors


def _unit(corpora: Iterable[Splits]) -> Unit:
    return next((c.unit for splits in corpora for c in splits.parts.values() if len(c)), Unit.WORD)


def _where(cell: Cell, splits: Splits, corpora: Sequence[Splits]) -> str:
    return str(cell) if len(corpora) == 1 else f"{cell} ({splits.name})"


def _unseen_labels(splits: Splits) -> Iterable[str]:
    training = splits.training
    if training is splits.test or training is EMPTY:
        return
    known = training.labels.distinct()
    for name in ("dev", "test"):
        labels: Counter[str] = getattr(splits, name).labels.counts()
        if new := sorted(set(labels) - known):
            n, unit = sum(labels[label] for label in new), getattr(splits, name).unit
            yield f"{_listed(new)} only in {name} ({n:,} {unit}{'s' * (n != 1)})"


def _not_upos(cell: Cell, splits: Splits) -> Iterable[str]:
    if cell.task != "pos":
        return
    labels = sum((corpus.labels.counts() for corpus in splits.parts.values()), Counter())
    others = {label: n for label, n in labels.items() if label not in UPOS and label != "_"}
    if (share := sum(others.values()) / max(1, labels.total())) > MOST_OTHER_LABELS:
        shown = _listed(sorted(others, key=lambda label: -others[label]))
        yield f"{share:.0%} of the words have labels that are not UPOS ({shown}): is this the right column?"


def _duplicates(splits: Splits) -> Iterable[str]:
    for name, corpus in splits.parts.items():
        repeated = len(corpus) - len(set(all_letters(corpus)))
        if repeated > MOST_DUPLICATES * len(corpus):
            yield f"{repeated:,} of {len(corpus):,} {name} {corpus.items} repeat another ({repeated / len(corpus):.0%})"


def _missing(cell: Cell, splits: Splits) -> Iterable[str]:
    corpora = splits.parts.values()
    n_words = sum(corpus.n_words for corpus in corpora)
    wordless = sum(corpus.words.counts()["_"] for corpus in corpora)
    if wordless > MOST_MISSING * n_words:
        yield f"{wordless / n_words:.0%} of the words are _: this corpus comes without its text"
    unlabelled = sum(corpus.labels.counts()["_"] for corpus in corpora)
    if unlabelled and ":" not in cell.task:
        unit = next(corpus.unit for corpus in corpora if len(corpus))
        yield f"{unlabelled:,} of {sum(corpus.n_labels for corpus in corpora):,} {unit}s have no label (_)"


def _mixed(letters: Counter[str]) -> Iterable[str]:
    total = letters.total()
    common = [(script, n) for script, n in letters.most_common() if n > MOST_OTHER_SCRIPT * total]
    if len(common) > 1:
        yield "mixed scripts: " + ", ".join(f"{script} {n / total:.0%}" for script, n in common)


def _scripts(splits: Splits) -> Counter[str]:
    """Letters per script."""
    found: Counter[str] = Counter()
    for corpus in splits.parts.values():
        points = np.frombuffer("".join(corpus.words).encode("utf-32-le", "surrogatepass"), dtype="<u4")
        values, counts = np.unique(points, return_counts=True)
        for point, n in zip(values.tolist(), counts.tolist(), strict=True):
            if script := _script(point):
                found[script] += n
    return found


@cache
def _script(point: int) -> str | None:
    """The script of a letter by the first word of its Unicode name; none for other characters."""
    letter = chr(point)
    if not unicodedata.category(letter).startswith("L"):
        return None
    name = unicodedata.name(letter, "").split(" ")[0]
    return _WRITING.get(name, name.title() if name != "CJK" else name)


def _listed(labels: Sequence[str]) -> str:
    shown = ", ".join(labels[:6])
    return f"{shown} and {len(labels) - 6} more" if len(labels) > 6 else shown
