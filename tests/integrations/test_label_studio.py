"""Label Studio's forms: configurations, regions in JavaScript's offsets, and annotations back to sentences."""

import json

import pytest

from crossfill.data.segmentation import Segmenter
from crossfill.errors import DataError
from crossfill.grid.task import Task
from crossfill.integrations.annotation_tools import types_of
from crossfill.integrations.label_studio import LabelConfig, labelled_sentences, prediction
from tests.integrations.taggings import ADLAM, NER, POS, TEXTS, places_found

CONFIG = """<?xml version="1.0" encoding="UTF-8"?>
<View>
  <Header value="What is what?"/>
  <Labels name="kind" toName="other"/>
  <Labels name="label" toName="text">
    <Label value="PER" background="red"/>
    <View><Label value="Place" alias="place" predicted_values="LOC, GPE"/></View>
  </Labels>
  <Text name="text" value="$body" granularity="word"/>
  <Labels name="more" toName="text"><Label value="LOC"/></Labels>
</View>"""


def javascript_slice(text: str, start: int, end: int) -> str:
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")


def test_the_first_pair_of_a_configuration_gives_names_and_key():
    found = LabelConfig.parse(CONFIG)
    assert (found.from_name, found.to_name, found.key) == ("label", "text", "body")
    assert [found.named(label) for label in ("PER", "per", "LOC", "gpe", "place", "ORG")] == [
        "PER", "PER", "place", "place", "place", None,
    ]  # fmt: skip
    assert found.text({"body": "a"}) == "a"
    assert [found.text(data) for data in (None, 3, {"text": "a"}, {"body": None})] == [""] * 4
    found.check(NER.labels)
    with pytest.raises(DataError, match=r"expected labels among NOUN, .* got PER, place; .*predicted_values"):
        found.check(POS.labels)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("<View/>", "0 <Labels> and 0 <Text>"),
        ('<View><Labels name="a" toName="b"/><Text name="c" value="$text"/></View>', "1 <Labels> and 1 <Text>"),
        ('<View><Labels name="a" toName="b"/><Text name="b" value="text"/></View>', r'value="\$text"/> with the key'),
        ('<View><Labels name="a" toName="b"/><Text name="b"/></View>', "with the key"),
        ('<View><Labels name="a" toName="b"/><Text name="b" value="$u" valueType="url"/></View>', "remove valueType"),
        ("<View>", "expected XML; no element found"),
        ("", "expected XML"),
        ("<View>&nbsp;</View>", "expected XML; undefined entity"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><View>&b;</View>', "without a document type"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><View/>', "without a document type"),
        ("<View>" + " " * 200_000 + "</View>", "at most 200,000 characters"),
        ("<View>\ud800</View>", "expected XML"),
    ],
)
def test_other_configurations_are_refused(config: str, message: str):
    with pytest.raises(DataError, match=message):
        LabelConfig.parse(config)


def test_deep_configurations_are_read():
    deep = "<View>" * 10_000 + CONFIG.split("\n", 1)[1] + "</View>" * 10_000
    assert LabelConfig.parse(deep).key == "body"


@pytest.mark.parametrize("text", TEXTS)
def test_regions_are_where_javascript_finds_them(text: str):
    labelling = LabelConfig.parse(CONFIG)
    taggings = places_found(text)
    found = prediction(taggings, labelling, text, "v1")
    assert found["model_version"] == "v1"
    expected = [span for tagging in taggings for span in tagging.spans]
    assert len(found["result"]) == len(expected)
    for region, span in zip(found["result"], expected, strict=True):
        value = region["value"]
        assert (region["from_name"], region["to_name"], region["type"]) == ("label", "text", "labels")
        assert javascript_slice(text, value["start"], value["end"]) == value["text"] == span.text
        assert value["labels"] == ["place"]
        assert region["score"] == 0.25
    assert len({region["id"] for region in found["result"]}) == len(expected)
    entropy = sum(tagging.entropy.sum() for tagging in taggings)
    assert found["score"] == pytest.approx(1 / (1 + entropy))
    json.dumps(found)


def test_every_word_is_a_region_where_words_have_tags():
    labelling = LabelConfig.parse('<View><Text name="t" value="$text"/><Labels name="l" toName="t"/></View>')
    text = TEXTS[1]
    found = prediction(places_found(text, "pos/wol"), labelling, text, "v1")["result"]
    words = [word for sentence in Segmenter("wol").split_text(text) for word in sentence.words]
    assert [region["value"]["text"] for region in found] == words
    assert [javascript_slice(text, r["value"]["start"], r["value"]["end"]) for r in found] == words
    assert {region["score"] for region in found} == {0.7}
    few = LabelConfig.parse(CONFIG.replace("PER", "VERB"))
    assert prediction(places_found(text, "pos/wol"), few, text, "v1")["result"] == []


