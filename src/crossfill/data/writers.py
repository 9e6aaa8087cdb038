"""Write corpora: in any format by the ending of a file, from any that is read into any other, or a whole grid."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from crossfill.data import bio, conllu, docbin, records, table_corpora
from crossfill.data.folder import corpus_names, read_file, read_sources
from crossfill.data.labels import LabelColumn, task_name
from crossfill.data.layout import SourceFile, find_sources
from crossfill.data.messages import Message
from crossfill.data.readers import Reading
from crossfill.errors import DataError, unknown
from crossfill.files import write_atomically
from crossfill.grid.cells import Cell, Grid
from crossfill.grid.sentence import UNLABELLED, Corpus
from crossfill.grid.task import Unit

Writer = Callable[[Corpus, str, Collection[str]], bytes]
"""Given a corpus, its task, and all labels of the task in any corpus."""


def writer(suffix: str, unit: Unit) -> Writer:
    """Return the writer of an ending for labels of this unit."""
    known = WRITERS if unit is Unit.WORD else ITEM_WRITERS
    if suffix not in known:
        *others, last = known
        ending = suffix or "files without ending"
        raise DataError(f"cannot write labels of {unit}s as {ending}; use {', '.join(others)} or {last}")
    return known[suffix]


def render_conllu(corpus: Corpus, task: str, labels: Collection[str] = ()) -> bytes:  # noqa: ARG001
    """Write CoNLL-U with the labels in the column that the task names, or under its name in MISC (`NER=B-PER`)."""
    column = LabelColumn(task if LabelColumn.names(task) else f"misc:{task.upper()}")
    sentences = []
    for sentence in corpus:
        rows = conllu.blank_rows(sentence)
        for row, label in zip(rows, sentence.labels, strict=True):
            if set(label) & set("|\t\n "):
                raise DataError(f"expected labels without spaces and | in CoNLL-U, got '{label[:40]}'; write .bio")
            if label == UNLABELLED and task.startswith("feats:"):
                raise DataError("expected a label of every word in FEATS, where _ means none; write .bio instead")
            conllu.write_label(row, column, label or ("?" if column.key else "_"))
        sentences.append(conllu.ConlluSentence((), rows))
    return conllu.render(sentences).encode()


WRITERS: dict[str, Writer] = {
    ".bio": lambda corpus, _task, _labels: bio.render(corpus).encode(),
    ".conllu": render_conllu,
    ".jsonl": records.render_json,
    ".parquet": table_corpora.render_parquet,
    ".spacy": docbin.render,
}
"""For labels of words."""
ITEM_WRITERS: dict[str, Writer] = {
    ".tsv": lambda corpus, _task, _labels: table_corpora.render_text(map(records.as_row, corpus), "\t"),
    ".csv": lambda corpus, _task, _labels: table_corpora.render_text(map(records.as_row, corpus), ","),
    ".jsonl": records.render_json,
    ".parquet": table_corpora.render_parquet,
}
"""For labels of sentences and pairs."""
ENDINGS = tuple(dict.fromkeys((*WRITERS, *ITEM_WRITERS)))  # endings of files that are written


def write_grid(grid: Grid, folder: Path) -> None:
    """Write every corpus as `<task>/<language>/<split>.bio`, or as `<corpus>-<split>.bio` where a cell has several.

    Sentences and pairs with their labels are written as `.tsv`.
    """
    _check_new(folder)
    for cell, corpora in grid.corpora.items():
        for splits in corpora:
            prefix = f"{splits.name}-" if len(corpora) > 1 else ""
            for split, corpus in splits.parts.items():
                suffix = ".bio" if corpus.unit is Unit.WORD else ".tsv"
                if len(corpus):
                    path = folder / cell.task / cell.language / f"{prefix}{split}{suffix}"
                    write_atomically(path, writer(suffix, corpus.unit)(corpus, cell.task, ()))


def convert(source: Path, out: Path, cell: Cell) -> Reading:
    """Write the corpus in a file to another file, in the format that its ending names; returns what was read."""
    if out.suffix not in ENDINGS:
        raise DataError(f"{out}: " + unknown("ending", out.suffix, ENDINGS))
    if out.exists():
        raise DataError(f"{out}: expected no file of that name; name another, or remove it")
    reading = read_file(source, cell)
    corpus = reading.corpus
    write_atomically(out, writer(out.suffix, corpus.unit)(corpus, cell.task, set(corpus.label_counts())))
    return reading


def convert_folder(
    root: Path, out: Path, suffix: str, tasks: Sequence[str] = ()
) -> tuple[dict[Path, Corpus], list[Message]]:
    """Write every corpus of a data folder to another folder, split by split; returns files and messages.

    `tasks` keeps only these, and may name further columns of UD treebanks. If a file cannot be read, nothing is
    written.
    """
    if suffix not in ENDINGS:
        raise DataError(unknown("ending", suffix, ENDINGS))
    _check_new(out)
    sources, problems = find_sources(root)
    names = corpus_names(sources, root)
    parts: dict[tuple[Path, str], list[Corpus]] = defaultdict(list)
    labels: dict[str, set[str]] = defaultdict(set)
    for source, cell, reading in read_sources(sources, tuple(map(task_name, tasks)), root, problems):
        problems += reading.messages(str(source.path.relative_to(root)), cell)
        labels[cell.task] |= set(reading.corpus.label_counts())
        path = out / f"{_place(source, cell.task, names[source])}{suffix}"
        parts[path, cell.task].append(reading.corpus)
    if errors := [str(problem) for problem in problems if problem.level == "error"]:
        raise DataError("\n".join(errors))
    if not parts:
        raise DataError(f"{root}: expected corpora as <task>/<language>/train.conllu or .bio; got none")
    files = {}
    for (path, task), several in parts.items():
        corpus = files[path] = Corpus.joined(several)
        write_atomically(path, writer(suffix, corpus.unit)(corpus, task, labels[task]))
    return files, problems


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder}: expected no folder of that name, or an empty one; name another")


def _place(source: SourceFile, task: str, corpus: str) -> Path:
    """Say where a file goes, without its ending, so that its cell, corpus and split are read from there again."""
    folder, name = task.replace(":", "_"), corpus.replace("/", "_")
    stem = name if source.split == "whole" else source.split if name == folder else f"{name}-{source.split}"
    return Path(folder, source.language, stem)
