"""DocBin: what spaCy writes is read as spaCy reads it, and what is written is read by spaCy."""

import random
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from crossfill.data import docbin
from crossfill.data.folder import load_grid
from crossfill.data.hints import ReadingHints
from crossfill.data.lines import BadLines
from crossfill.data.readers import READERS
from crossfill.errors import DataError
from crossfill.grid.cells import Cell
from crossfill.grid.sentence import Corpus, Sentence
from tests.data.folders import write

spacy = pytest.importorskip("spacy")
from spacy.tokens import Doc, DocBin, Span  # noqa: E402

N_DAMAGED = 2000
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
    bad = BadLines("x")
    assert len(list(docbin.parse(packed(document(), plain), "x", "ner", bad))) == 2
    assert bad.lost == [(2, "expected ner in doc.ents, got a document without; annotate it, or leave it out")]
    plain.ents = []  # looked at, and nothing found
    bad = BadLines("x")
    assert list(docbin.parse(packed(plain), "x", "ner", bad)) == [Sentence(("Ndar", "la"), ("O", "O"))]
    assert not bad.n_lost


def test_overlapping_spans_and_words_with_line_ends_are_told():
    doc = document()
    doc.spans["chunk"] = [Span(doc, 0, 2, "NP"), Span(doc, 1, 3, "VP")]
    with pytest.raises(DataError, match=r"x\.spacy:1: expected spans that do not overlap, got 1 to 3 over another"):
        read(packed(doc), "chunk")
    odd = Doc(doc.vocab, words=["a\nb"], pos=["X"])
    with pytest.raises(DataError, match=r"x\.spacy:1: expected every word as text without tabs and line ends"):
        read(packed(odd), "pos")
    long = Doc(doc.vocab, words=["a"] * 5001, pos=["X"] * 5001)
    with pytest.raises(DataError, match=r"expected at most 5,000 words in a sentence, got 5,001; mark sentences"):
        read(packed(long), "pos")


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


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Bytes changed within the packing, which a checksum guards, or without."""
    inside = bytearray(zlib.decompress(data) if (within := rng.random() < 0.9) else data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(inside))
        if rng.random() < 0.8:
            inside[place] = rng.randrange(256)
        else:
            del inside[place : place + rng.randint(1, 8)]
    return zlib.compress(bytes(inside)) if within else bytes(inside)


def check_damaged(n_files: int) -> None:
    rng, whole = random.Random(0), packed(*[document()] * 2)
    refused, tasks = [], ("ner", "chunk", "pos", "xpos", "feats:Case", "deprel")
    for _ in range(n_files):
        try:
            corpus = read(damaged(rng, whole), rng.choice(tasks))
        except DataError as error:
            refused.append(str(error))
        else:
            assert len(corpus.labels) == len(corpus.words) == corpus.offsets[-1]
            assert "\n" not in "".join((*corpus.words.vocabulary, *corpus.labels.vocabulary))
    assert 0.2 * n_files < len(refused) < 0.95 * n_files
    for message in refused:
        assert message.startswith("x.spacy:")
        assert ": expected " in message
        assert ";" in message


def test_damaged_files_are_read_or_refused():
    check_damaged(100)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_damaged_files_are_read_or_refused():
    check_damaged(N_DAMAGED)


def test_a_file_that_is_cut_off_is_refused():
    with pytest.raises(DataError, match=r"x\.spacy: expected a DocBin, got .*; write it again with spaCy"):
        read(packed(document())[:-20], "ner")


def test_words_of_unknown_spaces_have_spaces():
    doc = Doc(spacy.blank("xx").vocab, words=["a", "b"], pos=["X", "X"])
    assert doc.has_unknown_spaces
    assert read(packed(doc), "pos")[0].text == "a b"
    assert not np.any(read(packed(doc), "pos").spaces)


def test_spacy_is_imported_only_for_its_format():
    code = "import sys, crossfill.data.folder, crossfill.data.writers; assert not {'spacy', 'srsly'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
