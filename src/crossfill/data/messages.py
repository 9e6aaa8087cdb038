"""What a person should know about a data folder: files not read, what reading changed, and data that looks wrong."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import PurePath
from typing import Literal

from crossfill.data.labels import UPOS, split_tag
from crossfill.data.splits import LeakageReport
from crossfill.errors import listed
from crossfill.grid import text_keys
from crossfill.grid.cells import Cell, Grid, Splits
from crossfill.grid.sentence import EMPTY

Level = Literal["error", "warning", "recognised", "note", "unread"]
"""`error`: data that had to be left out; `warning`: data that looks wrong; `recognised`: which columns were
read, of more than two; `note`: what reading changed; `unread`: files that are no corpora, or not asked for."""
FEWEST_ODD = 10  # words of a label that a cell's training data lack, if other cells train on it
MOST_DUPLICATES = 0.05  # largest share, without a warning, of sentences that repeat another of the same split
MOST_OTHER_SCRIPT = 0.1  # of letters outside a cell's main script
MOST_OTHER_LABELS = 0.1  # of words whose part of speech is none of UD's
MOST_MISSING = 0.05  # of words that are `_`, as in treebanks distributed without their text
SAME_KIND = {
    **dict.fromkeys(("PERSON", "PERS"), "PER"),
    **dict.fromkeys(("GPE", "LOCATION", "PLACE"), "LOC"),
    **dict.fromkeys(("ORGANIZATION", "ORGANISATION"), "ORG"),
    "MISCELLANEOUS": "MISC",
}
"""Names of types of spans that mean the same, and the one that most corpora use."""
_MOST_NAMED = 3  # files of one kind in one folder that are named one by one
# scripts that count as one because they are used together
_WRITING = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "KATAKANA-HIRAGANA": "CJK", "BOPOMOFO": "CJK", "IDEOGRAPHIC": "CJK"}


@dataclass(frozen=True, order=True)
class Message:
    """A problem with a cell or a file, or a note on it."""

    level: Level
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def about_leakage(reports: Iterable[LeakageReport], corpora: Mapping[Cell, Sequence[Splits]]) -> list[Message]:
    """Say which sentences were left out or moved because they are evaluation text; warn where none are left."""
    problems = []
    for report in reports:
        cell, left_out = report.cell, report.left_out
        splits = next(splits for splits in corpora[cell] if splits.name == report.corpus)
        named = f" ({splits.name})" if len(corpora[cell]) > 1 else ""
        tasks = " and ".join(sorted(report.tasks - {cell.task}) or [cell.task])
        counts = {"training": left_out["train"] + left_out["surplus"], "dev": left_out["dev"], "test": left_out["test"]}
        if left_out.total():
            shown = ", ".join(f"{n:,} {split}" for split, n in counts.items() if n)
            text = f"sentences left out as dev or test text of {tasks}{named}: {shown}"
            problems.append(Message("note", str(cell), text))
        if report.moved:
            shown = f"{report.moved:,} test sentences train, {len(splits.test):,} evaluate{named}"
            text = f"{shown}: the text is also test text of another corpus of the language"
            problems.append(Message("note", str(cell), text))
        if not any(map(len, splits.parts.values())):
            text = f"all of {splits.name} is left out; give corpora of one text the same splits"
            problems.append(Message("warning", str(cell), text))
    return problems


def grouped_messages(problems: Iterable[Message]) -> list[Message]:
    """Put more than a few files of one kind in one folder that are not read for one reason into one line.

    `cache/a.bin`, `cache/b.bin`, … become `cache/*.bin (212 files)`.
    """
    groups: dict[Message, list[Message]] = {}
    for problem in problems:
        path = PurePath(problem.where)
        kind = str(path.parent / f"*{path.suffix}") if problem.level == "unread" else problem.where
        groups.setdefault(replace(problem, where=kind), []).append(problem)
    lines = []
    for group, members in groups.items():
        many = group.level == "unread" and len(members) > _MOST_NAMED
        lines += [replace(group, where=f"{group.where} ({len(members):,} files)")] if many else members
    return lines


def check_grid(grid: Grid, cut: bool = False) -> list[Message]:
    """Warn about data that looks wrong, and about languages whose tasks are written in different scripts.

    Training data that were `cut` to some sentences lack labels that are rare.
    """
    warnings = []
    tasks_by_script: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    trained: dict[str, set[str]] = defaultdict(set)
    for cell in grid.cells:
        trained[cell.task] |= set(grid.training(cell).label_counts())
    for cell, corpora in grid.corpora.items():
        letters: Counter[str] = Counter()
        for splits in corpora:
            scripts: Counter[str] = Counter()
            points = Counter("".join(word for corpus in splits.parts.values() for word in corpus.words))
            for character, n in sorted(points.items()):
                scripts[_script(character)] += n
            del scripts[""]
            letters += scripts
            texts = (*_odd_labels(cell, splits, trained[cell.task], cut), *_odd_text(splits, scripts))
            warnings += [Message("warning", _place(grid, cell, splits), text) for text in texts]
        for script, _ in letters.most_common(1):
            tasks_by_script[cell.language][script].append(cell.task)
    for language, scripts_of in sorted(tasks_by_script.items()):
        if len(scripts_of) > 1:
            shown = "; ".join(f"{', '.join(tasks)} in {script}" for script, tasks in scripts_of.items())
            warnings.append(Message("warning", language, f"different scripts: {shown}"))
    return [*warnings, *tag_sets(grid)]


def _place(grid: Grid, cell: Cell, splits: Splits) -> str:
    """Name a cell, and its corpus where it has several."""
    return str(cell) if len(grid[cell]) == 1 else f"{cell} ({splits.name})"


def tag_sets(grid: Grid) -> list[Message]:
    """Warn about corpora that name labels in another way than others of their task, and say how to rename them."""
    warnings = []
    for task in grid.tasks:
        corpora = [(c, splits, _kinds(splits)) for c in grid.cells if c.task == task for splits in grid[c]]
        for cell, splits, kinds in corpora:
            others = [(other, its_kinds) for other, its, its_kinds in corpora if its is not splits and its_kinds]
            renamed = {kind: SAME_KIND[kind.upper()] for kind in sorted(kinds) if kind.upper() in SAME_KIND}
            here = [kind for kind, to in renamed.items() if any({kind, to} & its == {to} for _, its in others)]
            text = ""
            if here:
                there = listed([str(c) for c, its in others if any(renamed[kind] in its for kind in here)], 6)
                names = ", ".join(dict.fromkeys(renamed[kind] for kind in here))
                lines = ", ".join(f"{kind}<TAB>{renamed[kind]}" for kind in here)
                text = f"{', '.join(here)} here, {names} in {there}: to have one name for each, write them into a file "
                text += f"labels.txt next to it, one a line: {lines}"
            elif kinds and others and not any(_usual(kinds) & _usual(its) for _, its in others):
                text = f"no label in common with other corpora of {task} ({listed(sorted(kinds), 6)}): "
                text += "rename them in labels.txt, or give it a task of its own"
            warnings += [Message("warning", _place(grid, cell, splits), text)] if text else []
    return warnings


def _usual(kinds: Iterable[str]) -> set[str]:
    return {SAME_KIND.get(kind.upper(), kind) for kind in kinds}


def _kinds(splits: Splits) -> set[str]:
    """Collect the labels of a corpus; of tags of spans, the types."""
    labels = {label for corpus in splits.parts.values() for label in corpus.labels.distinct()} - {"O", "_", ""}
    return {(split_tag(label) or ("", label))[1] for label in labels}


def _odd_labels(cell: Cell, splits: Splits, trained: Collection[str], cut: bool) -> Iterable[str]:
    """Find labels only in dev or test (of many words, or not `trained` elsewhere), not of UPOS, and missing ones."""
    known = set(splits.training.label_counts())
    for name in ("dev", "test"):
        counts = splits.parts[name].label_counts()
        new = sorted(x for x in set(counts) - known if x not in trained or counts[x] >= FEWEST_ODD)
        if new and not cut and splits.training is not splits.test and splits.training is not EMPTY:
            n, unit = sum(counts[label] for label in new), splits.parts[name].unit
            yield f"{listed(new, 6)} only in {name} ({n:,} {unit if n == 1 else f'{unit}s'})"
    labels = sum((corpus.label_counts() for corpus in splits.parts.values()), Counter())
    others = {label: n for label, n in labels.items() if label not in UPOS and label != "_"}
    share = sum(others.values()) / max(1, labels.total())
    if cell.task == "pos" and share > MOST_OTHER_LABELS:
        shown = listed(sorted(others, key=lambda label: -others[label]), 6)
        yield f"{share:.0%} of the words have labels that are not UPOS ({shown}): is this the right column?"
    if labels["_"] and ":" not in cell.task:
        unit = next(corpus.unit for corpus in splits.parts.values() if len(corpus))
        yield f"{labels['_']:,} of {labels.total():,} {unit}s have no label (_)"


def _odd_text(splits: Splits, letters: Counter[str]) -> Iterable[str]:
    """Find sentences that repeat others, words that are missing, and mixed scripts."""
    for name, corpus in splits.parts.items():
        repeated = len(corpus) - len(set(text_keys.letters(corpus)))
        if repeated > MOST_DUPLICATES * len(corpus):
            yield f"{repeated:,} of {len(corpus):,} {name} {corpus.items} repeat another ({repeated / len(corpus):.0%})"
    words = sum((corpus.words.counts() for corpus in splits.parts.values()), Counter())
    if words["_"] > MOST_MISSING * words.total():
        yield f"{words['_'] / words.total():.0%} of the words are _: this corpus comes without its text"
    common = [(script, n) for script, n in letters.most_common() if n > MOST_OTHER_SCRIPT * letters.total()]
    if len(common) > 1:
        yield "mixed scripts: " + ", ".join(f"{script} {n / letters.total():.0%}" for script, n in common)


@cache
def _script(letter: str) -> str:
    """Name the script of a letter by the first word of its Unicode name; empty for other characters."""
    if not unicodedata.category(letter).startswith("L"):
        return ""
    name = unicodedata.name(letter, "").split(" ")[0]
    return _WRITING.get(name, name.title() if name != "CJK" else name)
