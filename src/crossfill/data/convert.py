"""Corpora from any format that is read into any that is written, one file or a whole data folder."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crossfill.data import remarks
from crossfill.data.beside import look_beside
from crossfill.data.checks import Problem
from crossfill.data.folder import corpus_names, tasks_of
from crossfill.data.labels import task_name
from crossfill.data.layout import SourceFile, find_sources
from crossfill.data.readers import READERS, read_corpus
from crossfill.data.storage import Reading
from crossfill.data.writers import ITEM_WRITERS, WRITERS, writer
from crossfill.errors import DataError, unknown
from crossfill.files import write_atomically
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus

ENDINGS = tuple(dict.fromkeys((*WRITERS, *ITEM_WRITERS)))
"""Endings of files that are written."""


def convert(source: Path, out: Path, cell: Cell, force: bool = False, split_words: bool = True) -> Reading:
    """Write the corpus in a file to another file, in the format that its ending names; returns what was read.

    Words in which a span of characters begins or ends are split there, or, without `split_words`, refused.
    """
    if out.suffix not in ENDINGS:
        raise DataError(f"{out}: " + unknown("ending", out.suffix, ENDINGS))
    if out.exists() and not force:
        raise DataError(f"{out}: expected no file of that name; name another, or give --force")
    packed = source.suffix.lower() == ".gz"
    suffix = (source.with_suffix("") if packed else source).suffix.lower()
    if suffix not in READERS:
        raise DataError(f"{source}: " + unknown("ending", suffix, READERS))
    own = SourceFile(source, cell.task, cell.language, cell.task, "whole", source.absolute().parent, suffix)
    reading = _read(own, cell, str(source), source.absolute().parent, split_words)
    write_atomically(
        out, writer(out.suffix, reading.corpus.unit)(reading.corpus, cell.task, reading.corpus.labels.distinct())
    )
    return reading


def convert_folder(
    root: Path, out: Path, suffix: str, tasks: Sequence[str] = (), split_words: bool = True
) -> tuple[dict[Path, Corpus], list[Problem]]:
    """Write every corpus of a data folder to another folder, split by split; returns files and remarks.

    `tasks` keeps only these, and may name further columns of UD treebanks. If a file cannot be read, nothing is
    written.
    """
    if suffix not in ENDINGS:
        raise DataError(unknown("ending", suffix, ENDINGS))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out}: expected no folder of that name, or an empty one; name another")
    sources, told = find_sources(root)
    names, parts = corpus_names(sources, root), dict[Path, tuple[str, list[Corpus]]]()
    for source in sources:
        for task in tasks_of(source, tuple(map(task_name, tasks))):
            place, cell = str(source.path.relative_to(root)), Cell(task, source.language)
            try:
                reading = _read(source, cell, place, root, split_words)
            except DataError as error:
                where, _, message = str(error).partition(": ")
                told.append(Problem("error", where, message))
                continue
            told += [*remarks.on_file(place, reading), *remarks.on_columns([(place, reading)])]
            path = out / f"{_place(source, task, names[source])}{suffix}"
            parts.setdefault(path, (task, []))[1].append(reading.corpus)
    if errors := [str(problem) for problem in told if problem.level == "error"]:
        raise DataError("\n".join(errors))
    if not parts:
        raise DataError(f"{root}: expected corpora as <task>/<language>/train.conllu or .bio; got none")
    made = {path: (task, Corpus.joined(own)) for path, (task, own) in parts.items()}
    labels: dict[str, set[str]] = defaultdict(set)
    for task, corpus in made.values():
        labels[task] |= corpus.labels.distinct()
    for path, (task, corpus) in made.items():
        write_atomically(path, writer(suffix, corpus.unit)(corpus, task, labels[task]))
    return {path: corpus for path, (_, corpus) in made.items()}, told


def _read(source: SourceFile, cell: Cell, where: str, root: Path, split_words: bool) -> Reading:
    try:
        data = source.path.read_bytes()
    except OSError as error:
        raise DataError(f"{where}: expected a readable file; {error.strerror}") from None
    beside = look_beside(source.path.absolute(), root.absolute(), cell.task)
    told = replace(beside, language=cell.language, split_words=split_words)
    return read_corpus(data, where, cell.task, told, source.suffix, source.packed)


def _place(source: SourceFile, task: str, corpus: str) -> Path:
    """Where a file goes, without its ending, so that its cell, corpus and split are read from there again."""
    folder, name = task.replace(":", "_"), corpus.replace("/", "_")
    stem = name if source.split == "whole" else source.split if name == folder else f"{name}-{source.split}"
    return Path(folder, source.language, stem)
