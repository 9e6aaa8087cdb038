"""DocBin: what spaCy writes is read as spaCy reads it, and what is written is read by spaCy."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crossfill.data import docbin
from crossfill.data.folder import load_grid
from crossfill.data.readers import READERS
from crossfill.data.reading import NO_HINTS, FileNotes, ReadingHints
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from tests.data.folders import write

spacy = pytest.importorskip("spacy")
from spacy.tokens import Doc, DocBin, Span  # noqa: E402

WORDS = ["Awa", "Ndiaye", "dem", "\n", "Dakar", ".", "Ndar", "la"]


def document() -> Doc:
    """Two sentences, with a token of white space, as a pipeline of spaCy leaves them."""
    doc = Doc(
        spacy.blank("xx").vocab,
        words=WORDS,
        spaces=[True, True, False, False, False, True, True, False],
        pos=["PROPN", "PROPN", "VERB", "SPACE", "PROPN", "PUNCT", "PROPN", "AUX"],
        tags=["N", "N", "V", "_SP", "N", "P", "N", "A"],
        morphs=["Case=Nom|Number=Sing", "", "", "", "Case=Loc", "", "", ""],
        heads=[2, 0, 2, 2, 2, 2, 7, 7],
        deps=["nsubj", "flat:name", "ROOT", "dep", "obl", "punct", "nsubj", "ROOT"],
        ents=["B-PER", "I-PER", "O", "O", "B-LOC", "O", "B-LOC", "O"],
    )
    doc.spans["chunk"] = [Span(doc, 0, 2, "NP"), Span(doc, 4, 5, "NP")]
    return doc


def packed(*docs: Doc) -> bytes:
    return DocBin(store_user_data=True, docs=docs).to_bytes()


def read(data: bytes, task: str) -> Corpus:
    return READERS[".spacy"](data, "x.spacy", task, ReadingHints()).corpus


@pytest.mark.parametrize(
    ("task", "labels"),
    [
        ("ner", ["B-PER", "I-PER", "O", "B-LOC", "O", "B-LOC", "O"]),
        ("chunk", ["B-NP", "I-NP", "O", "B-NP", "O", "O", "O"]),
        ("pos", ["PROPN", "PROPN", "VERB", "PROPN", "PUNCT", "PROPN", "AUX"]),
        ("xpos", ["N", "N", "V", "N", "P", "N", "A"]),
        ("feats:Case", ["Nom", "_", "_", "Loc", "_", "_", "_"]),
        ("deprel", ["nsubj", "flat", "ROOT", "obl", "punct", "nsubj", "ROOT"]),
    ],
)
def test_what_spacy_writes_is_read(task: str, labels: list[str]):
    found = read(packed(document(), document()), task)
    assert [len(s) for s in found] == [5, 2] * 2  # the sentences of each document, and no white space
    assert list(found.labels) == labels * 2
    assert found[0].text == "Awa Ndiaye dem Dakar."


def test_what_is_written_is_read_by_spacy():
    made = Corpus.from_sentences(
        [Sentence(("Awa", "Ndiaye", ",", "Ndar"), ("B-PER", "I-PER", "O", "B-LOC"), (True, False, True, False))] * 2
    )
    doc, _ = DocBin().from_bytes(docbin.render(made, "ner", made.labels.distinct())).get_docs(spacy.blank("xx").vocab)
    assert doc.text == "Awa Ndiaye, Ndar"
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Awa Ndiaye", "PER"), ("Ndar", "LOC")]
    assert [token.ent_iob_ for token in doc] == ["B", "I", "O", "B"]
    assert len(list(doc.sents)) == 1
    tags = Corpus.from_sentences([Sentence(s.words, ("N", "N", "_", "X"), s.spaces) for s in made])
    doc, _ = DocBin().from_bytes(docbin.render(tags, "xpos", tags.labels.distinct())).get_docs(spacy.blank("xx").vocab)
    assert [token.tag_ for token in doc] == ["N", "N", "", "X"]
    relations = Corpus.from_sentences([Sentence(s.words, ("nsubj", "flat", "punct", "_"), s.spaces) for s in made])
    doc, _ = (
        DocBin()
        .from_bytes(docbin.render(relations, "deprel", relations.labels.distinct()))
        .get_docs(spacy.blank("xx").vocab)
    )
    assert [token.dep_ for token in doc] == ["nsubj", "flat", "punct", ""]
    assert len(list(doc.sents)) == 1  # no heads are invented


def test_documents_without_the_labels_are_told():
    plain = Doc(spacy.blank("xx").vocab, words=["Ndar", "la"])
    bad = FileNotes("x")
    assert len(list(docbin.parse(packed(document(), plain), "x", "ner", NO_HINTS, bad))) == 2
    assert bad.bad == [(2, "expected ner in doc.ents, got a document without; annotate it, or leave it out")]
    plain.ents = []  # looked at, and nothing found
    bad = FileNotes("x")
    assert list(docbin.parse(packed(plain), "x", "ner", NO_HINTS, bad)) == [Sentence(("Ndar", "la"), ("O", "O"))]
    assert not bad.bad


def test_overlapping_spans_and_words_with_line_ends_are_told():
    doc = document()
    doc.spans["chunk"] = [Span(doc, 0, 2, "NP"), Span(doc, 1, 3, "VP")]
    with pytest.raises(DataError, match=r"x\.spacy:1: expected spans that do not overlap, got .* over another"):
        read(packed(doc), "chunk")
    odd = Doc(doc.vocab, words=["a\nb"], pos=["X"])
    with pytest.raises(DataError, match=r"x\.spacy:1: expected every word as text without tabs and line ends"):
        read(packed(odd), "pos")


def test_a_folder_of_them_is_a_grid(tmp_path: Path):
    data = write(
        tmp_path / "data", {"ner/wol/train.spacy": packed(document()), "pos/wol/train.spacy": packed(document())}
    )
    grid = load_grid(data, cache=tmp_path / "cache")
    assert list(map(str, grid.cells)) == ["ner/wol", "pos/wol"]
    assert (
        len(grid.training(Cell("ner", "wol")))
        == len(load_grid(data, cache=tmp_path / "cache").training(Cell("ner", "wol")))
        == 2
    )


def test_damaged_files_are_refused():
    rng, whole = random.Random(0), packed(*[document()] * 2)
    for _ in range(100):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        with pytest.raises(DataError, match=r"x\.spacy: expected a DocBin; .*; write it again with spaCy"):
            read(bytes(data), "ner")


def test_a_file_that_is_cut_off_is_refused():
    with pytest.raises(DataError, match=r"x\.spacy: expected a DocBin; .*; write it again with spaCy"):
        read(packed(document())[:-20], "ner")


def test_words_of_unknown_spaces_have_spaces():
    doc = Doc(spacy.blank("xx").vocab, words=["a", "b"], pos=["X", "X"])
    assert doc.has_unknown_spaces
    assert read(packed(doc), "pos")[0].text == "a b"
    assert not np.any(read(packed(doc), "pos").spaces)


def test_spacy_is_imported_only_for_its_format():
    code = "import sys, crossfill.data.folder, crossfill.data.writers; assert not {'spacy', 'srsly'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
