"""Writers of corpora, by the ending of a file."""

from collections.abc import Callable, Collection, Sequence

from crossfill.data import arrow_tables, bio, conllu, docbin, json_corpora, separated
from crossfill.data.items import as_row
from crossfill.data.labels import LabelColumn
from crossfill.errors import DataError
from crossfill.grid.sentence import Corpus, Sentence
from crossfill.grid.unit import Unit

Writer = Callable[[Corpus, str, Collection[str]], bytes]
"""Given a corpus, its task, and all labels of the task in any corpus."""
_PLACES = {"pos": 3, "xpos": 4, "feats": 5, "deprel": 7, "misc": 9}


def writer(suffix: str, unit: Unit) -> Writer:
    """The writer of an ending for labels of this unit."""
    known = WRITERS if unit is Unit.WORD else ITEM_WRITERS
    if suffix not in known:
        raise DataError(
            f"expected a format for labels of {unit}s, {', '.join(known)}; got '{suffix}'; name the file so"
        )
    return known[suffix]


def render_bio(corpus: Corpus, task: str, labels: Collection[str] = ()) -> bytes:  # noqa: ARG001
    """A word and its label on every line, a tab between."""
    return bio.render(bio.TaggedSentence(s.words, s.labels) for s in corpus).encode()


def render_conllu(corpus: Corpus, task: str, labels: Collection[str] = ()) -> bytes:  # noqa: ARG001
    """CoNLL-U with the labels in the column that the task names, or under the task's name in MISC (`NER=B-PER`)."""
    named = task if LabelColumn.names(task) else f"misc:{task.upper()}"
    return conllu.render(conllu.ConlluSentence((), _rows(sentence, named)) for sentence in corpus).encode()


def render_tsv(corpus: Corpus, task: str, labels: Collection[str] = ()) -> bytes:  # noqa: ARG001
    """A sentence or pair and its label on every line, tabs between, under a header."""
    return separated.render(map(as_row, corpus), "\t")


def render_csv(corpus: Corpus, task: str, labels: Collection[str] = ()) -> bytes:  # noqa: ARG001
    """As `render_tsv`, with commas between."""
    return separated.render(map(as_row, corpus), ",")


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


WRITERS: dict[str, Writer] = {
    ".bio": render_bio,
    ".conllu": render_conllu,
    ".jsonl": json_corpora.render,
    ".parquet": arrow_tables.render_parquet,
    ".spacy": docbin.render,
}
"""For labels of words."""
ITEM_WRITERS: dict[str, Writer] = {
    ".tsv": render_tsv,
    ".csv": render_csv,
    ".jsonl": json_corpora.render,
    ".parquet": arrow_tables.render_parquet,
}
"""For labels of sentences and pairs."""
