"""INCEpTION's documents: predictions where Java finds them, annotations back to sentences, and hostile input."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from crossfill.data.segmentation import Segmenter
from crossfill.errors import DataError
from crossfill.grid.sentence import Sentence
from crossfill.grid.task import Task
from crossfill.integrations.inception import Document, Layer, explanation, labelled_sentences, read_types
from tests.integrations.documents import NAMED_ENTITY, POS, type_system, xmi
from tests.integrations.taggings import NER, TEXTS, places_found, tagging
from tests.integrations.taggings import POS as TAGS

pytest.importorskip("cassis")
LAYER, POS_LAYER = Layer(NAMED_ENTITY, "value"), Layer(POS, "PosValue")
FULL = [text for text in TEXTS if text]


def document(text: str, annotations=(), layer: Layer = LAYER, cut: bool = True) -> Document:
    sentences = list(Segmenter("wol").split_text(text)) if cut else []
    types = read_types(type_system(layer.name, layer.feature))
    return Document.parse(xmi(text, sentences, annotations, layer.name, layer.feature), types, "wol")


def predicted(answer: str, layer: Layer) -> list[dict[str, str]]:
    """The attributes of predicted annotations, read without cassis."""
    package, _, name = layer.name.rpartition(".")
    tag = f"{{http:///{package.replace('.', '/')}.ecore}}{name}"
    return [e.attrib for e in ET.fromstring(answer).iter(tag) if e.get("inception_internal_predicted") == "true"]


@pytest.mark.parametrize("text", FULL)
@pytest.mark.parametrize("cut", [True, False])
def test_predictions_are_where_java_finds_them(text: str, cut: bool):
    read = document(text, cut=cut)
    taggings = places_found(text)
    assert [s.words for s in read.sentences] == [t.sentence.words for t in taggings]
    assert [s.offsets for s in read.sentences] == [t.sentence.offsets for t in taggings]
    found = predicted(read.predicted(taggings, LAYER), LAYER)
    spans = [span for tagging in taggings for span in tagging.spans]
    assert len(found) == len(spans) > 0
    units = text.encode("utf-16-le")
    for values, span in zip(sorted(found, key=lambda v: int(v["begin"])), spans, strict=True):
        assert units[2 * int(values["begin"]) : 2 * int(values["end"])].decode("utf-16-le") == span.text
        assert (values["value"], float(values["value_score"])) == ("LOC", 0.25)
        assert values["value_score_explanation"].startswith("labels with 90% of probability: LOC, PER; doubt: ")


def test_what_was_there_stays_and_what_was_predicted_goes():
    text = TEXTS[0]
    read = document(text, [(0, 5, "PER")])
    first = read.predicted(places_found(text), LAYER)
    again = Document.parse(first, read_types(type_system()), "wol")
    assert [a.value for a in again.annotations(LAYER)] == ["PER"]
    assert len(predicted(again.predicted(places_found(text), LAYER), LAYER)) == len(predicted(first, LAYER)) == 2


def test_layers_of_single_tokens_have_a_prediction_for_every_word():
    text = TEXTS[1]
    single = Layer(NAMED_ENTITY, "value", single_words=True)
    found = predicted(document(text).predicted(places_found(text), single), single)
    labels = [label for t in places_found(text) for label in t.labels if label != "O"]
    assert len(found) == len(labels) > 2
    assert {values["value"] for values in found} == {"LOC"}
    tags = predicted(document(text, layer=POS_LAYER).predicted(places_found(text, "pos/wol"), POS_LAYER), POS_LAYER)
    assert [values["PosValue"] for values in tags] == ["NOUN"] * sum(map(len, places_found(text)))


def test_explanations_tell_label_sets_and_doubt():
    from dataclasses import replace

    one = tagging(Sentence(("Dakar", "Dakar")), "ner/wol", ["B-LOC", "I-LOC"], doubt=0.4)
    sets = np.zeros((2, 5), dtype=bool)
    sets[0, [0, 1]] = sets[1, [2, 4]] = True
    told = explanation(replace(one, sets=sets), range(2))
    assert told.startswith("label set (90%): LOC, PER, O; doubt: entropy ")
    assert told.endswith(f"{one.entropy[0]:.2f}, epistemic {one.mutual_information[0]:.2f}")
    assert explanation(one, range(1)).startswith("labels with 90% of probability: LOC, PER, ")


def test_annotated_sentences_come_back_with_their_labels():
    text = "Awa dem na Dakar. Mu ngi ci Dakar . Awa! 𞤀𞤣𞤤𞤢𞤥 la."
    places = [(0, 3, "PER"), (11, 16, "LOC"), (text.index("𞤀"), text.index("𞤀") + 5, "LOC")]
    found = labelled_sentences(document(text, places), LAYER, NER)
    assert [(s.words, s.labels) for s in found] == [
        (("Awa", "dem", "na", "Dakar", "."), ("B-PER", "O", "O", "B-LOC", "O")),
        (("𞤀𞤣𞤤𞤢𞤥", "la", "."), ("B-LOC", "O", "O")),
    ]


@pytest.mark.parametrize(
    "places",
    [
        [(0, 3, "DOG")],
        [(0, 7, "PER"), (4, 10, "LOC")],
        [(11, 20, "LOC")],
        [(3, 4, "LOC")],
        [],
    ],
    ids=["unknown label", "overlap", "two sentences", "no word", "nothing"],
)
def test_sentences_that_cannot_be_learned_from_are_left_out(places):
    assert labelled_sentences(document("Awa dem na Dakar. Mu ngi ci.", places), LAYER, NER) == []


def test_tags_are_learned_and_other_words_stay_open():
    text = "Awa dem. Awa dem."
    places = [(0, 3, "NOUN"), (4, 7, "VERB"), (7, 8, "PUNCT"), (9, 12, "NOUN")]
    first, second = labelled_sentences(document(text, places, POS_LAYER), POS_LAYER, TAGS)
    assert first.labels == ("NOUN", "VERB", "PUNCT")
    assert second.labels == ("NOUN", "", "")
    both = labelled_sentences(document(text, places, POS_LAYER), POS_LAYER, Task("pos", ("_", *TAGS.labels)))
    assert both[1].labels == ("NOUN", "_", "_")


def test_words_outside_of_partial_annotations_are_unknown():
    text = "Awa Diop dem na Dakar. Mu ngi ci."
    (found,) = labelled_sentences(document(text, [(0, 8, "PER")]), LAYER, NER, partial=True)
    assert found.labels == ("B-PER", "I-PER", "", "", "", "")
    places = [(0, 3, "NOUN")]
    (found,) = labelled_sentences(document(text, places, POS_LAYER), POS_LAYER, Task("pos", ("_", *TAGS.labels)), True)
    assert found.labels == ("NOUN", "", "", "", "", "")


CODE = 'x=__import__("os").system("true"), y'


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (type_system().replace(">value<", f">{CODE}<".replace('"', "&quot;")), "names of letters and digits"),
        (type_system().replace(">value<", ">__class__<"), "names of letters and digits"),
        (type_system().replace(">value<", "><"), "names of letters and digits"),
        (type_system().replace("NamedEntity", "Named-Entity"), "names of letters and digits"),
        ("<!DOCTYPE a>" + type_system().split("\n")[1], "without a document type"),
        ('<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE', "expected XML"),
        ("<a", "expected XML"),
        (type_system().replace("uima.tcas.Annotation", "no.such.Type"), "expected a type system in XML; KeyError"),
    ],
)
def test_hostile_type_systems_are_refused(description: str, message: str):
    with pytest.raises(DataError, match=message):
        read_types(description)


GOOD = xmi("Dakar 🦁 la", list(Segmenter("wol").split_text("Dakar 🦁 la")), [(0, 5, "LOC")])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD.replace('begin="6"', 'begin="7"'), "which is within one"),
        (GOOD.replace('end="8"', 'end="99"'), "within the text's 11"),
        (GOOD.replace('end="8"', 'end="-1"'), "begin and end as numbers"),
        (GOOD.replace("<cas:Sofa", "<cas:Other"), "expected one text"),
        (GOOD.replace('value="LOC"', 'worth="LOC"'), "a document in XMI; TypeError"),
        (GOOD.replace("own:NamedEntity", "own:Nothing"), "a document in XMI; TypeNotFoundError"),
        (GOOD.replace('members="2', 'members="77 2'), "a document in XMI; KeyError"),
        ("<a>&b;</a>", "expected XML"),
        ('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "without a document type"),
    ],
)
def test_hostile_documents_are_refused(content: str, message: str):
    with pytest.raises(DataError, match=message):
        Document.parse(content, read_types(type_system()), "wol")
    assert Document.parse(GOOD, read_types(type_system()), "wol").sentences[0].words == ("Dakar", "🦁", "la")


def test_layers_that_are_not_there_are_named():
    read = document("Dakar")
    for layer, message in (
        (Layer("no.Layer", "value"), "expected the layer no.Layer"),
        (Layer(NAMED_ENTITY, "other"), "expected the feature other"),
    ):
        with pytest.raises(DataError, match=message):
            read.annotations(layer)
