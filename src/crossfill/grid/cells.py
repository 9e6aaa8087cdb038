"""The grid of tasks × languages: cells, their corpora, and the inventory of labels and languages."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from html import escape
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, PlainSerializer

from crossfill.errors import DataError, unknown
from crossfill.grid.sentence import EMPTY, UNLABELLED, Column, Corpus
from crossfill.grid.task import Task, Unit


def html_grid(title: str, marks: "Mapping[Cell, str]") -> str:
    """Show cells as a table of languages × tasks for notebooks, □ where there is no mark."""
    tasks, languages = (sorted({side(cell) for cell in marks}) for side in (lambda c: c.task, lambda c: c.language))
    rows = [["", *tasks], *([code, *(marks.get(Cell(task, code), "□") for task in tasks)] for code in languages)]
    body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f"<div>{escape(title)}</div><table>{body}</table>"


@dataclass(frozen=True, order=True, slots=True)
class Cell:
    """A (task, language) pair, written `ner/wol`."""

    task: str
    language: str

    def __str__(self) -> str:
        return f"{self.task}/{self.language}"

    @property
    def file_name(self) -> str:
        """Its name in names of files, without an ending: `ner-wol`, `feats=Case-srp_Latn`."""
        return f"{self.task.replace(':', '=')}-{self.language.replace('-', '_')}"

    @classmethod
    def of_file(cls, name: str) -> "Cell":
        """Read a cell from its name in names of files."""
        task, _, language = name.rpartition("-")
        return cls.parse(f"{task.replace('=', ':')}/{language.replace('_', '-')}")

    @classmethod
    def parse(cls, text: str) -> "Cell":
        """Read a cell written `task/language`."""
        task, slash, language = text.partition("/") if isinstance(text, str) else ("", "", "")
        if not (task and slash and language) or "/" in language:
            raise DataError(f"expected a cell as task/language, such as ner/wol; got '{text}'")
        return cls(task, language)


def without_script(language: str) -> str:
    """Return the code of a language without its script: `srp` for `srp-Latn`."""
    return re.sub(r"-[A-Z][a-z]{3}$", "", language)


CellName = Annotated[Cell, BeforeValidator(Cell.parse), PlainSerializer(str)]
"""A cell that files name as `task/language`."""
SPLITS = ("train", "dev", "test", "surplus")


@dataclass(frozen=True)
class Splits:
    """One annotated corpus of a cell with its splits; any of them may be empty."""

    name: str
    train: Corpus = EMPTY
    dev: Corpus = EMPTY
    test: Corpus = EMPTY
    surplus: Corpus = EMPTY
    """The rest of a corpus that has (almost) only a test set: used for training in addition to `train`."""
    left_out: int = field(default=0, kw_only=True)
    """Sentences that were left out because other sets of the language are evaluated on their text."""

    @property
    def parts(self) -> dict[str, Corpus]:
        return {name: getattr(self, name) for name in SPLITS}

    @property
    def training(self) -> Corpus:
        """Training data of a seen cell: training set and surplus, or the test set if both are empty (docs/data.md)."""
        return Corpus.joined((self.train, self.surplus)) if self.has_training_data else self.test

    @property
    def has_training_data(self) -> bool:
        return bool(len(self.train) or len(self.surplus))

    def evaluation(self, seen: bool) -> Corpus:
        """Return the data to score: the test set, unless it serves as training data."""
        return self.test if self.has_training_data or not seen else EMPTY


@dataclass(frozen=True)
class Inventory:
    """What a model needs to know about a grid: tasks and languages, each in a fixed order."""

    tasks: Mapping[str, Task]
    languages: tuple[str, ...]
    newcomers: frozenset[str] = frozenset()
    """The languages without any corpus, of which there is only text."""

    @classmethod
    def of(
        cls,
        labels: Mapping[str, Sequence[str]],
        languages: Sequence[str],
        newcomers: Iterable[str] = (),
        units: Mapping[str, Unit] | None = None,
    ) -> "Inventory":
        """Make the inventory of tasks with these labels; they label words, but for `units`."""
        tasks = {
            name: Task(name, tuple(of_task), (units or {}).get(name, Unit.WORD)) for name, of_task in labels.items()
        }
        return cls(tasks, tuple(languages), frozenset(newcomers))

    @property
    def units(self) -> dict[str, Unit]:
        """What tasks label that do not label words."""
        return {name: task.unit for name, task in self.tasks.items() if task.unit is not Unit.WORD}

    def task(self, name: str) -> Task:
        if name not in self.tasks:
            raise DataError(unknown("task", name, self.tasks))
        return self.tasks[name]

    def task_index(self, task: str) -> int:
        return list(self.tasks).index(self.task(task).name)

    def language_index(self, language: str) -> int:
        if language not in self.languages:
            raise DataError(unknown("language", language, self.languages))
        return self.languages.index(language)

    def head_shapes(self, n_features: int) -> list[tuple[int, int]]:
        """Count labels and inputs of the head of each task, over an encoder with `n_features` for a word."""
        return [(len(task.labels), task.unit.width(n_features)) for task in self.tasks.values()]

    def check(self, cell: Cell) -> None:
        self.task(cell.task)
        self.language_index(cell.language)

    def label_ids(self, task: str, labels: Column) -> np.ndarray:
        """Look up the place of every label among those of the task; −1 for a word without a label."""
        rows = {label: i for i, label in enumerate(self.task(task).labels)}
        ids = labels.positions_in(rows | {UNLABELLED: len(rows)})
        if (missing := np.flatnonzero(ids < 0)).size:
            problem = unknown("label", labels[int(missing[0])], rows)
            raise DataError(f"{task}: {problem}; correct it, or train a model with it")
        return np.where(ids < len(rows), ids, -1)


class Grid:
    """A grid of tasks × languages, with the corpora of the cells that have data."""

    def __init__(self, corpora: Mapping[Cell, tuple[Splits, ...]], texts: Mapping[str, Corpus] | None = None) -> None:
        self.corpora = {cell: corpora[cell] for cell in sorted(corpora)}
        self.texts = dict(texts or {})
        """Unlabelled text by language, also of languages without any corpus."""

    def __repr__(self) -> str:
        training = sum(len(splits.training) for corpora in self.corpora.values() for splits in corpora)
        return (
            f"<Grid of {', '.join(self.tasks) or 'no tasks'} × {len(self.languages)} languages: {len(self.cells)} of "
            f"{len(self.tasks) * len(self.languages)} cells have data, {training:,} training sentences>"
        )

    def _repr_html_(self) -> str:
        return html_grid(repr(self)[1:-1], {cell: f"{len(self.training(cell)):,}" for cell in self.cells})

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(self.corpora)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(sorted({cell.task for cell in self.corpora}))

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that have corpora, sorted."""
        return tuple(sorted({cell.language for cell in self.corpora}))

    @cached_property
    def inventory(self) -> Inventory:
        """Tasks with their labels, the union over their corpora, sorted; and all languages with corpora or text."""
        labels: dict[str, set[str]] = {task: set() for task in self.tasks}
        units: dict[str, Unit] = {}
        for cell, corpora in self.corpora.items():
            for splits in corpora:
                for corpus in filter(len, splits.parts.values()):
                    labels[cell.task] |= set(corpus.label_counts())
                    if units.setdefault(cell.task, corpus.unit) is not corpus.unit:
                        raise DataError(
                            f"{cell}: expected labels of {units[cell.task]}s, as in other corpora of {cell.task}; got "
                            f"labels of {corpus.unit}s; give it a task of its own"
                        )
        newcomers = set(self.texts) - set(self.languages)
        languages = sorted({*self.languages, *self.texts})
        return Inventory.of({task: sorted(of_task) for task, of_task in labels.items()}, languages, newcomers, units)

    def __getitem__(self, cell: Cell) -> tuple[Splits, ...]:
        if cell not in self.corpora:
            raise DataError(unknown("cell", str(cell), map(str, self.cells)))
        return self.corpora[cell]

    def where(self, keep: Callable[[Cell], bool]) -> "Grid":
        return Grid({cell: corpora for cell, corpora in self.corpora.items() if keep(cell)}, self.texts)

    def map(self, change: Callable[[Splits], Splits]) -> "Grid":
        return Grid({cell: tuple(map(change, corpora)) for cell, corpora in self.corpora.items()}, self.texts)

    def training(self, cell: Cell) -> Corpus:
        return Corpus.joined(splits.training for splits in self[cell])

    def digest(self, cells: Iterable[Cell]) -> str:
        """Hash the text and labels that these cells train and select on."""
        digest = blake2b(digest_size=16)
        for cell in sorted(cells):
            for corpus in (self.training(cell), self.development(cell)):
                digest.update(f"{cell} {corpus.text_hash} ".encode())
                digest.update("\x1f".join(corpus.labels).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def development(self, cell: Cell) -> Corpus:
        return Corpus.joined(splits.dev for splits in self[cell])

    def evaluation(self, cell: Cell, seen: bool) -> dict[str, Corpus]:
        """Return the data to score in a cell, by the name of the corpus."""
        scored = {splits.name: splits.evaluation(seen) for splits in self[cell]}
        return {name: corpus for name, corpus in scored.items() if len(corpus)}
