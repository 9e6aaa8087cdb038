"""Corpora from any format that is read into any that is written, one file or a whole data folder."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from crossfill.data import arrow_tables, bio, conllu, docbin, json_corpora, remarks
from crossfill.data.beside import look_beside
from crossfill.data.checks import Problem
from crossfill.data.folder import corpus_names, tasks_of
from crossfill.data.labels import LabelColumn, task_name
from crossfill.data.layout import SourceFile, find_sources
from crossfill.data.readers import READERS, read_corpus
from crossfill.data.storage import Reading
from crossfill.errors import DataError, unknown
from crossfill.files import write_atomically
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence

_PLACES = {"pos": 3, "xpos": 4, "feats": 5, "deprel": 7, "misc": 9}


def convert(source: Path, out: Path, cell: Cell, force: bool = False, split_words: bool = True) -> Reading:
    """Write the corpus in a file to another file, in the format that its ending names; returns what was read.

    Words in which a span of characters begins or ends are split there, or, without `split_words`, refused.
    """
    if out.suffix not in WRITERS:
        raise DataError(f"{out}: " + unknown("ending", out.suffix, WRITERS))
    if out.exists() and not force:
        raise DataError(f"{out}: expected no file of that name; name another, or give --force")
    packed = source.suffix.lower() == ".gz"
    suffix = (source.with_suffix("") if packed else source).suffix.lower()
    if suffix not in READERS:
        raise DataError(f"{source}: " + unknown("ending", suffix, READERS))
    own = SourceFile(source, cell.task, cell.language, cell.task, "whole", source.absolute().parent, suffix)
    reading = _read(own, cell, str(source), source.absolute().parent, split_words)
    write_atomically(out, WRITERS[out.suffix](reading.corpus, cell.task, reading.corpus.labels.distinct()))
    return reading


def convert_folder(
    root: Path, out: Path, suffix: str, tasks: Sequence[str] = (), split_words: bool = True
) -> tuple[dict[Path, Corpus], list[Problem]]:
    """Write every corpus of a data folder to another folder, split by split; returns files and remarks.

    `tasks` keeps only these, and may name further columns of UD treebanks. If a file cannot be read, nothing is
    written.
    """
    if suffix not in WRITERS:
        raise DataError(unknown("ending", suffix, WRITERS))
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
        write_atomically(path, WRITERS[suffix](corpus, task, labels[task]))
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


def render_bio(corpus: Corpus, task: str, labels: Collection[str] = ()) -> bytes:  # noqa: ARG001
    """A word and its label on every line, a tab between."""
    return bio.render(bio.TaggedSentence(s.words, s.labels) for s in corpus).encode()


def render_conllu(corpus: Corpus, task: str, labels: Collection[str] = ()) -> bytes:  # noqa: ARG001
    """CoNLL-U with the labels in the column that the task names, or under the task's name in MISC (`NER=B-PER`)."""
    named = task if LabelColumn.names(task) else f"misc:{task.upper()}"
    return conllu.render(conllu.ConlluSentence((), _rows(sentence, named)) for sentence in corpus).encode()


def _rows(sentence: Sentence, task: str) -> list[list[str]]:
    name, _, key = task.partition(":")
    spaces: Sequence[bool] = sentence.spaces or (True,) * len(sentence)
    rows = []
    for i, (word, label, space) in enumerate(zip(sentence.words, sentence.labels, spaces, strict=True), start=1):
        if set(label) & set("|\t\n "):
            raise DataError(f"expected labels without spaces and | in CoNLL-U, got '{label[:40]}'; write .bio instead")
        row = [str(i), word, *"________"]
        if label != "_":
            row[_PLACES[name]] = f"{key}={label}" if key else label
        if not space:
            row[9] = "SpaceAfter=No" if row[9] == "_" else f"{row[9]}|SpaceAfter=No"
        rows.append(row)
    return rows


WRITERS: dict[str, Callable[[Corpus, str, Collection[str]], bytes]] = {
    ".bio": render_bio,
    ".conllu": render_conllu,
    ".jsonl": json_corpora.render,
    ".parquet": arrow_tables.render_parquet,
    ".spacy": docbin.render,
}
"""Writers of corpora by the ending of a file: given a corpus, its task, and all labels of the task in any corpus."""