@pytest.mark.parametrize("text", TEXTS)
def test_what_was_predicted_comes_back_as_it_was(text: str):
    labelling = LabelConfig.parse(CONFIG)
    taggings = places_found(text)
    found = labelled_sentences(text, prediction(taggings, labelling, text, "")["result"], labelling, "wol", NER)
    assert [(s.words, s.labels) for s in found] == [(t.sentence.words, t.labels) for t in taggings]
    own = LabelConfig.parse('<View><Text name="t" value="$text"/><Labels name="l" toName="t"/></View>')
    tagged = places_found(text, "pos/wol")
    regions = prediction(tagged, own, text, "")["result"]
    assert [s.labels for s in labelled_sentences(text, regions, own, "wol", POS)] == [t.labels for t in tagged]
    if regions:  # a word without a tag stays open, and a sentence of such words is not taught
        left = labelled_sentences(text, regions[1:], own, "wol", POS)
        kept = [t for t in tagged if len(t.labels) > 1 or t is not tagged[0]]
        assert [s.words for s in left] == [t.sentence.words for t in kept]
        assert [label for s in left for label in s.labels if label] == [r["value"]["labels"][0] for r in regions[1:]]
        assert labelled_sentences(text, regions[1:], own, "wol", Task("pos", ("_", *POS.labels)))[0].labels[0] == "_"


def region(start: int, end: int, label: str = "place", **more) -> dict:
    value = {"start": start, "end": end, "text": "?", "labels": [label]}
    return {"from_name": "label", "to_name": "text", "type": "labels", "value": value} | more


@pytest.mark.parametrize("text", TEXTS)
def test_words_outside_of_partial_regions_are_unknown(text: str):
    labelling = LabelConfig.parse(CONFIG.replace('toName="text">', 'toName="text" partial="True">', 1))
    whole = LabelConfig.parse(CONFIG.replace('toName="text">', 'toName="text" partial="false">', 1))
    taggings = places_found(text)
    result = prediction(taggings, labelling, text, "")["result"]
    found = labelled_sentences(text, result, labelling, "wol", NER)
    expected = labelled_sentences(text, result, whole, "wol", NER)
    assert [(s.words, s.labels) for s in found] == [
        (s.words, tuple("" if label == "O" else label for label in s.labels)) for s in expected if {*s.labels} != {"O"}
    ]
    with pytest.raises(DataError, match=r'the labelling configuration: expected <Labels … partial="true">.*"some"'):
        LabelConfig.parse(CONFIG.replace('toName="text">', 'toName="text" partial="some">', 1))


def test_regions_may_cut_words_and_have_spaces_at_their_ends():
    labelling, text = LabelConfig.parse(CONFIG), f"🦁 Dakarois {ADLAM}!"
    length = len(ADLAM.encode("utf-16-le")) // 2
    result = [region(2, 8), region(11, 12 + length), region(0, 1, type="choices"), region(0, 1, from_name="more")]
    (found,) = labelled_sentences(text, result, labelling, "wol", NER)
    assert found.words == ("🦁", "Dakar", "ois", *ADLAM.split(), "!")
    assert found.labels == ("O", "B-LOC", "O", "B-LOC", "I-LOC", "O")
    assert found.text == text


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([region(1, 3)], "which is within one"),
        ([region(0, 99)], "within the text's"),
        ([region(3, 2)], "one label of place, PER; got"),
        ([region(2.0, 3)], "one label of place, PER; got"),
        ([region(3, 8, "ORG")], "one label of place, PER; got"),
        (
            [region(3, 8) | {"value": {"start": 3, "end": 8, "labels": ["PER", "place"]}}],
            "one label of place, PER; got",
        ),
        ([region(3, 8), region(5, 10)], "spans that do not overlap"),
        ([region(0, 1) | {"value": None}], "one label of place, PER; got None"),
    ],
)
def test_annotations_that_cannot_be_learned_from_are_refused(result, message):
    with pytest.raises(DataError, match=message):
        labelled_sentences("🦁 Dakar mooy péey", result, LabelConfig.parse(CONFIG), "wol", NER)


def test_types_are_what_annotators_choose_from():
    assert types_of(NER.labels) == ["LOC", "PER"]
    assert types_of(("_", *POS.labels)) == list(POS.labels)
