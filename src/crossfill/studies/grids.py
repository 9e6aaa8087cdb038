"""The grid of a study, read or generated and restricted to its tasks and languages, and the languages' typology."""

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from crossfill.data.codes import language_code
from crossfill.data.folder import ReadOptions, read_folder
from crossfill.data.labels import task_name
from crossfill.data.parallel_corpus import parallel_grid
from crossfill.data.splits import capped_grid
from crossfill.data.synthetic import SETTINGS, synthetic_grid
from crossfill.errors import ConfigError, CrossfillError, DataError, unknown
from crossfill.files import write_atomically
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.typology import Block, Typology, load_typology, unit_rows, vectors_beside
from crossfill.studies.study import DataSettings

ARTIFICIAL = "settings"
_WITHOUT = (
    "the study runs without these, and its averages are of other cells than in a complete one; a language with one "
    "task is never held out. Put what you have of them into <task>/<language>/{train,dev,test} of the data folder"
)


@dataclass(frozen=True)
class StudyGrid:
    """The grid of a study, and further cells that serve only as sources."""

    grid: Grid
    """The cells that are divided into seen and unseen."""
    sources: Grid
    """Cells of the languages used only by the largest-source method."""
    notes: tuple[str, ...] = ()
    """What the study does without, for the user to see."""

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every word and label, so that results on other data are never reused."""
        digest = hashlib.blake2b(digest_size=16)
        for grid in (self.grid, self.sources):
            for cell in grid.cells:
                for splits in grid[cell]:
                    digest.update(f"{cell} {splits.name}".encode())
                    for corpus in splits.parts.values():
                        digest.update(corpus.text_hash.encode())
                        digest.update("\0".join(corpus.labels).encode())
        return digest.hexdigest()

    def only(self, languages: Collection[str]) -> "StudyGrid":
        """Return the grid in these languages only; sources are kept."""
        return replace(self, grid=part_of(self.grid, languages))

    def with_sources(self) -> Grid:
        """Return the grid and its sources as one grid."""
        return Grid({**self.grid.corpora, **self.sources.corpora})


def load_study_grid(data: DataSettings) -> StudyGrid:
    """Return the grid of these settings; DataError with every problem if there are any."""
    grid, problems = check_study_grid(data)
    if grid is None or problems:
        raise DataError("\n".join(problems))
    return grid


def check_study_grid(data: DataSettings) -> tuple[StudyGrid | None, list[str]]:
    """Return the grid of these settings, and every problem found in it."""
    problems: list[str] = []
    try:
        grid, problems = _read(data)
        wanted = _languages(data, grid)
    except CrossfillError as error:
        return None, [*problems, *str(error).splitlines()]
    sources = {language_code(code) for code in data.source_only}
    notes = tuple(
        f"data.source_only: {language} has no data in {_place(data)}; in its place, "
        "the largest-source method trains on the seen language with most training words"
        for language in sorted(sources - set(grid.languages))
    )
    compared = part_of(grid, wanted - sources)
    gaps = _gaps(data, grid, wanted - sources)
    if data.gaps == "refuse":
        problems += gaps
    elif gaps:
        notes += (*gaps, _WITHOUT)
    if not compared.cells:
        problems.append(f"data: expected corpora in the chosen languages, got none in {_place(data)}")
        return None, problems
    return StudyGrid(compared, part_of(grid, sources), notes), problems


def _gaps(data: DataSettings, grid: Grid, wanted: Collection[str]) -> list[str]:
    """Return a line for every listed language without data, and for every cell that a complete grid lacks."""
    lines = [
        f"data: missing corpus: {language} has no data in {_place(data)}"
        for language in sorted(set(wanted) - set(grid.languages))
    ]
    if data.complete:
        tasks = [task_name(task) for task in data.tasks] or grid.tasks
        cells = [Cell(task, l) for task in tasks for l in sorted(wanted) if l in grid.languages]
        lines += [f"data: missing corpus: no {cell} in {_place(data)}" for cell in cells if cell not in grid.corpora]
    return lines


def part_of(grid: Grid, languages: Collection[str]) -> Grid:
    """Return the cells of these languages."""
    return grid.where(lambda cell: cell.language in languages)


def _read(data: DataSettings) -> tuple[Grid, list[str]]:
    named = {"path": data.path is not None, "synthetic": data.synthetic is not None, "parallel": data.parallel}
    if sum(named.values()) != 1:
        given = " and ".join(name for name, is_given in named.items() if is_given) or "none"
        raise ConfigError(f"data: expected a path, synthetic or parallel, got {given}; name a folder with --data")
    if data.path is None:
        grid = synthetic_grid(data.synthetic, data.seed).grid if data.synthetic is not None else parallel_grid()
        wrong = [f"data: {unknown('task', task, grid.tasks)}" for task in data.tasks if task not in grid.tasks]
        return grid.where(lambda cell: not data.tasks or cell.task in data.tasks), wrong
    if not Path(data.path).is_dir():
        raise DataError(f"data: missing corpora: expected a folder at {data.path}, found none; name it with --data")
    cache = Path(data.cache) if data.cache else True
    reading = read_folder(data.path, ReadOptions(data.tasks, data.seed, data.max_train, cache))
    return capped_grid(reading.grid, data.max_dev, data.max_test, data.seed), [f"data: {e}" for e in reading.errors]


def _languages(data: DataSettings, grid: Grid) -> set[str]:
    if data.languages == "all":
        return set(grid.languages)
    if data.languages == "both-tasks":
        everywhere = (lang for lang in grid.languages if all(Cell(task, lang) in grid.corpora for task in grid.tasks))
        return set(everywhere)
    return {language_code(code) for code in data.languages}


def _place(data: DataSettings) -> str:
    return data.path or ("the parallel corpus" if data.parallel else "the artificial grid")


def typology_folder(data: DataSettings) -> str | None:
    """Return the folder of the study's typological vectors; None to use those of the lang2vec package."""
    if data.typology is not None:
        return data.typology
    return vectors_beside(data.path) if data.path else None


