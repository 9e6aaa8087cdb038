"""The spaCy component against the tagger itself, on sentences in four scripts, and what documents keep of it."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import crossfill
from crossfill.data.parallel_corpus import parallel_sentences
from crossfill.errors import CheckpointError, ConfigError, DataError
from crossfill.grid.cells import Inventory
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Unit
from crossfill.tagger.tagger import Tagger
from tests.prediction.test_tagging import made as names_tagging
from tests.prediction.test_tagging import whole as topic_tagging

spacy = pytest.importorskip("spacy")
from spacy.language import Language  # noqa: E402
from spacy.tokens import Doc, DocBin, Span  # noqa: E402

from crossfill.integrations.spacy import component  # noqa: E402

SCRIPTS = ("eng", "rus", "hin", "ara")
N_SENTENCES = 125


@pytest.fixture(scope="module")
def model() -> Path:
    return Path(__file__).parents[1] / "golden" / "model"


@pytest.fixture(scope="module")
def tagger(model: Path) -> Tagger:
    return crossfill.load(model)


def pipeline(model: Path, *cells: str, **config: object) -> Language:
    nlp = spacy.blank("xx")
    nlp.add_pipe("crossfill", config={"model": str(model), "cells": list(cells), **config})
    return nlp


def doc_of(sentence: Sentence, nlp: Language) -> Doc:
    return Doc(nlp.vocab, list(sentence.words), list(sentence.spaces) or None)


def sentences(language: str, n: int) -> list[Sentence]:
    """Sentences of the parallel corpus, and then pairs of them as one."""
    own = parallel_sentences("pos", language)
    pairs = [(a, b) for a in own for b in own if a is not b]
    joined = [
        Sentence(a.words + b.words, (), (*a.spaces[:-1], True, *b.spaces)) for a, b in pairs[: max(0, n - len(own))]
    ]
    return [Sentence(s.words, (), s.spaces) for s in own][:n] + joined


def check_equal(model: Path, tagger: Tagger, n: int) -> None:
    for language in SCRIPTS:
        cells = (f"ner/{language}", f"pos/{language}")
        nlp, given = pipeline(model, *cells), sentences(language, n)
        assert len(given) == n
        docs = list(nlp.pipe([doc_of(sentence, nlp) for sentence in given], batch_size=50))
        for sentence, doc in zip(given, docs, strict=True):
            ner, pos = (tagger.tag(sentence, cell) for cell in cells)
            assert [token.pos_ for token in doc] == list(pos.labels)
            assert [(e.start, e.end, e.label_) for e in doc.ents] == [(s.start, s.end, s.type) for s in ner.spans]
            iob = [token.ent_iob_ + (f"-{token.ent_type_}" if token.ent_type_ else "") for token in doc]
            assert iob == list(ner.labels)
            np.testing.assert_allclose(
                doc.spans["crossfill"].attrs["scores"], [s.confidence for s in ner.spans], atol=1e-5
            )
            for tagging in (ner, pos):
                found = doc._.crossfill[str(tagging.cell)]
                np.testing.assert_allclose(found["confidence"], tagging.confidence, atol=1e-5)
                np.testing.assert_allclose(found["entropy"], tagging.entropy, atol=1e-4)


def test_it_tags_as_the_tagger_does(model: Path, tagger: Tagger):
    check_equal(model, tagger, 12)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_it_tags_five_hundred_sentences_as_the_tagger_does(model: Path, tagger: Tagger):
    check_equal(model, tagger, N_SENTENCES)


def test_documents_keep_scores_and_extensions_in_a_docbin(model: Path):
    nlp = pipeline(model, "ner/kor", "pos/kor", options={"abstain": 0.2, "alpha": 0.2})
    docs = nlp.pipe(doc_of(sentence, nlp) for sentence in sentences("kor", 60))
    doc = next(doc for doc in docs if doc.spans["crossfill"])
    packed = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    (again,) = DocBin().from_bytes(packed).get_docs(nlp.vocab)
    for name in ("scores", "cells"):
        assert list(again.spans["crossfill"].attrs[name]) == doc.spans["crossfill"].attrs[name]
    for one, other in zip(doc, again, strict=True):
        assert one._.crossfill.keys() == other._.crossfill.keys() == {"ner/kor", "pos/kor"}
        assert one._.crossfill["pos/kor"]["label"] == other._.crossfill["pos/kor"]["label"] == one.pos_
        assert one._.crossfill_confidence == other._.crossfill_confidence
        assert one._.crossfill_doubtful == other._.crossfill_doubtful
        assert one.pos_ in one._.crossfill["pos/kor"]["label_set"] or one._.crossfill["pos/kor"]["label_set"] == []
    for span in doc.spans["crossfill"]:
        place = list(doc.spans["crossfill"]).index(span)
        assert span._.crossfill_confidence == doc.spans["crossfill"].attrs["scores"][place]
    assert doc[0:2]._.crossfill_confidence is None or doc[0:2].label


def test_white_space_and_sentences(model: Path, tagger: Tagger):
    nlp = pipeline(model, "pos/eng")
    words = ["We", "met", "\n\n", "Omar", ".", "  ", "He", "left", "."]
    doc = Doc(nlp.vocab, words, [True, False, False, False, True, False, True, False, False])
    tagged = nlp(doc)
    assert [token.pos_ for token in tagged if token.is_space] == ["SPACE", "SPACE"]
    assert tagged[2]._.crossfill == {}
    assert tagged[2]._.crossfill_confidence is None
    whole = Sentence(("We", "met", "Omar", ".", "He", "left", "."), (), (True, True, False, True, True, False, False))
    assert [t.pos_ for t in tagged if not t.is_space] == list(tagger.tag(whole, "pos/eng").labels)
    split = Doc(nlp.vocab, words, [bool(t.whitespace_) for t in doc], sent_starts=[i in (0, 6) for i in range(9)])
    nlp(split)
    parts = [
        Sentence(("We", "met", "Omar", "."), (), (True, True, False, True)),
        Sentence(("He", "left", "."), (), (True, False, False)),
    ]
    expected = [tagging for part in parts for tagging in tagger.tag(part, "pos/eng").confidence]
    found = [value for value in split._.crossfill["pos/eng"]["confidence"] if value is not None]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert len(nlp("")) == 0
    assert nlp("  ")._.crossfill == {}


def test_a_saved_pipeline_has_its_model_with_it(model: Path, tmp_path: Path):
    moved = tmp_path / "moved"
    shutil.copytree(model, moved)
    nlp = pipeline(moved, "ner/rus", "pos/rus", options={"min_confidence": 0.3}, with_encoder=True)
    text = "Лейла живёт в Афинах."
    before = nlp(text)
    nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(moved)
    again = spacy.load(tmp_path / "pipeline")
    after = again(text)
    assert [t.pos_ for t in after] == [t.pos_ for t in before]
    assert after._.crossfill == before._.crossfill
    assert again.get_pipe("crossfill").options == {"min_confidence": 0.3}
    assert "PROPN" in again.pipe_labels["crossfill"]
    gone = pipeline(moved, "ner/rus")  # only a pipeline that is saved can do without
    with pytest.raises(CheckpointError, match="moved"):
        gone(text)


def test_threshold_and_abstention(model: Path, tagger: Tagger):
    words = ["Leyla", "and", "Omar", "met", "in", "Athens", "."]
    plain = tagger.tag(words, "pos/eng")
    threshold = float(np.median(plain.confidence))
    nlp = pipeline(model, "pos/eng", options={"min_confidence": threshold})
    doc = nlp(Doc(nlp.vocab, words))
    assert [t.pos_ == "" for t in doc] == [bool(c < threshold) for c in plain.confidence]
    assert [t._.crossfill_doubtful for t in doc] == [t.pos_ == "" for t in doc]
    marks = tagger.tag(words, "pos/eng", options=crossfill.TaggingOptions(abstain=0.5)).doubtful
    nlp = pipeline(model, "pos/eng", options={"abstain": 0.5})
    doc = nlp(Doc(nlp.vocab, words))
    assert marks is not None
    assert [t._.crossfill_doubtful for t in doc] == marks.tolist()
    assert all(t.pos_ for t in doc)
    assert doc[:]._.crossfill_doubtful == marks.any()


def column(task: str, names: tuple[str, ...], *labels: str | None) -> component.TokenColumn:
    return component.TokenColumn(
        f"{task}/wol", task, names, {"label": list(labels), "confidence": [0.5] * len(labels)}, []
    )


def test_every_task_has_its_place():
    doc = Doc(spacy.blank("xx").vocab, ["a", "b", "c"], morphs=["Number=Sing", "Case=Gen", ""])
    cases = column("feats:Case", ("Nom", "_"), "Nom", "_", "_")
    tags = column("xpos", ("N", "V"), "N", "V", "_")
    senses = column("senses", ("s1", "s2"), "s1", "s1", "s2")
    chunks = column("chunk", ("B-NP", "I-NP", "O"), "B-NP", "I-NP", "O")._replace(spans=[(0, 2, "NP", 0.75)])
    relations = column("deprel", ("nsubj", "root"), "nsubj", "root", "root")
    component.write(doc, [cases, tags, senses, chunks, relations], "found", overwrite=True)
    assert [str(t.morph) for t in doc] == ["Case=Nom|Number=Sing", "", ""]
    assert [t.tag_ for t in doc] == ["N", "V", ""]  # the first task that wants it
    assert doc[2]._.crossfill["senses/wol"]["label"] == "s2"
    assert [(s.text, s.label_) for s in doc.spans["found"]] == [("a b", "NP")]
    assert doc.spans["found"].attrs == {"scores": [0.75], "cells": ["chunk/wol"]}
    assert not doc.ents
    assert not doc.has_annotation("DEP")  # relations without heads would make every word a sentence
    assert doc[0]._.crossfill["deprel/wol"]["label"] == "nsubj"


def test_what_is_there_is_kept_if_asked():
    vocab = spacy.blank("xx").vocab
    doc = Doc(vocab, ["a", "b", "c"], pos=["NUM", "", ""], tags=["N", "", ""], morphs=["Case=Gen", "", ""])
    doc.ents = [Span(doc, 0, 1, "OLD")]
    found = column("ner", ("B-PER", "I-PER", "O"), "B-PER", "I-PER", "B-PER")
    found = found._replace(spans=[(0, 2, "PER", 0.5), (2, 3, "PER", 0.5)])
    columns = [
        found,
        column("pos", ("NOUN", "VERB"), "NOUN", "VERB", "NOUN"),
        column("xpos", ("V",), "V", "V", "V"),
        column("feats:Case", ("Nom", "_"), "Nom", "Nom", "_"),
    ]
    component.write(doc, columns, "found", overwrite=False)
    assert [(e.text, e.label_) for e in doc.ents] == [("a", "OLD"), ("c", "PER")]
    assert [t.pos_ for t in doc] == ["NUM", "VERB", "NOUN"]
    assert [t.tag_ for t in doc] == ["N", "V", "V"]
    assert [str(t.morph) for t in doc] == ["Case=Gen", "Case=Nom", ""]
    assert len(doc.spans["found"]) == 2  # everything that was found
    component.write(doc, columns, "found", overwrite=True)
    assert [(e.text, e.label_) for e in doc.ents] == [("a b", "PER"), ("c", "PER")]


def test_settings_are_checked_when_the_component_is_added(model: Path):
    with pytest.raises(ConfigError, match=r"unknown option 'threshold'; .*known: alpha, abstain, min_confidence"):
        pipeline(model, "pos/eng", options={"threshold": 0.5})
    with pytest.raises(DataError, match="unknown cell 'pos/wol'"):
        pipeline(model, "pos/wol")
    with pytest.raises(ConfigError, match="expected one cell of each task"):
        pipeline(model, "pos/eng", "pos/rus")
    with pytest.raises(ConfigError, match="expected one cell of each task"):
        pipeline(model)


def test_tasks_of_sentences_have_no_place_at_tokens(model: Path, tagger: Tagger):
    pipe = pipeline(model, "pos/eng").get_pipe("crossfill")
    topics = Inventory.of({"topic": ("a", "b"), "pos": ("NOUN",)}, ("eng",), units={"topic": Unit.SENTENCE})
    pipe.cells = ["topic/eng"]
    with pytest.raises(ConfigError, match="expected tasks that label words, got topic, which labels sentences"):
        pipe._check(topics)


def test_errors_of_documents_go_to_the_handler(model: Path, monkeypatch: pytest.MonkeyPatch):
    nlp, told = pipeline(model, "pos/eng"), []
    nlp.set_error_handler(lambda name, proc, docs, error: told.append((name, [doc.text for doc in docs])))
    pipe = nlp.get_pipe("crossfill")

    def fail(*args: object, **kwargs: object) -> None:
        raise DataError("no")

    monkeypatch.setattr(pipe.tagger, "tag_cells", fail)
    assert list(nlp.pipe(["We met.", "He left."])) == []
    assert told == [("crossfill", ["We met.", "He left."])]


def test_the_module_that_spacy_imports_for_every_pipeline_is_light():
    code = (
        "import sys\nsys.modules['torch'] = None  # spaCy looks for it, and can do without\n"
        f"import {component.__name__}\n"
        "assert not {'transformers', 'pydantic_settings', 'crossfill.tagger.tagger'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_crossfill_imports_no_spacy():
    code = "import sys, crossfill, crossfill.cli.app, crossfill.data.folder; assert 'spacy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_tagging_is_a_doc_with_entities_scores_and_doubt():
    doc = component.tagged_doc(names_tagging())
    assert doc.text == "Dakar <b>mooy "
    assert [(span.text, span.label_) for span in doc.ents] == [("Dakar <b>", "LOC")]
    assert doc.spans["crossfill"].attrs["scores"] == [0.6]
    assert doc[1]._.crossfill["ner/wol"]["label"] == "I-LOC"
    assert doc[2]._.crossfill_confidence == pytest.approx(0.4)
    assert len(component.tagged_doc(names_tagging((), ()))) == 0
    assert component.tagged_doc(topic_tagging()).cats == pytest.approx({"news": 0.3, "sport": 0.7})
