"""Corpora from any format that is read into any that is written."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from crossfill.data import arrow_tables, bio, conllu, json_corpora
from crossfill.data.beside import look_beside
from crossfill.data.labels import LabelColumn
from crossfill.data.readers import READERS, read_corpus
from crossfill.data.storage import Reading
from crossfill.errors import DataError, unknown
from crossfill.files import write_atomically
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence

_PLACES = {"pos": 3, "xpos": 4, "feats": 5, "deprel": 7, "misc": 9}


def convert(source: Path, out: Path, cell: Cell, force: bool = False) -> Reading:
    """Write the corpus in a file to another file, in the format that its ending names; returns what was read."""
    if out.suffix not in WRITERS:
        raise DataError(f"{out}: " + unknown("ending", out.suffix, WRITERS))
    if out.exists() and not force:
        raise DataError(f"{out}: expected no file of that name; name another, or give --force")
    packed = source.suffix.lower() == ".gz"
    suffix = (source.with_suffix("") if packed else source).suffix.lower()
    if suffix not in READERS:
        raise DataError(f"{source}: " + unknown("ending", suffix, READERS))
    try:
        data = source.read_bytes()
    except OSError as error:
        raise DataError(f"{source}: expected a readable file; {error.strerror}") from None
    beside = replace(look_beside(source.absolute(), source.absolute().parent, cell.task), language=cell.language)
    reading = read_corpus(data, str(source), cell.task, beside, suffix, packed)
    write_atomically(out, WRITERS[out.suffix](reading.corpus, cell.task))
    return reading


def render_bio(corpus: Corpus, task: str) -> bytes:  # noqa: ARG001
    """A word and its label on every line, a tab between."""
    return bio.render(bio.TaggedSentence(s.words, s.labels) for s in corpus).encode()


def render_conllu(corpus: Corpus, task: str) -> bytes:
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


WRITERS: dict[str, Callable[[Corpus, str], bytes]] = {
    ".bio": render_bio,
    ".conllu": render_conllu,
    ".jsonl": json_corpora.render,
    ".parquet": arrow_tables.render_parquet,
}
"""Writers of corpora by the ending of a file."""