def study_typology(data: DataSettings) -> Typology:
    """Return the typology of a study's languages; on the artificial grid, their true settings."""
    if data.synthetic is None:
        return load_typology(typology_folder(data))
    vectors = synthetic_grid(data.synthetic, data.seed).typology
    rows = {language: i for i, language in enumerate(vectors)}
    return Typology({ARTIFICIAL: Block(rows, unit_rows(np.stack(list(vectors.values()))))})


def language_similarity(data: DataSettings, languages: Sequence[str], features: Sequence[str] = ()) -> dict[str, Any]:
    """Return the similarity of all pairs of languages as JSON values: languages, similarity (a matrix), source.

    Pairs that the typology does not cover have similarity 0. On the artificial grid, `features` is ignored.
    """
    typology = study_typology(data)
    chosen = () if data.synthetic is not None else tuple(features)
    matrix = [[typology.similarity(a, b, chosen) if a != b else 1.0 for b in languages] for a in languages]
    return {
        "languages": list(languages),
        "similarity": [[0.0 if math.isnan(value) else round(value, 6) for value in row] for row in matrix],
        "source": "true settings" if data.synthetic is not None else "URIEL",
    }


def write_vectors(data: DataSettings, folder: Path) -> None:
    """Write the artificial languages' settings in the format of URIEL vectors; nothing for other data."""
    if data.synthetic is None:
        return
    vectors = synthetic_grid(data.synthetic, data.seed).typology
    lines = ["\t".join(("language", *SETTINGS))]
    lines += ["\t".join((language, *(f"{value:g}" for value in vector))) for language, vector in vectors.items()]
    write_atomically(folder / f"{ARTIFICIAL}.tsv", ("\n".join(lines) + "\n").encode())
